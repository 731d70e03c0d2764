package deployments

import "net/http"

// oneAttempt wraps a transport so that client-go does not repeat calls after a lost connection. Without it, client-go would make
// ten attempts, one per second.
func oneAttempt(next http.RoundTripper) http.RoundTripper { return attempts{next} }

type attempts struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (a attempts) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := a.next.RoundTrip(request)
	if err != nil {
		return nil, lostError{err}
	}

	return response, nil
}

// lostError hides the message of a lost connection. From this message, client-go would conclude that it may repeat the call.
type lostError struct{ cause error }

func (lostError) Error() string { return "the cluster cannot be reached" }

func (e lostError) Unwrap() error { return e.cause }
