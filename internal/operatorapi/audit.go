package operatorapi

import "time"

// AuditEntry is something that somebody did, or tried to do.
type AuditEntry struct {
	ID string    `json:"id"`
	At time.Time `json:"at"`
	// Action is a kind of operation, or cancel, retry, skip, adminkubeconfig, bind, unbind, or access for a request that was not let in
	// and would have changed nothing.
	Action      string `json:"action"`
	InstanceID  string `json:"instanceID,omitempty"`
	OperationID string `json:"operationID,omitempty"`
	BindingID   string `json:"bindingID,omitempty"`
	By          Actor  `json:"by"`
	// Status is the HTTP status of the answer, Code the word for machines of one that is no success.
	Status int    `json:"status"`
	Code   string `json:"code,omitempty"`
	// Reason is what an operator gave as one.
	Reason string `json:"reason,omitempty"`
	// Before and After are what was changed, as far as that is no secret.
	Before map[string]any `json:"before,omitempty"`
	After  map[string]any `json:"after,omitempty"`
	// Missed counts refusals before this one that were left out, because there were too many.
	Missed int `json:"missed,omitempty"`
}

// Actor is who did something.
type Actor struct {
	// User was found out by Means: password, token or certificate. Both are absent where nobody was known.
	User  string `json:"user,omitempty"`
	Means string `json:"means,omitempty"`
	// Originator is the user of the Platform on whose behalf it was done, as that says.
	Platform   string `json:"platform,omitempty"`
	Originator string `json:"originator,omitempty"`
	// Address is where the connection came from, RequestID what the client called the request.
	Address   string `json:"address,omitempty"`
	RequestID string `json:"requestID,omitempty"`
}

// AuditList is a page of entries, the newest first.
type AuditList struct {
	Page

	Data []AuditEntry `json:"data"`
}
