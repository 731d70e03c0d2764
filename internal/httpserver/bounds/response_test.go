package bounds_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/environment-broker/environment-broker/internal/httpserver/bounds"
)

type roundTrip func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (r roundTrip) RoundTrip(request *http.Request) (*http.Response, error) { return r(request) }

func TestResponses(t *testing.T) {
	const content = "content"

	for name, test := range map[string]struct {
		reason string
		limit  int64
		cut    bool
		body   io.Reader
	}{
		"Fits":    {"a body of the maximum size is read to its end", int64(len(content)), false, strings.NewReader(content)},
		"TooLong": {"reading a longer body fails", int64(len(content)) - 1, true, strings.NewReader(content)},
		"Slow":    {"the limit counts bytes, not reads", int64(len(content)) - 1, true, iotest.OneByteReader(strings.NewReader(content))},
	} {
		t.Run(name, func(t *testing.T) {
			next := roundTrip(func(*http.Request) (*http.Response, error) {
				return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(test.body)}, nil
			})

			response, err := bounds.Responses(test.limit)(next).RoundTrip(httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://system", http.NoBody))
			if err != nil {
				t.Fatal(err)
			}
			defer response.Body.Close()

			text, err := io.ReadAll(response.Body)
			if tooLarge, cut := errors.AsType[*bounds.ResponseError](err); cut != test.cut || cut && tooLarge.Limit != test.limit || int64(len(text)) != test.limit {
				t.Errorf("%s: read %d bytes of at most %d, error %v", test.reason, len(text), test.limit, err)
			}

			if again, err := response.Body.Read(make([]byte, 1)); again != 0 || err == nil {
				t.Errorf("%s: a further read returned %d bytes and error %v", test.reason, again, err)
			}
		})
	}
}

func TestResponsesPassesErrors(t *testing.T) {
	broken := errors.New("broken")
	next := roundTrip(func(*http.Request) (*http.Response, error) { return nil, broken })

	response, err := bounds.Responses(1)(next).RoundTrip(httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://system", http.NoBody))
	if response != nil {
		response.Body.Close()
	}

	if response != nil || !errors.Is(err, broken) {
		t.Errorf("got %v and the error %v, want the error of the transport", response, err)
	}
}
