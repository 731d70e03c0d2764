package reconciler_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/internal/clients/reconciler"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakereconciler"
	"github.com/environment-broker/environment-broker/internal/sandbox/faulttable"
	"github.com/environment-broker/environment-broker/internal/sandbox/simulator"
	"github.com/environment-broker/environment-broker/internal/secret"
	"github.com/environment-broker/environment-broker/internal/upstream/restclient"
)

const kubeconfig = `{clusters: [{name: c, cluster: {server: "https://api.example.com"}}], users: [{name: u, user: {token: secret-token}}]}`

func start(t *testing.T) (*fakereconciler.Reconciler, *reconciler.Client) {
	t.Helper()

	return startWith(t, time.Minute)
}

// startWith is start with the given timeout of calls.
func startWith(t *testing.T, timeout time.Duration) (*fakereconciler.Reconciler, *reconciler.Client) {
	t.Helper()

	simulated := fakereconciler.New()
	server := httptest.NewServer(simulated)
	t.Cleanup(server.Close)

	config := reconciler.DefaultConfig()
	config.URL, config.Timeout = server.URL, timeout

	return simulated, reconciler.New(config, http.DefaultTransport)
}

func instance() environment.Instance {
	return environment.Instance{
		ID: "instance-1", RuntimeID: "runtime-1", ServiceID: "service", PlanID: "plan-id", PlanName: "aws", GlobalAccountID: "tenant-1",
		SubAccountID: "sub-1", ShootName: "c-1234567", Region: "eu-central-1",
		Request: environment.Request{Cluster: environment.Cluster{
			Administrators: []string{"admin@example.com"},
			Kyma: &environment.Kyma{Installation: &environment.KymaInstallation{
				Version: "1.0.0", Profile: "Production",
				Configuration: []environment.KymaEntry{{Key: "global.debug", Value: "true"}, {Key: "level", Value: "warn"}},
				Components: []environment.KymaComponent{
					{Name: "istio", Namespace: "istio-system"},
					{
						Name: "dns", Namespace: "kyma-system", SourceURL: "https://example.com/dns.zip",
						Configuration: []environment.KymaEntry{{Key: "level", Value: "info"}, {Key: "password", Value: "secret-value", Secret: true}},
					},
				},
			}},
		}},
	}
}

func cluster() reconciler.Cluster {
	return reconciler.NewCluster(instance(), kubeconfig, "c-1234567.example.com", "operation-1")
}

// TestCluster checks the cluster that the Reconciler gets: each component has the values for all components, and the texts true and
// false are Booleans.
func TestCluster(t *testing.T) {
	simulated, client := start(t)

	if _, err := client.Apply(t.Context(), cluster()); err != nil {
		t.Fatal(err)
	}

	want := reconciler.Cluster{
		RuntimeID: "runtime-1", Runtime: reconciler.Runtime{Name: "c-1234567", Description: "operation-1"}, Kubeconfig: kubeconfig,
		Metadata: reconciler.Metadata{
			GlobalAccountID: "tenant-1", SubAccountID: "sub-1", ServiceID: "service", ServicePlanID: "plan-id", ServicePlanName: "aws",
			ShootName: "c-1234567", InstanceID: "instance-1", Region: "eu-central-1",
		},
		Kyma: reconciler.KymaConfig{Version: "1.0.0", Profile: "Production", Administrators: []string{"admin@example.com"}, Components: []reconciler.Component{
			{Component: "istio", Namespace: "istio-system", Configuration: []reconciler.Entry{
				{Key: "global.domainName", Value: "c-1234567.example.com"}, {Key: "global.debug", Value: true}, {Key: "level", Value: "warn"},
			}},
			{Component: "dns", Namespace: "kyma-system", URL: "https://example.com/dns.zip", Configuration: []reconciler.Entry{
				{Key: "global.domainName", Value: "c-1234567.example.com"},
				{Key: "global.debug", Value: true},
				{Key: "level", Value: "info"},
				{Key: "password", Value: "secret-value", Secret: true},
			}},
		}},
	}
	if diff := cmp.Diff(want, simulated.Clusters()["runtime-1"]); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}

	for _, line := range simulated.Holds() {
		if strings.Contains(line, "secret") {
			t.Errorf("the page shows a secret: %s", line)
		}
	}
}

