package broker

import (
	"fmt"
	"net/http"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/httpserver"
)

// Error codes. The protocol defines the first three; the others are extensions. Clients recognize the first two by their
// descriptions, textAsyncRequired and textConcurrency.
const (
	codeAsyncRequired       = "AsyncRequired"
	codeConcurrency         = "ConcurrencyError"
	codeMaintenanceConflict = "MaintenanceInfoConflict"
	codePlanChange          = "PlanChangeNotSupported"
	codeProtected           = "DeletionProtected"
	codeQuota               = "QuotaExceeded"

	textAsyncRequired = "This service plan requires client support for asynchronous service operations."
	textOvertaken     = "The request was accepted, but another operation is creating or removing the runtime. Send the same request again after that operation has ended."
	textConcurrency   = "The Service Broker does not support concurrent requests that mutate the same resource."
)

// Descriptions that platforms show to users. OSB clients show at most 255 characters. A description states the
// problem and, if the user can do something about it, the remedy.
const (
	textShortBody       = "The body ended early or is malformed. Send the request again."
	textSlowBody        = "The body did not arrive in time. Send the request again."
	textNoInstance      = "The instance does not exist."
	textNotReady        = "The instance is not ready: it is being created, or its creation failed."
	textOther           = "An instance with this ID already exists, but it was ordered with different values."
	textProvisionFailed = "The creation of this instance failed. Delete it before you create it again."
	textDeletionFailed  = "The deletion of this instance failed. Delete it again before you create it again."
	textNotOffered      = "This plan is not available for new instances. Choose a different plan."
	textProtected       = "The instance is protected from deletion. Set its deletionProtection parameter to false, or ask an operator to lift the protection, then delete it again."
	textWrongIDs        = "service_id or plan_id does not match the instance, whose plan is %[1]s. If the platform shows a different plan, change it to %[1]s with an update of the instance, then try again."
	textPlanChange      = "The catalog does not allow a change from plan %s to plan %s. Keep the plan, or order a new instance with the requested plan."
	textMaintenance     = "maintenance_info.version does not match the plan's version in the catalog, which is %s. If the platform's catalog is stale, refresh it, for example with cf update-service-broker."
	textNotSuspendable  = "Instances of plan %s cannot be suspended, because a suspension deletes the cluster and everything in it."
	textSuspensionOpen  = "The suspension of this instance did not finish. Suspend it again, or delete it."
	textFormerCluster   = "The former cluster of the instance is still being removed. Resume the instance again later. If this lasts, ask the operator of the broker to clean up its leftovers."
	textResumptionOpen  = "The resumption of this instance did not finish. Resume it again without other changes, suspend it, or delete it."
	textExpired         = "This instance has expired. It can only be deleted."
	textNoMovement      = "context.globalaccount_id differs from the account of the instance. This broker does not move instances between accounts."
	textOtherAccount    = "context.globalaccount_id differs from the account of the instance."
	textOtherRegion     = "The platform may not use this region."
	textOtherTenant     = "The platform may not use instances of this account."
	textSharedMovement  = "context.globalaccount_id differs from the account of the instance. Only the platform that owns the instance can move it."
	textQuota           = "An account may have only one instance of plan %s, and this account already has instance %s. Delete that instance first."
	textQuotaElsewhere  = "An account may have only one instance of plan %s, and this account already has one. It was ordered through another platform."
	textNotBindable     = "The instance has no runtime to bind to: its creation or its deletion failed, it is suspended, or the tenant brought the cluster."
	textNoBinding       = "The binding does not exist."
	textOtherBinding    = "A binding with this ID already exists, but it was ordered with different values."
	textBindingNotReady = "The binding is not ready, has expired, or is being removed."
	textBindingGone     = "The binding was removed, or its creation was canceled, before it was ready."
	textRemovalCanceled = "The removal of the binding was canceled. Send the request again."
	textStillRunning    = "The operation did not finish in time and continues in the background. Send the same request again."
)

// wrongIDs rejects a request whose service or plan is not the one of the instance. The platform may have missed the end of a plan change.
func wrongIDs(instance environment.Instance) error {
	return invalid(fmt.Sprintf(textWrongIDs, instance.PlanName))
}

func invalid(description string) error { return httpserver.Refuse(http.StatusBadRequest, description) }

func forbidden(description string) error {
	return &httpserver.Refusal{Status: http.StatusForbidden, Code: "Forbidden", Description: description}
}

func conflict(description string) error { return httpserver.Refuse(http.StatusConflict, description) }

func notFound(description string) error { return httpserver.Refuse(http.StatusNotFound, description) }

func gone(description string) error { return httpserver.Refuse(http.StatusGone, description) }

// asyncRequired returns the error for a synchronous request whose work takes minutes.
func asyncRequired() error { return unprocessable(codeAsyncRequired, textAsyncRequired) }

// concurrent returns the error for a request that arrives while another operation is in progress. Platforms repeat such a
// request later.
func concurrent() error { return unprocessable(codeConcurrency, textConcurrency) }

// unprocessable returns a 422, for a valid request that the broker does not support in this form or in the current
// state of the instance. If code is empty, the response has no error code.
func unprocessable(code, description string) error {
	return &httpserver.Refusal{Status: http.StatusUnprocessableEntity, Code: code, Description: description}
}
