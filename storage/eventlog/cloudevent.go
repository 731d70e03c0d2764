package eventlog

import (
	"encoding/json"
	"fmt"
	"net/url"
	"time"

	"github.com/environment-broker/environment-broker/internal/failure"
)

// TypePrefix precedes the types in CloudEvents, whose specification asks for a reversed domain name.
const TypePrefix = "io.github.environment-broker."

// cloudEvent is an event in the JSON format of CloudEvents 1.0.
type cloudEvent struct {
	SpecVersion     string `json:"specversion"`
	ID              string `json:"id"`
	Source          string `json:"source"`
	Type            string `json:"type"`
	Subject         string `json:"subject"`
	Time            string `json:"time"`
	DataContentType string `json:"datacontenttype"`
	// Sequence is the position, with leading zeros, so that texts sort like numbers.
	Sequence string `json:"sequence"`
	Data     data   `json:"data"`
}

// data is the content of an event. Fields that do not apply are left out.
type data struct {
	InstanceID      string `json:"instanceID,omitempty"`
	BindingID       string `json:"bindingID,omitempty"`
	OrchestrationID string `json:"orchestrationID,omitempty"`
	OperationID     string `json:"operationID,omitempty"`
	Kind            string `json:"kind,omitempty"`
	GlobalAccountID string `json:"globalAccountID,omitempty"`
	Plan            string `json:"plan,omitempty"`
	Region          string `json:"region,omitempty"`
	State           string `json:"state,omitempty"`
	Wave            int    `json:"wave,omitempty"`
	Reason          string `json:"reason,omitempty"`
	Component       string `json:"component,omitempty"`
}

// CloudEvent returns the event in the JSON format of CloudEvents 1.0. source identifies the broker.
func (e Event) CloudEvent(source string) ([]byte, error) {
	encoded, err := json.Marshal(cloudEvent{
		SpecVersion: "1.0", ID: e.ID, Source: source, Type: TypePrefix + string(e.Type), Subject: e.Subject(),
		Time: e.At.UTC().Format(time.RFC3339Nano), DataContentType: "application/json", Sequence: fmt.Sprintf("%020d", e.Position),
		Data: data{
			InstanceID: e.InstanceID, BindingID: e.BindingID, OrchestrationID: e.OrchestrationID, OperationID: e.OperationID, Kind: e.Kind,
			GlobalAccountID: e.Account, Plan: e.Plan, Region: e.Region, State: e.State, Wave: e.Wave, Reason: e.Reason, Component: e.Component,
		},
	})

	return encoded, failure.While(err, "encoding event %s", e.ID)
}

// Subject returns the path of the object in which the change happened. Events of one subject are in the order of their changes.
func (e Event) Subject() string {
	if e.OrchestrationID != "" {
		return "orchestrations/" + url.PathEscape(e.OrchestrationID)
	}

	return "runtimes/" + url.PathEscape(e.InstanceID)
}
