package broker

import (
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"

	"github.com/environment-broker/environment-broker/internal/httpserver"
)

const (
	versionHeader = "X-Broker-API-Version"
	// asyncBindings and bindingEndpoints are the minor versions of the API that introduced asynchronous bindings and the endpoints
	// of bindings.
	asyncBindings, bindingEndpoints = 14, 15
)

// supports reports whether the platform uses the given minor version of the API or a later one. checkVersion must
// have accepted the header before.
func supports(r *http.Request, minorVersion int) bool {
	_, minor, _ := strings.Cut(r.Header.Get(versionHeader), ".")
	version, err := strconv.Atoi(minor)

	return err != nil || version >= minorVersion // a number that overflows int is a later version
}

// checkVersion rejects requests for another major version of the API. Minor versions are compatible with each
// other.
func checkVersion(next http.Handler) http.Handler {
	supported := regexp.MustCompile(`^0*2\.\d+$`)

	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sent := r.Header.Get(versionHeader)

		if supported.MatchString(sent) {
			next.ServeHTTP(w, r)

			return
		}

		description := fmt.Sprintf("The %s header is %q, but this broker serves version 2.17.", versionHeader, sent)
		if sent == "" {
			description = fmt.Sprintf("The %s header is missing. This broker serves version 2.17.", versionHeader)
		}

		httpserver.Endpoint(func(*http.Request) (httpserver.Response, error) {
			return httpserver.Response{}, httpserver.Refuse(http.StatusPreconditionFailed, description)
		}).ServeHTTP(w, r)
	})
}
