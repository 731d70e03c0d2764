package e2e

import (
	"net/http"
	"testing"
	"time"

	broker "github.com/environment-broker/environment-broker/broker/service"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakedirector"
	"github.com/environment-broker/environment-broker/provisioner/director"
	provisioner "github.com/environment-broker/environment-broker/provisioner/service"
	"github.com/environment-broker/environment-broker/test/harness"
)

// TestConsoleOfDirector orders an instance whose agent sets the console of the runtime in Director, and one whose agent does not.
func TestConsoleOfDirector(t *testing.T) {
	const console, dashboard = "https://console.example.com", "https://dashboard.example.com/"

	simulated, settings := newDirector(t)
	e := harness.Start(t, harness.Options{
		ClusterCreation: time.Second,
		Configure: func(b *broker.Config, p *provisioner.Config) {
			p.Director, b.DirectorDashboard, b.DashboardURL = settings, true, dashboard+"{instance_id}"
		},
	})

	client := harness.Client{TB: t, Endpoint: e.Broker.Endpoint}

	for _, c := range []struct{ instance, console, want string }{{"with", console, console}, {"without", "", dashboard + "without"}} {
		client.Create(c.instance, harness.PlanAWS)

		if c.console != "" {
			var registered []fakedirector.Runtime

			client.Until("the runtime is registered", func() bool {
				registered = simulated.Runtimes()

				return len(registered) == 1
			})
			simulated.SetLabel(registered[0].ID, director.LabelConsole, c.console)
		}

		client.WantSucceeded(c.instance)

		if got := client.Send(http.MethodGet, harness.InstancePath(c.instance), nil, http.StatusOK).Text("dashboard_url"); got != c.want {
			t.Errorf("the dashboard of instance %q is %q, want %q", c.instance, got, c.want)
		}
	}
}
