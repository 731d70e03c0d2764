package broker

import (
	"net/http"
	"strings"
	"time"

	"github.com/environment-broker/environment-broker/broker/catalog"
	"github.com/environment-broker/environment-broker/internal/httpserver"
)

// getCatalog answers GET /v2/catalog, with 304 when the platform has the catalog already.
func (a *api) getCatalog(r *http.Request) (httpserver.Answer, error) {
	published := a.Catalog.Published()
	answer := httpserver.OK(published.Body)
	answer.Header = http.Header{"Etag": {published.ETag}}

	if !published.Changed.IsZero() {
		answer.Header.Set("Last-Modified", published.Changed.UTC().Format(http.TimeFormat))
	}

	if unchanged(r.Header, published) {
		answer.Status, answer.Body = http.StatusNotModified, nil
	}

	return answer, nil
}

// unchanged reports whether the platform has what is published. Its entity tags count, and only without any its time.
func unchanged(header http.Header, published catalog.Published) bool {
	if tags := header.Values("If-None-Match"); len(tags) > 0 {
		return known(tags, published.ETag)
	}

	since, err := http.ParseTime(header.Get("If-Modified-Since"))

	return err == nil && !published.Changed.IsZero() && !published.Changed.Truncate(time.Second).After(since)
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
