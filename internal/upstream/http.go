package upstream

import (
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/environment-broker/environment-broker/internal/failure"
)

// maxExcerpt is the maximum length of an excerpt in characters. Kubernetes errors about a Shoot often have more than 200
// characters, because they name the action, the object and the field before the cause.
const maxExcerpt = 400

// IsURL reports whether the text is an absolute HTTP or HTTPS URL.
func IsURL(text string) bool {
	parsed, err := url.Parse(text)

	return err == nil && parsed.Host != "" && (parsed.Scheme == "http" || parsed.Scheme == "https")
}

// CheckURL returns an error that names the variable unless its value is an http or https URL.
func CheckURL(variable, value string) error {
	return failure.Unless(IsURL(value), "%s: must be an http or https URL", variable)
}

// NoRedirects is an http.Client.CheckRedirect function that prevents the client from following redirects. A redirect could send
// tokens and secrets to another host.
func NoRedirects(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// WithoutURL returns the cause of a net/http error, without the URL of the request.
func WithoutURL(err error) error {
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		return wrapped.Err
	}

	return err
}

// RetryAfter returns the pause that the Retry-After header requests, in seconds or as a date, but at most limit. It returns 0 if the header
// is missing or invalid, or if the date has passed.
func RetryAfter(header http.Header, now time.Time, limit time.Duration) time.Duration {
	value := header.Get("Retry-After")

	pause := time.Duration(0)
	if seconds, err := strconv.ParseUint(value, 10, 31); err == nil {
		pause = time.Duration(seconds) * time.Second
	} else if date, err := http.ParseTime(value); err == nil {
		pause = date.Sub(now)
	}

	return min(max(pause, 0), limit)
}

// Excerpt converts an untrusted string to one printable line of at most 400 characters. It omits the middle of a longer string.
func Excerpt(text string) string { return failure.Printable(text, maxExcerpt) }
