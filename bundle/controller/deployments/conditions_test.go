package deployments

import (
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/environment-broker/environment-broker/bundle/api/v1alpha1"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/upstream"
)

type unreachable struct{}

func (unreachable) RoundTrip(*http.Request) (*http.Response, error) { return nil, errors.New("lost") }

// TestStatusWhileAway makes an attempt to reach a cluster every 30 seconds for an hour, for three BundleDeployments that share a circuit breaker. Their
// status changes when the cluster goes away and when the circuit breaker opens, but not with each attempt.
func TestStatusWhileAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const pause = 30 * time.Second

		connection := upstream.New(upstream.Options{
			Name: "target", Title: "the cluster", Component: failure.ComponentRuntime, Calls: 1, Variable: "per cluster", Pause: pause,
		}).Transport(unreachable{})

		attempt := func() error {
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://cluster.example.com", nil)
			if err != nil {
				t.Fatal(err)
			}

			_, err = connection.RoundTrip(request)
			if held, ok := errors.AsType[*failure.Error](err); ok {
				return held
			}

			return failure.Wrap(failure.Transient, err, "the cluster cannot be reached").WithReason(failure.ReasonInternal, failure.ComponentRuntime)
		}

		passes := make([]*pass, 3)
		for i := range passes {
			passes[i] = &pass{
				Reconciler: &Reconciler{Options: Options{Now: time.Now}}, deployment: &v1alpha1.BundleDeployment{},
				status: &v1alpha1.BundleDeploymentStatus{}, memory: &memory{},
			}
		}

		changes := map[string]int{}
		last := map[*pass]string{}

		for i := range int(time.Hour / pause) {
			for turn := range passes {
				p := passes[(i+turn)%len(passes)] // they take turns in making the circuit breaker's attempt

				p.setFailed(v1alpha1.ReasonErrorGettingClient, attempt())

				if message := meta.FindStatusCondition(p.status.Conditions, v1alpha1.TypeInstalled).Message; message != last[p] {
					last[p] = message
					changes[message]++
				}
			}

			time.Sleep(pause)
		}

		sum := 0
		for _, number := range changes {
			sum += number
		}

		if most := 2 * len(passes); sum > most {
			t.Errorf("%d changes, more than %d: %v", sum, most, changes)
		}

		if changes["the cluster cannot be reached"] != len(passes) {
			t.Errorf("the first message is missing: %v", changes)
		}
	})
}
