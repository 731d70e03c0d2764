package console_test

import (
	"html"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/environment-broker/environment-broker/internal/auth"
)

// The IDs of plans in resources/plans. The catalog of the fixture offers aws, and does not offer azure.
const (
	planAWS   = "361c511f-f939-4621-b228-d0fb79a1fe15"
	planAzure = "4deee563-e5ec-4731-b9b1-53b42d855f0c"
)

// TestOrderPage shows the commands that order an instance, and none for a plan that is not offered.
func TestOrderPage(t *testing.T) {
	t.Parallel()

	f := newFixture(t)
	page := html.UnescapeString(f.page("/console/catalog/"+planAWS, http.StatusOK))

	for _, want := range []string{
		"ebctl login http://example.com --username USER\nebctl instance create my-runtime --plan aws --wait<",
		"cf create-service kymaruntime aws my-runtime<", `"plan_id": "` + planAWS + `"`, `"instance_name": "my-runtime"`, "curl -sS -u USER -X PUT",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %s:\n%s", want, page)
		}
	}

	address := regexp.MustCompile(`'http://example\.com/v2/service_instances/[0-9a-f-]{36}\?accepts_incomplete=true'`)
	if one, other := address.FindString(page), address.FindString(html.UnescapeString(f.page("/console/catalog/"+planAWS, http.StatusOK))); one == "" || one == other {
		t.Errorf("two visits order the instances %q and %q", one, other)
	}

	if page := f.page("/console/catalog/"+planAzure, http.StatusOK); !strings.Contains(page, "not offered") || strings.Contains(page, "<pre") {
		t.Errorf("the page of a plan that is not offered has commands:\n%s", page)
	}

	f.page("/console/catalog/none", http.StatusNotFound)

	for path, want := range map[string]string{
		"/console/instances": "There are no instances. The <a", "/console/instances?state=failed": "No instance matches.", "/console/": "There are no instances",
	} {
		if page := f.page(path, http.StatusOK); !strings.Contains(page, want) {
			t.Errorf("%s lacks %q:\n%s", path, want, page)
		}
	}

	if response := f.do(http.MethodPost, "/console/catalog/"+planAWS, nil, auth.RoleAdmin); response.Code != http.StatusMethodNotAllowed {
		t.Errorf("POST: %d", response.Code)
	}
}
