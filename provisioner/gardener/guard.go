package gardener

import "net/http"

// exceptWatches applies the wrapper to all requests but watches.
func exceptWatches(wrap func(http.RoundTripper) http.RoundTripper) func(http.RoundTripper) http.RoundTripper {
	return func(next http.RoundTripper) http.RoundTripper {
		return divided{watches: next, others: wrap(next)}
	}
}

type divided struct {
	watches, others http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (d divided) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.URL.Query().Get("watch") == "true" {
		return d.watches.RoundTrip(request)
	}

	return d.others.RoundTrip(request)
}
