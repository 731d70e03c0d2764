package provisionerclient

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode"

	"github.com/Khan/genqlient/graphql"
)

// maxExcerpt is how many characters of a foreign text are repeated.
const maxExcerpt = 200

// excerpt returns the begin of a text from outside as one line that can be printed.
func excerpt(text string) string {
	// No more is looked at than can be used: a character has four bytes at most.
	if most := 16 * maxExcerpt; len(text) > most {
		text = text[:most]
	}

	printable := strings.Map(func(char rune) rune {
		if !unicode.IsPrint(char) {
			return ' '
		}

		return char
	}, strings.ToValidUTF8(text, " "))

	letters := []rune(strings.Join(strings.Fields(printable), " "))
	if len(letters) > maxExcerpt {
		return string(letters[:maxExcerpt]) + "…"
	}

	return string(letters)
}

// encode writes the request without the fields that are null. They mean the same as fields that are left out, but a former
// Provisioner refuses a field that it does not know even when it is null.
func encode(request *graphql.Request) ([]byte, error) {
	text, err := json.Marshal(request)
	if err != nil {
		return nil, fmt.Errorf("encode request: %w", err)
	}

	if !bytes.Contains(text, []byte("null")) {
		return text, nil // as most requests: they have an id and nothing else
	}

	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()

	var fields map[string]any
	if err := decoder.Decode(&fields); err != nil {
		return nil, fmt.Errorf("encode request: %w", err)
	}

	dropNulls(fields)

	text, err = json.Marshal(fields)
	if err != nil {
		return nil, fmt.Errorf("encode request: %w", err)
	}

	return text, nil
}

func dropNulls(value any) {
	switch value := value.(type) {
	case map[string]any:
		for name, field := range value {
			if field == nil {
				delete(value, name)
			}

			dropNulls(field)
		}
	case []any:
		for _, element := range value {
			dropNulls(element)
		}
	}
}
