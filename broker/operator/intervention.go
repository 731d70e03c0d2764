package operator

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/environment-broker/environment-broker/internal/auth"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
	"github.com/environment-broker/environment-broker/storage"
)

const (
	// longestReason is how long the reason for an intervention may be, in characters.
	longestReason = 500
	// nobody stands for the operator of a broker without users.
	nobody = "somebody"

	textIntervention = `The body cannot be read. Send {"reason": "…"} as JSON and nothing else, for a skip or a retry with "step" beside it.`
)

// intervention is what an operator wants of an operation.
type intervention struct {
	operatorapi.Intervention

	operationID string
	by          string
	now         time.Time
}

// why is the line that the timeline keeps.
func (i intervention) why() string { return "by " + i.by + ": " + i.Reason }

// intervening does what an operator wants, inside the transaction, and returns the operation to be told of.
type intervening func(ctx context.Context, tx storage.Tx, wanted intervention) (concerned string, err error)

// withoutStep refuses a step where none is meant: who names one expects something else than what would happen.
func withoutStep(do intervening) intervening {
	return func(ctx context.Context, tx storage.Tx, wanted intervention) (string, error) {
		if wanted.Step != "" {
			return "", invalid("step is for a skip or a retry. Leave it out.")
		}

		return do(ctx, tx, wanted)
	}
}

// readIntervention returns what it could read also beside an error, for the log.
func (a *api) readIntervention(r *http.Request) (intervention, error) {
	wanted := intervention{by: cmp.Or(auth.FromContext(r.Context()).Name, nobody), now: a.Clock.Now()}

	var err error
	if wanted.operationID, err = segment(r, "operation_id"); err != nil {
		return wanted, err
	}

	if err := readStrictly(r.Body, &wanted.Intervention); err != nil {
		return wanted, err
	}

	wanted.Reason = oneLine(wanted.Reason)

	switch length := utf8.RuneCountInString(wanted.Reason); {
	case length == 0:
		return wanted, invalid("reason is missing: say why, others will read it.")
	case length > longestReason:
		wanted.Reason = string([]rune(wanted.Reason)[:longestReason]) + "…"

		return wanted, invalid(fmt.Sprintf("reason has %d characters, %d at most are kept.", length, longestReason))
	}

	return wanted, nil
}

// readStrictly decodes a body that is one JSON object without unknown fields. No body at all is an empty one.
func readStrictly(body io.Reader, into any) error {
	decoder := json.NewDecoder(body)
	decoder.DisallowUnknownFields()

	err := decoder.Decode(into)
	if errors.Is(err, io.EOF) {
		return nil
	}

	if err == nil {
		if _, err = decoder.Token(); errors.Is(err, io.EOF) {
			return nil
		}
	}

	if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
		return err
	}

	return invalid(textIntervention)
}

// oneLine makes one line of a text that people wrote: line breaks, and what no terminal shows, become spaces.
func oneLine(text string) string {
	return strings.Join(strings.FieldsFunc(text, func(char rune) bool {
		return unicode.IsSpace(char) || !unicode.IsGraphic(char)
	}), " ")
}
