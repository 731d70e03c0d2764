package events

import (
	"fmt"

	"github.com/environment-broker/environment-broker/internal/operatorapi"
	"github.com/environment-broker/environment-broker/storage/eventlog"
)

const (
	// TypePrefix is the prefix of event types in CloudEvents. The CloudEvents specification recommends a reverse domain name as
	// prefix.
	TypePrefix = "io.github.environment-broker."

	// defaultSource is the source of events if the broker has no public URL.
	defaultSource = "/environment-broker"
)

// CloudEvent converts the event to CloudEvents 1.0. publicURL is the public URL of the broker, or empty.
func CloudEvent(event eventlog.Event, publicURL string) operatorapi.CloudEvent {
	source := publicURL
	if source == "" {
		source = defaultSource
	}

	return operatorapi.CloudEvent{
		Specversion: "1.0", ID: event.ID, Source: source, Type: TypePrefix + string(event.Type), Subject: event.Subject(), Time: event.At.UTC(),
		Datacontenttype: "application/json", Sequence: fmt.Sprintf("%020d", event.Position),
		Data: operatorapi.CloudEventData{
			InstanceID: event.InstanceID, BindingID: event.BindingID, OrchestrationID: event.OrchestrationID, OperationID: event.OperationID,
			Kind: event.Kind, GlobalAccountID: event.Account, Plan: event.Plan, Region: event.Region, State: event.State, Wave: event.Wave,
			Reason: event.Reason, Component: event.Component,
		},
	}
}
