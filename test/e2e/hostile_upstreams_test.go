package e2e

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"

	broker "github.com/environment-broker/environment-broker/broker/service"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakedirector"
	provisioner "github.com/environment-broker/environment-broker/provisioner/service"
	"github.com/environment-broker/environment-broker/test/harness"
)

// hostile is a text that a hostile upstream, or a program that answers in its place, wants to show to users.
const hostile = `<a href="https://evil.example.com">renew your password at gw-7.internal</a>`

// TestHostileUpstreams plants the hostile text in errors from the Provisioner, Gardener, Director and a tenant's own cluster. No
// Open Service Broker API response may contain any of it. Operators must find it in the explanation and in the timeline of the
// operation.
func TestHostileUpstreams(t *testing.T) {
	t.Parallel()

	quoted, err := json.Marshal(hostile)
	if err != nil {
		t.Fatal(err)
	}

	answer := func(body string) harness.Fault {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, strings.ReplaceAll(body, "HOSTILE", string(quoted)))
		}
	}

	cases := map[string]struct {
		reason string
		plan   string
		plant  func(e *env)
		want   string // part of last_operation
	}{
		"rejecting Provisioner": {
			reason: "the message, the reason and the component of an error come from outside",
			plant: func(e *env) {
				e.services.Proxy.Inject(harness.Match{Operation: "ProvisionRuntime"},
					answer(`{"errors":[{"message":HOSTILE,"extensions":{"error_code":400,"error_reason":HOSTILE,"error_component":HOSTILE,"error_fields":[HOSTILE]}}]}`))
			},
			want: "Creating the cluster failed: the Provisioner refused to create the runtime",
		},
		"failing Provisioner": {
			reason: "an unavailable Provisioner is retried",
			plant: func(e *env) {
				e.services.Proxy.Inject(harness.Match{Operation: "ProvisionRuntime"}, answer(`{"errors":[{"message":HOSTILE}]}`))
			},
			want: "Creating the cluster: delayed, retrying: the Provisioner could not create the runtime",
		},
		"failed operation": {
			reason: "the state of an operation has three texts",
			plant: func(e *env) {
				e.services.Proxy.Inject(harness.Match{Operation: "OperationStatus"},
					answer(`{"data":{"result":{"id":"x","operation":"Provision","state":"Failed","message":HOSTILE,"runtimeID":"r",
						"lastError":{"errMessage":HOSTILE,"reason":HOSTILE,"component":"gardener"}}}}`))
			},
			want: "Creating the cluster failed: Gardener reports an error",
		},
		"delayed operation": {
			reason: "the progress of an operation has three texts",
			plant: func(e *env) {
				e.services.Proxy.Inject(harness.Match{Operation: "OperationStatus"},
					answer(`{"data":{"result":{"id":"x","operation":"Provision","state":"InProgress","message":HOSTILE,"runtimeID":"r",
						"lastError":{"errMessage":HOSTILE,"reason":HOSTILE,"component":HOSTILE}}}}`))
			},
			want: "Creating the cluster: delayed: the Provisioner reports an error",
		},
		"Gardener": {
			reason: "extensions and cloud providers write the errors of a Shoot; its known code keeps its remedy",
			plant: func(e *env) {
				e.faults(harness.StuckClusters())
				harness.Run(e.TB, e.failShoots)
			},
			want: "Creating the cluster failed: Gardener reports ERR_INFRA_RESOURCES_DEPLETED: the provider has no capacity left",
		},
		"Director": {
			reason: "the Provisioner passes an error of Director on to the broker",
			want:   "Creating the cluster: delayed",
		},
		"cluster": {
			reason: "a tenant's own cluster responds with anything",
			plan:   harness.PlanOwnCluster,
			want:   "Connecting to the cluster: delayed, retrying: the cluster at 127.0.0.1:",
		},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			e := prepare(t, harness.SQLite, 100*time.Millisecond, func(_ *broker.Config, settings *provisioner.Config) {
				if name != "Director" {
					return
				}

				var director *fakedirector.Director

				director, settings.Director = newDirector(t)
				body := `{"errors":[{"message":` + string(quoted) + `}]}`
				director.Inject(fakedirector.Fault{Operation: "runtimes", Body: body, Times: -1},
					fakedirector.Fault{Operation: "registerRuntime", Body: body, Times: -1})
			})

			if c.plant != nil {
				c.plant(e)
			}

			e.startBroker()

			order := harness.Order(harness.PlanAWS)
			if c.plan == harness.PlanOwnCluster {
				order = hostileCluster(t, string(quoted))
			}

			operation := e.Send(http.MethodPut, harness.InstancePath("i")+harness.Incomplete, order, http.StatusAccepted).Text("operation")

			var polled harness.Reply

			e.Until("the error in last_operation", func() bool {
				polled = e.Send(http.MethodGet, harness.InstancePath("i")+"/last_operation?operation="+operation, nil, http.StatusOK)

				return strings.Contains(polled.Text("description"), c.want)
			})

			repeated, err := e.Try(http.MethodPut, harness.InstancePath("i")+harness.Incomplete, order)
			if err != nil {
				t.Fatal(err)
			}

			fetched, err := e.Try(http.MethodGet, harness.InstancePath("i"), nil)
			if err != nil {
				t.Fatal(err)
			}

			for _, reply := range []harness.Reply{polled, repeated, fetched} {
				for _, part := range []string{"evil", "password", "gw-7", "<a"} {
					if text := fmt.Sprint(reply); strings.Contains(text, part) {
						t.Errorf("%s: a response contains %q: %s", c.reason, part, text)
					}
				}
			}

			var explanation string

			// While the next attempt runs, the explanation gives no reason for waiting.
			if !harness.Within(harness.Patience, func() bool {
				explanation = e.explain(operation)
				before, timeline, found := strings.Cut(explanation, "BEGAN")

				return found && strings.Contains(before, "gw-7.internal") && strings.Contains(timeline, "gw-7.internal")
			}) {
				t.Errorf("%s: operators do not read the error in the explanation and the timeline:\n%s", c.reason, explanation)
			}
		})
	}
}

