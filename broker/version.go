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
	majorVersion  = 2
	// deferredBinds and endpointsTold are the minor versions that brought bindings that are made later, and endpoints of bindings.
	deferredBinds, endpointsTold = 14, 15
)

// speaks reports whether the platform knows what the minor version brought.
func speaks(r *http.Request, since int) bool {
	_, minor, _ := strings.Cut(r.Header.Get(versionHeader), ".")
	version, err := strconv.Atoi(minor)

	return err != nil || version >= since // a number too large to be read is no old one
}

// checkVersion refuses versions that are not served. Minor versions only add to each other, so each of them is served.
func checkVersion(next http.Handler) http.Handler {
	pattern := regexp.MustCompile(`^(\d+)\.(\d+)$`)

	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sent := r.Header.Get(versionHeader)

		if parts := pattern.FindStringSubmatch(sent); parts != nil {
			if major, err := strconv.Atoi(parts[1]); err == nil && major == majorVersion {
				next.ServeHTTP(w, r)

				return
			}
		}

		description := fmt.Sprintf("The header %s is %q, this broker serves version 2.17.", versionHeader, sent)
		if sent == "" {
			description = fmt.Sprintf("The header %s is missing, this broker serves version 2.17.", versionHeader)
		}

		httpserver.Endpoint(func(*http.Request) (httpserver.Answer, error) {
			return httpserver.Answer{}, httpserver.Refuse(http.StatusPreconditionFailed, description)
		}).ServeHTTP(w, r)
	})
}
