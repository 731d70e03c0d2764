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
		most   int64
		cut    bool
	}{
		"Fits":    {"an answer as long as it may be is read to its end", int64(len("content")), false},
		"TooLong": {"an answer that is longer is broken off", int64(len("content")) - 1, true},
	}

	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://system", http.NoBody)
			if err != nil {
				t.Fatal(err)
			}

			response, err := upstream.Bounded(test.most)(roundTrip(answers(http.StatusOK))).RoundTrip(request)
			if err != nil {
				t.Fatal(err)
			}
			defer response.Body.Close()

			text, err := io.ReadAll(response.Body)
			if _, cut := errors.AsType[*http.MaxBytesError](err); cut != test.cut || int64(len(text)) != test.most {
				t.Errorf("%s: %d bytes of at most %d are read, error %v", test.reason, len(text), test.most, err)
			}
		})
	}
}
