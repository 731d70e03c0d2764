package broker

import (
	"net/http"
	"strings"

	"github.com/environment-broker/environment-broker/internal/httpserver"
)

// getCatalog handles GET /v2/catalog. The response is 304 if the platform already has the current catalog. The
// catalog is large and platforms fetch it often, so it is rendered only when it is loaded.
func (a *api) getCatalog(r *http.Request) (httpserver.Response, error) {
	if _, err := a.region(r); err != nil {
		return httpserver.Response{}, err
	}

	published := a.Catalog.Published()
	response := httpserver.OK(published.Body)
	response.Header = http.Header{"Etag": {published.ETag}}

	if matchesETag(r.Header.Values("If-None-Match"), published.ETag) {
		response.Status, response.Body = http.StatusNotModified, nil
	}

	return response, nil
}

// matchesETag reports whether any value in an If-None-Match header matches the entity tag. The comparison is weak (RFC 9110,
// section 8.8.3.2), because proxies that compress a response prefix the tag with W/.
func matchesETag(header []string, etag string) bool {
	for _, value := range header {
		for candidate := range strings.SplitSeq(value, ",") {
			candidate = strings.TrimPrefix(strings.TrimSpace(candidate), "W/")
			if candidate == etag || candidate == "*" {
				return true
			}
		}
	}

	return false
}
