package events_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/broker/events"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/storage/eventlog"
)

func TestCloudEvent(t *testing.T) {
	event := eventlog.Event{
		Position: 42, ID: "0123456789abcdef", Type: eventlog.OperationFailed, At: time.Date(2030, 1, 2, 3, 4, 5, 6000, time.UTC), InstanceID: "a/b",
		BindingID: "binding", OperationID: "operation", Kind: environment.KindUnbind, Account: "account", Reason: "quota", Component: "gardener",
	}

	for _, c := range []struct{ address, source, subject string }{
		{"https://broker.example.com", "https://broker.example.com", "runtimes/a%2Fb"},
		{"", "/environment-broker", "orchestrations/o"},
	} {
		if c.address == "" {
			event.OrchestrationID = "o"
		}

		encoded, err := json.Marshal(events.CloudEvent(event, c.address))
		if err != nil {
			t.Fatal(err)
		}

		var got map[string]any
		if err := json.Unmarshal(encoded, &got); err != nil {
			t.Fatal(err)
		}

		data := map[string]any{
			"instanceID": "a/b", "bindingID": "binding", "operationID": "operation", "kind": "unbind", "globalAccountID": "account",
			"reason": "quota", "component": "gardener",
		}
		if event.OrchestrationID != "" {
			data["orchestrationID"] = event.OrchestrationID
		}

		if diff := cmp.Diff(map[string]any{
			"specversion": "1.0", "id": "0123456789abcdef", "source": c.source, "type": "io.github.environment-broker.operation.failed",
			"subject": c.subject, "time": "2030-01-02T03:04:05.000006Z", "datacontenttype": "application/json",
			"sequence": "00000000000000000042", "data": data,
		}, got); diff != "" {
			t.Errorf("-want +got\n%s", diff)
		}
	}
}
