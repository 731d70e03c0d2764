package upstream_test

import (
	"errors"
	"io"
	"net/http"
	"testing"

	"github.com/environment-broker/environment-broker/internal/upstream"
)

type roundTrip act

// RoundTrip implements http.RoundTripper.
func (r roundTrip) RoundTrip(request *http.Request) (*http.Response, error) { return r(request) }

func TestBounded(t *testing.T) {
	cases := map[string]struct {
		reason string
		limit  int64
		cut    bool
	}{
		"Fits":    {"a body of the maximum size is read to its end", int64(len("content")), false},
		"TooLong": {"reading a longer body fails", int64(len("content")) - 1, true},
	}

	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://system", http.NoBody)
			if err != nil {
				t.Fatal(err)
			}

			response, err := upstream.Bounded(test.limit)(roundTrip(answers(http.StatusOK))).RoundTrip(request)
			if err != nil {
				t.Fatal(err)
			}
			defer response.Body.Close()

			text, err := io.ReadAll(response.Body)
			if _, cut := errors.AsType[*http.MaxBytesError](err); cut != test.cut || int64(len(text)) != test.limit {
				t.Errorf("%s: read %d bytes of at most %d, error %v", test.reason, len(text), test.limit, err)
			}
		})
	}
}
