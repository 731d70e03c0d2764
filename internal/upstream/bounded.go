package upstream

import "net/http"

// Bounded breaks off answers that are longer than so many bytes: reading them fails.
func Bounded(most int64) func(next http.RoundTripper) http.RoundTripper {
	return func(next http.RoundTripper) http.RoundTripper { return bounded{next: next, most: most} }
}

type bounded struct {
	next http.RoundTripper
	most int64
}

// RoundTrip implements http.RoundTripper.
func (b bounded) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := b.next.RoundTrip(request)
	if err != nil {
		return nil, err
	}

	response.Body = http.MaxBytesReader(nil, response.Body, b.most)

	return response, nil
}
