package operator

import (
	"net/http"

	"github.com/environment-broker/environment-broker/broker/quota"
	"github.com/environment-broker/environment-broker/internal/httpserver"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
	"github.com/environment-broker/environment-broker/internal/operatorapi/operatorserver"
)

// ListQuotas returns the quotas, each with the groups that use the most of it.
func (a *API) ListQuotas(r *http.Request, query operatorserver.Query) (httpserver.Response, error) {
	statuses, err := a.Quotas.List(r.Context(), quota.Filter{
		Name: query.Get("name"), GlobalAccountID: query.Get("account"), SubAccountID: query.Get("subaccount"), Size: query.Page.Size,
	})
	if err != nil {
		return httpserver.Response{}, err
	}

	list := operatorapi.QuotaList{Data: []operatorapi.Quota{}}

	for _, status := range statuses {
		shown := operatorapi.Quota{
			Name: status.Quota.Name, Per: status.Quota.Per, Regions: status.Quota.Regions, Limit: *status.Quota.Limit,
			Groups: []operatorapi.QuotaGroup{}, More: status.More,
		}

		for _, id := range status.Quota.Plans {
			shown.Plans = append(shown.Plans, a.planName(id))
		}

		for _, group := range status.Groups {
			shown.Groups = append(shown.Groups, operatorapi.QuotaGroup{
				Account: group.GlobalAccountID, Subaccount: group.SubAccountID, Plan: a.planName(group.PlanID), Region: group.Region,
				Used: group.Used, Limit: group.Limit,
			})
		}

		list.Data = append(list.Data, shown)
	}

	return httpserver.OK(list), nil
}

// planName returns the name of a plan, or its ID if the catalog does not contain it.
func (a *API) planName(id string) string {
	if plan, known := a.Catalog.ByID(id); known {
		return plan.Name
	}

	return id
}
