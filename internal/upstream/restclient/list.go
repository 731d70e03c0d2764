package restclient

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
)

// maxListBytes is the maximum size of a response whose elements are passed to a List.
const maxListBytes = 64 << 20

// List receives the elements of a list while the response is read, so that a long response need not fit in memory.
type List struct {
	// Field is the field of the response that contains the list.
	Field string
	// Add receives an element, which decode stores in into.
	Add func(decode func(into any) error) error
}

// errUnexpected is the error for valid JSON of another form.
var errUnexpected = errors.New("unexpected JSON")

// read passes the elements to Add.
func (l List) read(response io.Reader) error {
	decoder := json.NewDecoder(response)
	if token, err := decoder.Token(); err != nil || token != json.Delim('{') {
		return errors.Join(err, errUnexpected)
	}

	for decoder.More() {
		field, err := decoder.Token()
		if err != nil {
			return err
		}

		var other json.RawMessage
		if field == l.Field {
			err = l.elements(decoder)
		} else {
			err = decoder.Decode(&other)
		}

		if err != nil {
			return err
		}
	}

	_, err := decoder.Token()

	return err
}

// elements reads the list, or null.
func (l List) elements(decoder *json.Decoder) error {
	token, err := decoder.Token()
	if err != nil || token == nil {
		return err
	}

	if token != json.Delim('[') {
		return errUnexpected
	}

	for decoder.More() {
		if err := l.Add(decoder.Decode); err != nil {
			return err
		}
	}

	_, err = decoder.Token()

	return err
}

// source is a response of limited size. It keeps the error of the connection.
type source struct {
	io.LimitedReader

	err error
}

// Read implements io.Reader.
func (s *source) Read(into []byte) (int, error) {
	count, err := s.LimitedReader.Read(into)
	if err != nil && !errors.Is(err, io.EOF) {
		s.err = err
	}

	return count, err
}

// readList passes the elements of the response to the list. It reports whether the response is the expected JSON. It returns an error
// if the response is incomplete or too large.
func (c *Client) readList(response *http.Response, list List) (bool, error) {
	body := &source{LimitedReader: io.LimitedReader{R: response.Body, N: maxListBytes + 1}}
	problem := list.read(body)

	switch {
	case body.err != nil:
		return false, c.unanswered(response.Request.Context(), body.err)
	case body.N <= 0:
		return false, c.tooLarge(maxListBytes)
	default:
		return problem == nil, nil
	}
}