func TestLife(t *testing.T) {
	_, client := start(t)

	applied, err := client.Apply(t.Context(), cluster())
	if err != nil || applied.Status != reconciler.Pending {
		t.Fatalf("%+v, %v", applied, err)
	}

	again, err := client.Apply(t.Context(), reconciler.NewCluster(instance(), secret.String(strings.Replace(kubeconfig, "token", "renewed", 1)), "c-1234567.example.com", "operation-1"))
	if err != nil || again.ConfigurationVersion != applied.ConfigurationVersion {
		t.Errorf("a repeated registration: %+v, %v, want version %d", again, err, applied.ConfigurationVersion)
	}

	for _, want := range []reconciler.Status{reconciler.Reconciling, reconciler.Ready, reconciler.Ready} {
		if found, err := client.Find(t.Context(), "runtime-1", applied.ConfigurationVersion); err != nil || found.Status != want {
			t.Errorf("%+v, %v, want %s", found, err, want)
		}
	}

	if _, err := client.Find(t.Context(), "runtime-1", applied.ConfigurationVersion+1); !failure.Is(err, failure.NotFound) {
		t.Errorf("an unknown version: %v", err)
	}

	removing, err := client.Remove(t.Context(), "runtime-1")
	if err != nil || removing.Status != reconciler.DeletePending || removing.ConfigurationVersion != applied.ConfigurationVersion {
		t.Errorf("%+v, %v", removing, err)
	}

	if found, err := client.Find(t.Context(), "runtime-1", removing.ConfigurationVersion); err != nil || found.Status != reconciler.Deleting {
		t.Errorf("%+v, %v", found, err)
	}

	if _, err := client.Find(t.Context(), "runtime-1", removing.ConfigurationVersion); !failure.Is(err, failure.NotFound) {
		t.Errorf("after the removal: %v", err)
	}

	if removed, err := client.Remove(t.Context(), "runtime-1"); err != nil || removed.Status != reconciler.Deleted {
		t.Errorf("a repeated removal: %+v, %v", removed, err)
	}
}

func TestFaults(t *testing.T) {
	cases := map[string]struct {
		reason   string
		fault    simulator.Fault
		wantKind failure.Kind
		wantText string
	}{
		"Away":     {"an outage can pass", simulator.Fault{Unsent: true}, failure.Transient, "the Reconciler cannot be reached"},
		"Slow":     {"a call has a timeout", simulator.Fault{Delay: time.Minute}, failure.Transient, "the Reconciler did not respond within 200ms"},
		"Garbled":  {"no JSON", simulator.Fault{Body: "<html>"}, failure.Transient, "the Reconciler could not accept the Kyma configuration: it returned a response that is not the expected JSON"},
		"Empty":    {"no version", simulator.Fault{Body: "{}"}, failure.Transient, "the Reconciler could not accept the Kyma configuration: its response has no version"},
		"503":      {"an overloaded system can recover", simulator.Fault{Status: http.StatusServiceUnavailable}, failure.Transient, "the Reconciler could not accept the Kyma configuration: it returned HTTP status 503 Service Unavailable"},
		"429":      {"the system asks for a pause", simulator.Fault{Status: http.StatusTooManyRequests, RetryAfter: 42}, failure.Transient, "the Reconciler could not accept the Kyma configuration: it returned HTTP status 429 Too Many Requests"},
		"400":      {"another attempt would be rejected as well", simulator.Fault{Status: http.StatusBadRequest}, failure.Permanent, "the Reconciler could not accept the Kyma configuration: it rejects the request with HTTP status 400 Bad Request"},
		"TooLarge": {"a proxy accepts less", simulator.Fault{Status: http.StatusRequestEntityTooLarge}, failure.Permanent, "the Reconciler could not accept the Kyma configuration: it rejects the request with HTTP status 413 Request Entity Too Large"},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			timeout := time.Minute
			if c.fault.Delay > 0 {
				timeout = 200 * time.Millisecond
			}

			simulated, client := startWith(t, timeout)
			simulated.Inject(c.fault)

			_, err := client.Apply(t.Context(), cluster())
			if !failure.Is(err, c.wantKind) || failure.Of(err).Text != c.wantText || failure.Of(err).Component != failure.ComponentReconciler && c.fault.Status != 0 {
				t.Errorf("%s: got %v, want %q", c.reason, err, c.wantText)
			}

			if strings.Contains(err.Error(), "secret") {
				t.Errorf("the error contains a secret: %v", err)
			}

			if wait := restclient.RetryAfter(err, time.Second); c.fault.RetryAfter > 0 && wait != 42*time.Second {
				t.Errorf("%s: waits for %s", c.reason, wait)
			}
		})
	}
}

