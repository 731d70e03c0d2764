package gardener

import "net/http"

// aroundWatches has all requests but watches go through the guard.
func aroundWatches(guard func(http.RoundTripper) http.RoundTripper) func(http.RoundTripper) http.RoundTripper {
	return func(next http.RoundTripper) http.RoundTripper {
		return divided{watches: next, others: guard(next)}
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
