package upgrade_test

import (
	"net/http"
	"testing"

	"github.com/environment-broker/environment-broker/test/harness"
)

// Parameters in the tests' requests for an instance of plan AWS.
const (
	machineType   = "m5.xlarge"
	autoScalerMax = 7
)

func updateOfMachines() map[string]any {
	return map[string]any{"parameters": map[string]any{"machineType": machineType, "autoScalerMax": autoScalerMax}}
}

// TestAdjacentVersions runs a broker and a Provisioner of each version side by side, as during a rolling restart. Each request for
// an instance goes to the broker of one version, and each poll goes to the other. The Provisioners receive the brokers' calls in
// turn.
func TestAdjacentVersions(t *testing.T) {
	for _, first := range versions() {
		t.Run(string(first)+" version migrates first", func(t *testing.T) {
			t.Parallel()

			r := newReplicas(t, harness.Postgres(t, broker), harness.Postgres(t, provisioner))
			r.start(first)
			r.start(first.other())

			for _, v := range versions() {
				t.Run("ordered from "+string(v), func(t *testing.T) { runLife(t, r, "from-"+string(v), v) })
			}

			if shoots := harness.Shoots(t, r.garden); len(shoots) != 0 {
				t.Errorf("%d Shoots remain", len(shoots))
			}
		})
	}
}

// runLife creates, changes, suspends and deletes instances. At first, the broker of version v receives the orders and the broker
// of the other version the polls. They swap roles after each step.
func runLife(t *testing.T, r *replicas, id string, v version) {
	t.Helper()

	one, two := r.broker(v), r.broker(v.other())
	one.TB, two.TB = t, t

	one.Create(id, harness.PlanAWS)
	two.WantSucceeded(id)
	wantParameter(one, id, "machineType", nil)

	two.Update(id, updateOfMachines())
	one.WantSucceeded(id)
	wantParameter(one, id, "machineType", machineType)
	wantParameter(two, id, "machineType", machineType)

	bind(one, id, "binding")
	wantBinding(two, id, "binding")
	unbind(two, id, "binding")
	wantBindingGone(one, id, "binding")

	trial := id + "-trial"
	two.Create(trial, harness.PlanTrial)
	one.WantSucceeded(trial)
	one.Update(trial, map[string]any{"context": map[string]any{"active": false}})
	two.WantSucceeded(trial)
	two.Update(trial, map[string]any{"context": map[string]any{"active": true}})
	one.WantSucceeded(trial)

	one.Delete(trial, harness.PlanTrial)
	two.Delete(id, harness.PlanAWS)
	wantGone(one, id)
	wantGone(two, trial)
}

// wantGone waits until an instance is deleted. Version 0.1.0 responds to polls of a finished deletion with 410, later versions with
// the state succeeded.
func wantGone(c harness.Client, id string) {
	c.Helper()

	if last := c.WaitForEnd(id); last.Status != http.StatusGone && last.Text("state") != "succeeded" {
		c.Fatalf("the deletion of %s ended with %d %s", id, last.Status, last.Raw)
	}

	c.Send(http.MethodGet, harness.InstancePath(id), nil, http.StatusNotFound)
}

// wantParameter checks the value of an instance parameter that the broker returns.
func wantParameter(c harness.Client, id, name string, want any) {
	c.Helper()

	if got := c.Send(http.MethodGet, harness.InstancePath(id), nil, http.StatusOK).Object("parameters")[name]; got != want {
		c.Errorf("parameter %s of %s is %v, want %v", name, id, got, want)
	}
}

// bind orders a binding for an instance of plan AWS.
func bind(c harness.Client, id, binding string) {
	c.Helper()
	c.Send(http.MethodPut, harness.BindingPath(id, binding)+harness.Incomplete,
		map[string]any{"service_id": harness.ServiceID, "plan_id": harness.PlanAWS}, http.StatusAccepted)
}

// wantBinding waits until a binding is created, and checks that its kubeconfig works.
func wantBinding(c harness.Client, id, binding string) {
	c.Helper()
	c.Until("binding "+binding, func() bool {
		got := c.Send(http.MethodGet, harness.BindingPath(id, binding)+"/last_operation", nil, http.StatusOK)
		if got.Text("state") == "failed" {
			c.Fatalf("binding %s: %s", binding, got.Raw)
		}

		return got.Text("state") == "succeeded"
	})

	kubeconfig, _ := c.Send(http.MethodGet, harness.BindingPath(id, binding), nil, http.StatusOK).Object("credentials")["kubeconfig"].(string)
	harness.WantRuntimeResponds(c, "binding "+binding+" of "+id, []byte(kubeconfig))
}

func unbind(c harness.Client, id, binding string) {
	c.Helper()
	c.Send(http.MethodDelete, harness.BindingPath(id, binding)+harness.Incomplete+
		"&service_id="+harness.ServiceID+"&plan_id="+harness.PlanAWS, nil, http.StatusAccepted)
}

// wantBindingGone waits until a binding is removed.
func wantBindingGone(c harness.Client, id, binding string) {
	c.Helper()
	c.Until("the removal of "+binding, func() bool {
		got, err := c.Try(http.MethodGet, harness.BindingPath(id, binding), nil)
		if err != nil {
			c.Fatal(err)
		}

		return got.Status == http.StatusNotFound
	})
}