// TestRejectedClusters checks the errors for clusters that the Reconciler rejects. A cluster that is too large or has no components is not
// sent.
//
//faults:row reconciler.md#registration accepts only 100,000 bytes, and the configuration has more
func TestRejectedClusters(t *testing.T) {
	simulated, client := start(t)

	unusable := cluster()
	unusable.Kubeconfig = "none"

	if _, err := client.Apply(t.Context(), unusable); !failure.Is(err, failure.Transient) || failure.Of(err).Text != "the Reconciler cannot reach the runtime with its kubeconfig" {
		t.Errorf("a kubeconfig that is not accepted: %v", err)
	}

	large := cluster()
	large.Kyma.Components[0].Configuration = []reconciler.Entry{{Key: "key", Value: strings.Repeat("x", fakereconciler.MaxBody)}}

	_, err := client.Apply(t.Context(), large)
	if !failure.Is(err, failure.Permanent) || !strings.Contains(failure.Of(err).Text, "accepts only 100000") {
		t.Errorf("a large cluster: %v", err)
	}

	faulttable.Shows(t, "reconciler.md#registration", "accepts only 100,000 bytes, and the configuration has more", failure.Of(err).Text)

	empty := cluster()
	empty.Kyma.Components = nil

	if _, err := client.Apply(t.Context(), empty); !failure.Is(err, failure.Permanent) {
		t.Errorf("a cluster without components: %v", err)
	}

	if calls := simulated.Operations(); len(calls) != 1 {
		t.Errorf("the last two were sent: %v", calls)
	}
}

func TestState(t *testing.T) {
	state := reconciler.State{Status: reconciler.Error, Failures: []reconciler.Failure{
		{Component: "istio", Reason: "timeout\nafter 5m"}, {Component: "<b>", Reason: "x"}, {Component: "dns"},
	}}

	if got := state.Failed(); got != "istio, dns" {
		t.Errorf("users see %q", got)
	}

	if got := state.Report(); !strings.HasPrefix(got, "error; istio: timeout") || strings.Contains(got, "\n") {
		t.Errorf("operators see %q", got)
	}
}

func TestConfig(t *testing.T) {
	cases := map[string]struct {
		change func(*reconciler.Config)
		want   string
	}{
		"Valid":   {func(*reconciler.Config) {}, ""},
		"Off":     {func(c *reconciler.Config) { *c = reconciler.Config{} }, ""},
		"URL":     {func(c *reconciler.Config) { c.URL = "reconciler" }, "APP_RECONCILER_URL: must be an http or https URL"},
		"Timeout": {func(c *reconciler.Config) { c.Timeout = 30 * time.Second }, "APP_RECONCILER_TIMEOUT: must be at least 1m0s"},
		"Limit":   {func(c *reconciler.Config) { c.ProvisioningTimeout = 0 }, "APP_RECONCILER_PROVISIONING_TIMEOUT and APP_RECONCILER_CALLS: must be positive"},
		"Calls":   {func(c *reconciler.Config) { c.Calls = 0 }, "APP_RECONCILER_PROVISIONING_TIMEOUT and APP_RECONCILER_CALLS: must be positive"},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			settings := reconciler.DefaultConfig()
			settings.URL = "http://reconciler.example.com"
			c.change(&settings)

			err := settings.Check()
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}
