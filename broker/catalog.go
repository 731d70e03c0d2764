package broker

import (
	"net/http"
	"strings"

	"github.com/environment-broker/environment-broker/internal/rest"
)

// getCatalog answers GET /v2/catalog, with 304 when the platform has the catalog already.
func (a *api) getCatalog(r *http.Request) (rest.Answer, error) {
	body, etag := a.Catalog.Published()
	answer := rest.OK(body)
	answer.Header = http.Header{"Etag": {etag}}

	if known(r.Header.Values("If-None-Match"), etag) {
		answer.Status, answer.Body = http.StatusNotModified, nil
	}

	return answer, nil
}

// known reports whether the tag is one of the header's.
func known(header []string, tag string) bool {
	for _, value := range header {
		for candidate := range strings.SplitSeq(value, ",") {
			candidate = strings.TrimPrefix(strings.TrimSpace(candidate), "W/")
			if candidate == tag || candidate == "*" {
				return true
			}
		}
	}

	return false
}
