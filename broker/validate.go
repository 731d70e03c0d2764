package broker

import (
	"context"
	"errors"
	"net/http"

	"github.com/environment-broker/environment-broker/broker/catalog"
	"github.com/environment-broker/environment-broker/internal/httpserver"
)

// Rules of a violation that do not concern a parameter. Clients see them, so they never change.
const (
	ruleExists  = "exists"  // the ID belongs to another instance
	ruleQuota   = "quota"   // the account has used up its quota of the plan
	ruleOffered = "offered" // the plan is closed for new instances
)

// validation is the answer to a validation.
type validation struct {
	// Valid reports whether a provision request with the same body would be accepted now.
	Valid bool `json:"valid"`
	// Errors has all reasons for a rejection, empty but not null if the order is valid.
	Errors []catalog.Violation `json:"errors"`
	// Resolved is absent if the parameters break a rule of the plan.
	Resolved *catalog.Resolved `json:"resolved,omitempty"`
	// Quota is absent if there is no limit.
	Quota *quota `json:"quota,omitempty"`
}

// quota is the number of instances of the plan that the account may have, and how many more it may create.
type quota struct {
	Limit int `json:"limit"`
	Left  int `json:"left"`
}

// validate answers POST /v2/service_instances/{instance_id}/validate, an extension of the protocol: it has the
// body of a provision request and reports the outcome of that request. It stores nothing.
func (a *api) validate(r request) (httpserver.Response, error) {
	request, err := a.readProvisionRequest(r)
	if err != nil {
		return httpserver.Response{}, err
	}

	request.acceptsIncomplete = true // not a property of the instance

	result, err := a.validationOf(r.Context(), request)
	if err != nil {
		return httpserver.Response{}, err
	}

	return httpserver.OK(result), nil
}

// validationOf checks the order like a creation, without storing anything. Failures of the database are errors;
// rejections of the order are part of the result.
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

	if accept != nil { // rules do not apply to the instance of a repeated request
		result.Errors = append(result.Errors, request.violations...)

		if !request.plan.Offered() {
			result.Errors = append(result.Errors, catalog.Violation{Field: "plan_id", Rule: ruleOffered, Message: textNotOffered})
		}
	}

	if err := a.validateQuota(ctx, request, &result); err != nil {
		return result, err
	}

	result.Valid = len(result.Errors) == 0

	return result, nil
}

// validateQuota adds the quota of the account to the result, and an error if it is used up.
func (a *api) validateQuota(ctx context.Context, request provisionRequest, result *validation) error {
	if !request.plan.OnePerAccount() {
		return nil
	}

	holder, err := a.quotaHolder(ctx, a.DB.Reader(), request.plan, request.instance.GlobalAccountID, request.instance.ID)
	if err != nil {
		return err
	}

	result.Quota = &quota{Limit: 1, Left: 1}

	if holder != "" {
		result.Quota.Left = 0
		result.Errors = append(result.Errors, catalog.Violation{Field: "plan_id", Rule: ruleQuota, Message: quotaText(request.plan, holder)})
	}

	return nil
}
