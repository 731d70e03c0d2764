package broker

import (
	"context"
	"errors"
	"net/http"

	"github.com/environment-broker/environment-broker/broker/catalog"
	"github.com/environment-broker/environment-broker/broker/quota"
	"github.com/environment-broker/environment-broker/internal/httpserver"
)

// The names of rules for violations that do not concern a parameter. Clients depend on these names, so they must never change.
const (
	ruleExists  = "exists"  // the ID is in use by a different order, or by an instance that failed or is being deleted
	ruleQuota   = "quota"   // the account has used up its quota for the plan
	ruleOffered = "offered" // the plan is closed for new instances
)

// validation is the body of the response to a validate request.
type validation struct {
	// Valid reports whether a provision request with the same body would be accepted now.
	Valid bool `json:"valid"`
	// Errors lists the reasons for a rejection; see catalog.Violations. If the order is valid, the list is empty, not null.
	Errors []catalog.Violation `json:"errors"`
	// Resolved is absent if the parameters break a rule of the plan.
	Resolved *catalog.Resolved `json:"resolved,omitempty"`
	// Quota is absent if the plan has no limit.
	Quota *validatedQuota `json:"quota,omitempty"`
}

// validatedQuota contains the number of instances of the plan that an account may have, and how many it can still create.
type validatedQuota struct {
	Limit int `json:"limit"`
	Left  int `json:"left"`
}

// validate handles POST /v2/service_instances/{instance_id}/validate, an extension of the protocol. The body is the same as in a
// provision request. The response describes the outcome of such a request, and nothing is stored.
func (a *api) validate(r request) (httpserver.Response, error) {
	request, err := a.readProvisionRequest(r)
	if err != nil {
		return httpserver.Response{}, err
	}

	request.acceptsIncomplete = true // the result does not depend on accepts_incomplete

	result, err := a.validationOf(r.Context(), request)
	if err != nil {
		return httpserver.Response{}, err
	}

	return httpserver.OK(result), nil
}

// validationOf runs the checks of a creation without storing anything. The result lists the reasons to reject the order.
// An error means that the database failed or a concurrent request interfered.
func (a *api) validationOf(ctx context.Context, request provisionRequest) (validation, error) {
	result := validation{Errors: []catalog.Violation{}}

	_, accept, err := a.findExisting(ctx, request)

	switch refusal := httpserver.RefusalOf(err); {
	case errors.Is(err, errLostRace):
		return result, concurrent()
	case err != nil && refusal.Status >= http.StatusInternalServerError:
		return result, err
	case err != nil:
		result.Errors = append(result.Errors, catalog.Violation{Rule: ruleExists, Message: refusal.Description})
	}

	if len(request.violations) == 0 {
		result.Resolved = catalog.ResolvedOf(request.instance, a.RangesLeftOpen != nil && a.RangesLeftOpen())
	}

	if accept.statement != nil { // the rules do not apply to a repeated request for an existing instance
		result.Errors = append(result.Errors, request.violations...)

		if !request.plan.Offered() {
			result.Errors = append(result.Errors, catalog.Violation{Field: "plan_id", Rule: ruleOffered, Message: textNotOffered})
		}
	}

	if err := a.validateQuota(ctx, request, &result); err != nil {
		return result, err
	}

	if accept.statement != nil && len(request.violations) == 0 { // without violations, the region is known
		err := a.Quotas.Look(ctx, request.instance)

		if exceeded, is := errors.AsType[*quota.ExceededError](err); is {
			result.Errors = append(result.Errors, catalog.Violation{Rule: ruleQuota, Message: exceeded.Error()})
		} else if err != nil {
			return result, err
		}
	}

	result.Valid = len(result.Errors) == 0

	return result, nil
}

// validateQuota adds the account's quota to the result, and a violation if the quota is used up.
func (a *api) validateQuota(ctx context.Context, request provisionRequest, result *validation) error {
	if !request.plan.OnePerAccount() {
		return nil
	}

	used, err := a.usedQuota(ctx, a.DB.Reader(), request.plan, request.instance.GlobalAccountID, request.instance.ID)
	if err != nil {
		return err
	}

	result.Quota = &validatedQuota{Limit: 1, Left: 1}

	if used != "" {
		result.Quota.Left = 0
		result.Errors = append(result.Errors, catalog.Violation{Field: "plan_id", Rule: ruleQuota, Message: used})
	}

	return nil
}
