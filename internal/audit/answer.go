package audit

import (
	"encoding/json"
	"net/http"
)

// longestRefusal is how much of a refusal is looked at, in bytes: its text is bounded, and so is its code.
const longestRefusal = 2 << 10

// answer remembers the status of an answer, and the begin of one that is no success.
type answer struct {
	http.ResponseWriter

	status int
	begin  []byte
}

// WriteHeader implements http.ResponseWriter.
func (a *answer) WriteHeader(status int) {
	if a.status == 0 {
		a.status = status
	}

	a.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (a *answer) Write(body []byte) (int, error) {
	if a.status == 0 {
		a.status = http.StatusOK
	}

	if room := longestRefusal - len(a.begin); a.status >= http.StatusBadRequest && room > 0 {
		a.begin = append(a.begin, body[:min(room, len(body))]...)
	}

	return a.ResponseWriter.Write(body) //nolint:wrapcheck // the writer's own errors
}

// Unwrap is for http.ResponseController.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// code is the word for machines of a refusal, or empty.
func (a *answer) code() string {
	var body struct {
		Code string `json:"error"`
	}

	if json.Unmarshal(a.begin, &body) != nil {
		return ""
	}

	return oneLine(body.Code)
}
