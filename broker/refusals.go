package broker

import (
	"net/http"

	"github.com/environment-broker/environment-broker/internal/httpserver"
)

// The codes that the protocol knows, and the sentences by which clients recognise some of them.
const (
	codeAsyncRequired       = "AsyncRequired"
	codeConcurrency         = "ConcurrencyError"
	codeMaintenanceConflict = "MaintenanceInfoConflict"
	codePlanChange          = "PlanChangeNotSupported"

	textAsyncRequired = "This service plan requires client support for asynchronous service operations."
	textConcurrency   = "The Service Broker does not support concurrent requests that mutate the same resource."
)

// Sentences that platforms show to users.
const (
	textGone            = "There is no such instance any more."
	textNoInstance      = "There is no such instance."
	textNotReady        = "The instance is not there yet: its creation has not succeeded."
	textOther           = "An instance with this id exists, and it was ordered in another way."
	textProvisionFailed = "The creation of this instance failed. Delete it, then it can be created anew."
	textDeletionFailed  = "The deletion of this instance failed. Delete it again, then it can be created anew."
	textNotOffered      = "This plan is not offered: new instances need another one."
	textPlanChange      = "An instance of plan %s cannot be changed to plan %s."
	textMaintenance     = "maintenance_info.version is not that of the plan in the catalog, which is %s."
	textNotSuspendable  = "Instances of plan %s cannot be suspended: the cluster would be removed with all that is in it."
	textSuspensionOpen  = "The suspension of this instance has not come to its end. Suspend it again, or delete it."
	textResumptionOpen  = "The resumption of this instance has not come to its end. Resume it again without other changes, suspend it, or delete it."
	textExpired         = "This instance has expired. It can only be deleted."
	textNoMovement      = "context.globalaccount_id is not the account of the instance, and this broker does not move instances to other accounts."
	textNotBindable     = "The instance has no runtime to bind to: its creation failed, it is suspended, or its cluster is not ours."
	textNoBinding       = "There is no such binding."
	textOtherBinding    = "A binding with this id exists, and it was ordered in another way."
	textBindingNotReady = "The binding is not there yet, has expired, or is being removed."
	textBindingGone     = "The binding was removed, or its creation was canceled, before it was ready."
	textRemovalCanceled = "The removal of the binding was canceled. Send the request again."
	textStillRunning    = "The runtime takes longer than a request may. Nothing is lost: send the same request again."
)

func invalid(description string) error { return httpserver.Refuse(http.StatusBadRequest, description) }

func conflict(description string) error { return httpserver.Refuse(http.StatusConflict, description) }

func notFound(description string) error { return httpserver.Refuse(http.StatusNotFound, description) }

func gone() error { return httpserver.Refuse(http.StatusGone, textGone) }

func asyncRequired() error { return unprocessable(codeAsyncRequired, textAsyncRequired) }

func concurrent() error { return unprocessable(codeConcurrency, textConcurrency) }

func unprocessable(code, description string) error {
	return &httpserver.Refusal{Status: http.StatusUnprocessableEntity, Code: code, Description: description}
}
