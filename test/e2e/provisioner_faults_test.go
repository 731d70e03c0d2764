package e2e

import (
	"strings"
	"testing"
	"time"

	broker "github.com/environment-broker/environment-broker/broker/service"
	provisioner "github.com/environment-broker/environment-broker/provisioner/service"
	"github.com/environment-broker/environment-broker/test/harness"
)

// TestProvisionerFaults has the Provisioner disconnect, hang, or answer with garbage. The operation is delayed, `ebctl operation explain`
// names the cause, and nothing is lost.
func TestProvisionerFaults(t *testing.T) {
	t.Parallel()

	cases := map[string]struct {
		reason string
		fault  harness.Fault
		want   string
	}{
		"disconnect": {"the connection breaks", harness.Disconnect, "provisioner cannot be reached"},
		"no answer":  {"the answer never comes", harness.NoAnswer, "provisioner did not answer within"},
		"garbage":    {"the answer is not GraphQL", harness.Garbage, "no GraphQL"},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			l := prepare(t, harness.SQLite, 100*time.Millisecond, func(settings *broker.Config, _ *provisioner.Config) {
				settings.Provisioner.Timeout = 2 * time.Second
			})
			repair := l.services.Proxy.Inject(harness.Match{}, c.fault)
			l.startBroker()

			operation := l.Create("troubled", harness.PlanAWS)

			var told string

			l.Until("an explanation", func() bool {
				told = l.explain(operation)

				return strings.Contains(told, c.want)
			})

			if !strings.Contains(told, "Create_Runtime_Without_Kyma") {
				t.Errorf("%s: the step is not named:\n%s", c.reason, told)
			}

			repair()
			l.WantSucceeded("troubled")

			if shoots := l.shoots(); len(shoots) != 1 {
				t.Errorf("%s: there are %d Shoots, want one", c.reason, len(shoots))
			}

			l.Delete("troubled", harness.PlanAWS)
			l.WantGone("troubled")
		})
	}
}
