package operator_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/sirupsen/logrus"
	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/broker/operator"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
	"github.com/environment-broker/environment-broker/internal/upstream"
	"github.com/environment-broker/environment-broker/process"
)

// available is a transport that responds to every request with 200.
type available struct{}

func (available) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
}

// calling is a step that calls an upstream system. The instance ID selects the system.
type calling map[string]http.Client

func (calling) Name() string { return "Call" }

func (c calling) Run(ctx context.Context, operation process.Operation[environment.Data], _ logrus.FieldLogger,
) (process.Operation[environment.Data], time.Duration, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://system", http.NoBody)
	if err != nil {
		return operation, 0, err
	}

	client := c[operation.InstanceID]

	response, err := client.Do(request)
	if err != nil {
		return operation, 0, err
	}

	return operation, 0, response.Body.Close()
}

// TestOutageOfTwoSystems runs three operations that call different systems, two of which are unavailable. The operations that call
// these must report the right system. The third operation must succeed.
func TestOutageOfTwoSystems(t *testing.T) {
	upstreams := map[string]*upstream.System{"garden": unavailableSystem(t, "garden"), "shop": unavailableSystem(t, "shop"), "well": newSystem("well")}
	clients, systems := calling{}, []*upstream.System{}

	for name, called := range upstreams {
		var transport http.RoundTripper = broken(name)
		if name == "well" {
			transport = available{}
		}

		clients[name], systems = http.Client{Transport: called.Transport(transport)}, append(systems, called)
	}

	b := newBench(t, func(options *operator.Options) { options.Systems = systems })

	ids, got := map[string]string{}, map[string]string{}
	for name := range upstreams {
		ids[name] = b.instance(name, process.Pending)
	}

	b.run(process.Process[environment.Data]{Kind: environment.KindProvision, Limit: time.Hour, Stages: []process.Stage[environment.Data]{
		{Name: "only", Retry: process.DefaultRetry(), Steps: process.Steps[environment.Data](clients)},
	}})

	for name, id := range ids {
		var shown operatorapi.Operation
		for shown.State != operatorapi.OperationStateSucceeded && shown.Problem.Message == "" {
			shown = read[operatorapi.Operation](b, b.want("an operation", b.do("viewer", "GET", "/operations/"+id), http.StatusOK))
		}

		got[name] = string(shown.State)
		if system := shown.System; system.Name != "" && system.State != string(upstream.Closed) {
			got[name] += ", " + shown.Problem.Component + ": " + system.Name + " is unreachable"
		}
	}

	want := map[string]string{
		"garden": "in progress, garden: garden is unreachable", "shop": "in progress, shop: shop is unreachable", "well": "succeeded",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

// run runs an engine with the processes until the test ends.
func (b *bench) run(processes ...process.Process[environment.Data]) {
	b.Helper()

	engine, err := process.NewEngine(b.operations, process.DefaultConfig(), clock.RealClock{}, logging.Discard(), processes...)
	if err != nil {
		b.Fatal(err)
	}

	ctx, cancel := context.WithCancel(b.Context())
	ended := make(chan error, 1)

	go func() { ended <- engine.Run(ctx) }()

	b.Cleanup(func() {
		cancel()

		if err := <-ended; err != nil {
			b.Error(err)
		}
	})
}
