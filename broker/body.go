package broker

import (
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"unicode/utf8"

	"github.com/pivotal-cf/brokerapi/v10/domain"
)

// longestLabel bounds names and ids that platforms give to accounts, applications and people, in characters.
const longestLabel = 255

// body is a JSON object of a request. Its methods return what a field holds and keep the first error, so that a whole request is
// read before anybody looks. Fields that nobody asks for do not matter.
type body struct {
	fields map[string]json.RawMessage
	// within names the object in errors, with a dot behind it; the outermost has no name.
	within string
	err    error
}

// readBody reads the object. A body without a content type counts as JSON, and so does a form: that is what curl calls every body
// unless it is told otherwise.
func readBody(r *http.Request) (*body, error) {
	if kind := r.Header.Get("Content-Type"); kind != "" {
		media, _, err := mime.ParseMediaType(kind)
		if err != nil || media != "application/json" && media != "application/x-www-form-urlencoded" {
			return nil, invalid(fmt.Sprintf("The body has to be application/json, it is %q.", kind))
		}
	}

	content, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, fmt.Errorf("reading the body: %w", err)
	}

	object := &body{}
	if err := json.Unmarshal(content, &object.fields); err != nil || object.fields == nil {
		return nil, invalid("The body has to be one JSON object.")
	}

	return object, nil
}

// text returns a field that is a string, empty when it is absent or null.
func (b *body) text(field string) string {
	var text string
	if err := decode(b.fields[field], &text); err != nil {
		b.refuse(field, "has to be a string.")
	}

	return text
}

// label returns a string that is stored where it can be looked for, empty when it is absent or null. PostgreSQL takes no control
// characters there, and nothing long.
func (b *body) label(field string) string {
	text := b.text(field)
	if !printable(text) || utf8.RuneCountInString(text) > longestLabel {
		b.refuse(field, fmt.Sprintf("has to have at most %d characters, and no control characters.", longestLabel))
	}

	return text
}

// flag returns a field that is true or false, nil when it is absent or null.
func (b *body) flag(field string) *bool {
	var flag *bool
	if err := decode(b.fields[field], &flag); err != nil {
		b.refuse(field, "has to be true or false.")
	}

	return flag
}

// required returns a string that has to be there and not empty.
func (b *body) required(field string) string {
	text := b.text(field)
	if text == "" {
		b.refuse(field, "is missing.")
	}

	return text
}

// object returns a field that is an object, as it came; nil when it is absent or null.
func (b *body) object(field string) json.RawMessage {
	if b.inner(field).fields == nil {
		return nil
	}

	return b.fields[field]
}

// inner returns a field that is an object, to read its fields. One that is absent or null has none.
func (b *body) inner(field string) *body {
	inner := &body{within: b.within + field + "."}
	if err := decode(b.fields[field], &inner.fields); err != nil {
		b.refuse(field, "has to be an object.")
	}

	return inner
}

// maintenance returns maintenance_info. Without a version it counts as absent.
func (b *body) maintenance() *domain.MaintenanceInfo {
	info := b.inner("maintenance_info")
	version := info.text("version")
	b.keep(info.err)

	if version == "" {
		return nil
	}

	return &domain.MaintenanceInfo{Version: version}
}

func (b *body) refuse(field, why string) {
	b.keep(invalid(b.within + field + " " + why))
}

func (b *body) keep(err error) {
	if b.err == nil {
		b.err = err
	}
}

func decode(raw json.RawMessage, into any) error {
	if raw == nil {
		return nil
	}

	return json.Unmarshal(raw, into)
}
