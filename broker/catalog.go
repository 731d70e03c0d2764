package broker

import (
	"net/http"
	"strings"

	"github.com/environment-broker/environment-broker/internal/httpserver"
)

// getCatalog answers GET /v2/catalog, with 304 if the platform has the current catalog. Platforms fetch the
// catalog often and it is long, so the response is rendered when the catalog is loaded.
func (a *api) getCatalog(r *http.Request) (httpserver.Response, error) {
	published := a.Catalog.Published()
	response := httpserver.OK(published.Body)
	response.Header = http.Header{"Etag": {published.ETag}}

	if matchesETag(r.Header.Values("If-None-Match"), published.ETag) {
		response.Status, response.Body = http.StatusNotModified, nil
	}

	return response, nil
}

// matchesETag compares the values of an If-None-Match header with the entity tag. The comparison is weak (RFC
// 9110, section 8.8.3.2): proxies that compress a response mark the tag with W/.
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
