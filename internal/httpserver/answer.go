package httpserver

import (
	"bytes"
	"encoding/json"
	"maps"
	"net/http"
	"strconv"
	"time"
)

// Answer is what an endpoint answers.
type Answer struct {
	Status int
	// Body is written as JSON; a []byte is written as it is. Without one there is no body.
	Body any
	// Header is added to the answer. Content-Type is application/json unless it says otherwise.
	Header http.Header
}

// OK returns the answer 200 with the body.
func OK(body any) Answer { return Answer{Status: http.StatusOK, Body: body} }

// RetryAfter adds the header that tells a client when to come back, in whole seconds and at least one.
func (a Answer) RetryAfter(wait time.Duration) Answer {
	if a.Header == nil {
		a.Header = http.Header{}
	}

	a.Header.Set("Retry-After", strconv.Itoa(max(1, int(wait.Round(time.Second)/time.Second))))

	return a
}

// Write sends the answer.
func (a Answer) Write(w http.ResponseWriter) {
	body, err := encode(a.Body)
	if err != nil {
		a, body = Answer{Status: http.StatusInternalServerError}, []byte(`{"description":"`+internalText+`"}`)
	}

	header := w.Header()
	maps.Copy(header, a.Header)

	if body != nil && header.Get("Content-Type") == "" {
		header.Set("Content-Type", "application/json")
	}

	w.WriteHeader(a.Status)
	_, _ = w.Write(body) // a client that hung up gets nothing
}

func encode(body any) ([]byte, error) {
	switch body := body.(type) {
	case nil:
		return nil, nil
	case []byte:
		return body, nil
	}

	var buffer bytes.Buffer

	encoder := json.NewEncoder(&buffer)
	encoder.SetEscapeHTML(false)

	if err := encoder.Encode(body); err != nil {
		return nil, err
	}

	return buffer.Bytes(), nil
}
