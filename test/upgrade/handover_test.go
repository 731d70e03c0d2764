package upgrade_test

import (
	"io"
	"net/http"
	"net/url"
	"testing"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"

	"github.com/environment-broker/environment-broker/test/harness"
)

// Suffixes of instance IDs. They say how far the instances' operations have progressed when the version that runs them stops.
const (
	// inGardener is for operations that wait for Gardener.
	inGardener = "-in-gardener"
	// unanswered is for operations whose calls the Provisioner has accepted, but whose responses have not reached the broker.
	unanswered = "-unanswered"
	// unsent is for operations whose calls have not reached the Provisioner.
	unsent = "-unsent"
)

// TestHandover stops one version while operations of every kind are in progress. The other version must end them.
func TestHandover(t *testing.T) {
	for _, v := range versions() {
		t.Run("from the "+string(v)+" version", func(t *testing.T) {
			t.Parallel()

			r := newReplicas(t, harness.Postgres(t, broker), harness.Postgres(t, provisioner))
			r.start(v)

			c, suffixes := r.broker(v), []string{inGardener, unanswered, unsent}
			prepareOrders(c, suffixes)
			harness.InjectClusterFaults(t, r.garden, harness.StuckClusters())

			order(c, inGardener)
			r.waitForWorkOnShoots(3)

			var lifts []func()
			for _, mutation := range []string{"ProvisionRuntime", "UpgradeShoot", "DeprovisionRuntime"} {
				lifts = append(lifts, r.toProvisioner.Inject(harness.Match{Operation: mutation}, r.loseResponse))
			}

			order(c, unanswered)
			r.waitForWorkOnShoots(6)

			lifts = append(lifts, r.toProvisioner.Inject(harness.Match{}, harness.Disconnect))
			order(c, unsent)
			bind(c, "bound", "added")
			unbind(c, "bound", "removed")

			r.stop(v)
			r.start(v.other())

			for _, lift := range lifts {
				lift()
			}

			harness.InjectClusterFaults(t, r.garden, nil)

			c = r.broker(v.other())
			for _, suffix := range suffixes {
				wantOrdersEnded(c, suffix)
			}

			wantBinding(c, "bound", "added")
			wantBindingGone(c, "bound", "removed")

			// Every instance has one Shoot, except the suspended and the deleted ones.
			if want, got := 1+3*len(suffixes), len(harness.Shoots(t, r.garden)); got != want {
				t.Errorf("%d Shoots, want %d", got, want)
			}
		})
	}
}

// prepareOrders creates the instances that the function order changes or deletes.
func prepareOrders(c harness.Client, suffixes []string) {
	c.Helper()

	ready, trials := []string{"bound"}, []string{}

	for _, suffix := range suffixes {
		ready = append(ready, "updated"+suffix, "deleted"+suffix)
		trials = append(trials, "suspended"+suffix, "resumed"+suffix)
	}

	createAll(c, ready, harness.PlanAWS)
	createAll(c, trials, harness.PlanTrial)
	bind(c, "bound", "removed")
	wantBinding(c, "bound", "removed")

	for _, suffix := range suffixes {
		setActive(c, "resumed"+suffix, false)
		c.WantSucceeded("resumed" + suffix)
	}
}

func createAll(c harness.Client, ids []string, planID string) {
	c.Helper()

	for _, id := range ids {
		body := harness.Order(planID)
		body["organization_guid"] = id // an account may have only one instance of plan trial
		c.Send(http.MethodPut, harness.InstancePath(id)+harness.Incomplete, body, http.StatusAccepted)
	}

	for _, id := range ids {
		c.WantSucceeded(id)
	}
}

// setActive suspends or resumes an instance of plan trial.
func setActive(c harness.Client, id string, active bool) {
	c.Helper()
	c.Update(id, map[string]any{"context": map[string]any{"active": active}})
}

// order sends an order of each kind. It fails the test if the creation, the update or the resumption has already ended, because
// the other version could not take it over.
func order(c harness.Client, suffix string) {
	c.Helper()
	c.Create("created"+suffix, harness.PlanAWS)
	c.Update("updated"+suffix, updateOfMachines())
	setActive(c, "suspended"+suffix, false)
	setActive(c, "resumed"+suffix, true)
	c.Delete("deleted"+suffix, harness.PlanAWS)

	for _, id := range []string{"created", "updated", "resumed"} {
		if last := c.Send(http.MethodGet, harness.InstancePath(id+suffix)+"/last_operation", nil, http.StatusOK); last.Text("state") != "in progress" {
			c.Fatalf("the operation on %s has ended: %s", id+suffix, last.Raw)
		}
	}
}

// wantOrdersEnded waits until the orders with the suffix have ended, and checks their results.
func wantOrdersEnded(c harness.Client, suffix string) {
	c.Helper()

	for _, id := range []string{"created", "updated", "suspended", "resumed"} {
		c.WantSucceeded(id + suffix)
	}

	wantParameter(c, "updated"+suffix, "machineType", machineType)
	wantGone(c, "deleted"+suffix)
}

// waitForWorkOnShoots waits until Gardener is creating or changing the wanted number of clusters.
func (r *replicas) waitForWorkOnShoots(want int) {
	r.Helper()
	harness.Until(r, "Gardener to work on the Shoots", func() bool {
		processing := 0

		for _, shoot := range harness.Shoots(r, r.garden) {
			if last := shoot.Status.LastOperation; last != nil && last.State == gardencorev1beta1.LastOperationStateProcessing {
				processing++
			}
		}

		return processing == want
	})
}

// loseResponse is a [harness.Fault] that forwards a call to a Provisioner and drops the response.
func (r *replicas) loseResponse(_ http.ResponseWriter, call *http.Request) {
	forwarded := call.Clone(call.Context())

	address, err := url.Parse(r.nextProvisioner())
	if err == nil {
		forwarded.URL.Scheme, forwarded.URL.Host = address.Scheme, address.Host

		var response *http.Response
		if response, err = http.DefaultTransport.RoundTrip(forwarded); err == nil {
			_, err = io.Copy(io.Discard, response.Body)
			_ = response.Body.Close()
		}
	}

	if err != nil && call.Context().Err() == nil {
		r.Errorf("forwarding a call to the Provisioner: %v", err)
	}

	panic(http.ErrAbortHandler)
}