// failShoots reports every creation of a Shoot as failed with the hostile text, until the context ends.
func (e *env) failShoots(ctx context.Context) error {
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()

	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}

		for _, shoot := range e.shoots() {
			shoot.Status.ObservedGeneration = shoot.Generation
			shoot.Status.LastOperation = &gardencorev1beta1.LastOperation{
				Type: gardencorev1beta1.LastOperationTypeCreate, State: gardencorev1beta1.LastOperationStateFailed, Description: hostile,
			}
			shoot.Status.LastErrors = []gardencorev1beta1.LastError{{
				Description: hostile, Codes: []gardencorev1beta1.ErrorCode{gardencorev1beta1.ErrorInfraResourcesDepleted},
			}}

			// Ignore the error: if the gardenlet has changed the Shoot at the same time, the next attempt succeeds.
			_ = e.services.Garden.Client().Status().Update(ctx, &shoot)
		}
	}
}

// hostileCluster returns an order with the kubeconfig of an own cluster whose API server responds with the given message.
func hostileCluster(t *testing.T, message string) map[string]any {
	t.Helper()

	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":`+message+`}`)
	}))
	t.Cleanup(server.Close)

	kubeconfig := `{"apiVersion":"v1","kind":"Config","current-context":"c","clusters":[{"name":"c","cluster":{"insecure-skip-tls-verify":true,"server":"` +
		server.URL + `"}}],"users":[{"name":"u","user":{"token":"hush"}}],"contexts":[{"name":"c","context":{"cluster":"c","user":"u"}}]}`

	order := harness.Order(harness.PlanOwnCluster)
	order["parameters"] = map[string]any{
		"kubeconfig": base64.StdEncoding.EncodeToString([]byte(kubeconfig)), "shootName": "own", "shootDomain": "own.example.com",
	}

	return order
}
