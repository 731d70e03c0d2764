package e2e

import (
	"strings"
	"testing"
	"time"

	broker "github.com/environment-broker/environment-broker/broker/service"
	provisioner "github.com/environment-broker/environment-broker/provisioner/service"
	"github.com/environment-broker/environment-broker/test/harness"
)

// TestProvisionerFaults makes the Provisioner disconnect, hang or return garbage. `ebctl operation explain` must name the
// cause, and the operation must succeed after the fault is removed.
func TestProvisionerFaults(t *testing.T) {
	t.Parallel()

	cases := map[string]struct {
		reason string
		fault  harness.Fault
		want   string
	}{
		"disconnect":  {"the connection breaks", harness.Disconnect, "Provisioner cannot be reached"},
		"no response": {"the response never arrives", harness.NoAnswer, "Provisioner did not respond within"},
		"garbage":     {"the response is not GraphQL", harness.Garbage, "response that is not GraphQL"},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			e := prepare(t, harness.SQLite, 100*time.Millisecond, func(settings *broker.Config, _ *provisioner.Config) {
				settings.Provisioner.Timeout = 2 * time.Second
			})
			repair := e.services.Proxy.Inject(harness.Match{}, c.fault)
			e.startBroker()

			operation := e.Create("troubled", harness.PlanAWS)

			var text string

			e.Until("an explanation", func() bool {
				text = e.explain(operation)

				return strings.Contains(text, c.want)
			})

			if !strings.Contains(text, "Create_Runtime_Without_Kyma") {
				t.Errorf("%s: the explanation does not name the step:\n%s", c.reason, text)
			}

			repair()
			e.WantSucceeded("troubled")

			if shoots := e.shoots(); len(shoots) != 1 {
				t.Errorf("%s: want one Shoot, got %d", c.reason, len(shoots))
			}

			e.Delete("troubled", harness.PlanAWS)
			e.WantGone("troubled")
		})
	}
}
