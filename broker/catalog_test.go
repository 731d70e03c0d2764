package broker_test

import (
	"strings"
	"testing"
)

func TestCatalog(t *testing.T) {
	b := newFixture(t)

	for _, form := range []string{"/v2", "/oauth/v2", "/oauth/cf-us10/v2"} {
		got := b.want("each path form serves the catalog", b.do(call{method: "GET", path: form + "/catalog"}), 200)
		if services, ok := got.Body["services"].([]any); !ok || len(services) != 1 {
			b.Errorf("B1: services is %T", got.Body["services"])
		}

		if strings.Contains(got.Raw, "null") {
			b.Error("B1, B21: the catalog contains null")
		}

		if got.Raw != string(b.options.Catalog.Published().Body) {
			b.Errorf("%s serves a different catalog", form)
		}
	}
}

func TestConditionalCatalog(t *testing.T) {
	b := newFixture(t)
	tag := b.do(call{method: "GET", path: "/v2/catalog"}).Header.Get("Etag")

	cases := map[string]struct {
		reason string
		header string
		status int
	}{
		"Same":  {"a matching tag", tag, 304},
		"Weak":  {"the comparison is weak", "W/" + tag, 304},
		"Among": {"several tags", `"x", ` + tag, 304},
		"Any":   {"any tag", "*", 304},
		"Other": {"another tag", `"x"`, 200},
	}

	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			got := b.want(test.reason, b.do(call{
				method: "GET", path: "/v2/catalog", header: map[string]string{"If-None-Match": test.header},
			}), test.status)
			if (got.Raw == "") != (test.status == 304) || got.Header.Get("Etag") != tag {
				t.Errorf("\n%s\ngot %d with ETag %s and body %q", test.reason, got.Status, got.Header.Get("Etag"), got.Raw)
			}
		})
	}
}

// TestCatalogPromisesOnlyClusters checks that the built-in catalog does not promise Kyma or modules without APP_KYMA_VERSION, because
// orders then install neither.
func TestCatalogPromisesOnlyClusters(t *testing.T) {
	b := newFixture(t)

	text := strings.ReplaceAll(b.want("the catalog", b.do(call{method: "GET", path: "/v2/catalog"}), 200).Raw, "kymaruntime", "")
	text = strings.ReplaceAll(text, "Kyma modules are installed only if the plan lists them", "")

	for _, promise := range []string{"kyma", "module"} {
		if strings.Contains(strings.ToLower(text), promise) {
			t.Errorf("the catalog mentions %q", promise)
		}
	}
}
