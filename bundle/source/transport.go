package source

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"net/url"
	"time"
)

const (
	connectTimeout = 10 * time.Second
	headerTimeout  = time.Minute
	maxRedirects   = 5
)

// errRedirect is the error for a redirect that is not followed.
var errRedirect = errors.New("it redirects to an address without TLS, or more than 5 times")

// newClient returns an HTTP client for the requests of one fetch. The caller must close the client's idle connections.
// certificates contains CA certificates in PEM form; if it is empty, the system's CA certificates apply.
func newClient(insecureSkipVerify bool, certificates string) (*http.Client, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: insecureSkipVerify} //nolint:gosec // the author of the Bundle asks for it

	if certificates != "" {
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM([]byte(certificates)) {
			return nil, terminal("certificateData contains no PEM certificate")
		}
	}

	dialer := &net.Dialer{Timeout: connectTimeout}

	return &http.Client{
		Transport: &http.Transport{
			Proxy: http.ProxyFromEnvironment, DialContext: dialer.DialContext, TLSClientConfig: config, ForceAttemptHTTP2: true,
			TLSHandshakeTimeout: connectTimeout, ResponseHeaderTimeout: headerTimeout,
			DisableCompression: true, // the digest is of the uncompressed response
		},
		CheckRedirect: checkRedirect,
	}, nil
}

// checkRedirect limits the number of redirects, rejects redirects to addresses without TLS, and removes the credentials from
// requests to other hosts.
func checkRedirect(request *http.Request, via []*http.Request) error {
	first := via[0].URL
	if len(via) > maxRedirects || first.Scheme == "https" && request.URL.Scheme != "https" {
		return errRedirect
	}

	if request.URL.Host != first.Host || request.URL.Scheme != first.Scheme {
		request.Header.Del("Authorization")
		request.Header.Del("Cookie")
	}

	return nil
}

// unreachable converts the error of a request to a message for users. It does not quote addresses, because a redirect may contain
// credentials.
func unreachable(host string, err error) error {
	timeout := net.Error(nil)

	switch {
	case errors.Is(err, context.Canceled):
		return err
	case errors.Is(err, errRedirect):
		return terminal("%s cannot be used: %v", host, errRedirect)
	case errors.As(err, &timeout) && timeout.Timeout():
		return transient("%s did not respond in time", host)
	default:
		return transient("%s cannot be reached: %v", host, withoutAddress(err))
	}
}

// withoutAddress returns the cause of a url.Error, because the message of the url.Error itself would quote the address.
func withoutAddress(err error) error {
	if addressed, ok := errors.AsType[*url.Error](err); ok {
		return addressed.Err
	}

	return err
}

// rejected returns the error for a response whose status is not 200. Rejected credentials and missing files are transient, because
// they can be corrected without a change to the Bundle.
func rejected(host string, status int) error {
	switch {
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return transient("%s rejects the credentials with status %d: correct the Secret that the source names, or name one if it names none", host, status)
	case status == http.StatusNotFound, status == http.StatusRequestTimeout, status == http.StatusTooManyRequests, status >= http.StatusInternalServerError:
		return transient("%s responds with status %d %s", host, status, http.StatusText(status))
	default:
		return terminal("%s responds with status %d %s instead of 200", host, status, http.StatusText(status))
	}
}
