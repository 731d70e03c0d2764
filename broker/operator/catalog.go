package operator

import (
	"net/http"

	"github.com/environment-broker/environment-broker/internal/httpserver"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
)

// getCatalog answers GET /catalog: what this replica offers, and what keeps it from offering something else.
func (a *api) getCatalog(*http.Request) (httpserver.Answer, error) {
	told := operatorapi.Catalog{ETag: a.Catalog.Published().ETag, Plans: a.Catalog.Offered()}

	if problem := a.Catalog.Problem(); problem != nil {
		told.Problem = &operatorapi.CatalogProblem{Message: problem.Text, Since: problem.Since}
	}

	return httpserver.OK(told), nil
}
