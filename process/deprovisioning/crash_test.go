package deprovisioning

import (
	"fmt"
	"testing"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
)

// execute runs the stages of a removal one after the other, like the engine. If dies is set, a failed attempt loses the changes
// that its step made to the data, as in a crash. Otherwise they are kept.
func execute(t *testing.T, w *fixture, data environment.Data, dies bool) {
	t.Helper()

	const enough = 10

	for _, stage := range w.process().Stages {
		for try := 1; ; try++ {
			if try > enough {
				t.Fatalf("stage %s has not ended: %v", stage.Name, w.calls)
			}

			operation := newOperation(stored(t, data))
			finished := true

			for _, task := range stage.Steps {
				if !task.When.Met(operation) {
					continue
				}

				after, wait, err := run(t, task.Step, operation)
				if err != nil && !failure.Is(err, failure.Transient) {
					t.Fatalf("stage %s: %v", stage.Name, err)
				}

				if err == nil || !dies {
					operation = after
				}

				if finished = err == nil && wait == 0; !finished {
					break
				}
			}

			data = operation.Data

			if finished {
				break
			}
		}
	}
}

// TestNoCrashLeavesARuntime checks that a removal leaves no runtime behind, whichever of its calls fails. Either the request or the
// response is lost.
func TestNoCrashLeavesARuntime(t *testing.T) {
	ordered := environment.Data{Instance: instance(), Provisioning: provisioning, Ordered: true, TargetSecret: "aws-account"}
	canceled := environment.Data{Instance: instance(), Provisioning: provisioning}
	recorded := ordered
	recorded.Instance = withRuntime("runtime-of-" + provisioning)

	cases := map[string]struct {
		reason  string
		past    environment.Data
		arrived bool // whether the order reached the Provisioner
	}{
		"runtime known":       {"a finished provisioning", recorded, true},
		"response lost":       {"the order created a runtime, but its ID was not recorded", ordered, true},
		"order never arrived": {"the replica crashed between its intent and the order", ordered, false},
		"nothing ordered":     {"the provisioning was canceled before its start", canceled, false},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			begin := func(broken int) *fixture {
				w := newFixture(c.past)
				w.broken = broken

				if c.arrived {
					w.orders[provisioning], w.runtimes[provisioning] = true, "runtime-of-"+provisioning
				}

				return w
			}

			whole := begin(0)
			execute(t, whole, environment.Data{Instance: instance()}, false)

			for broken := range len(whole.calls) + 1 {
				for _, mode := range []struct{ unsent, dies bool }{{true, true}, {true, false}, {false, true}, {false, false}} {
					w := begin(broken)
					w.unsent = mode.unsent

					execute(t, w, environment.Data{Instance: instance()}, mode.dies)

					story := fmt.Sprintf("%s: call %d of %v fails, unsent %t, replica crashes %t: %v",
						c.reason, broken, whole.calls, mode.unsent, mode.dies, w.calls)

					if len(w.orders) > 1 || (len(w.orders) == 1 && !w.orders[provisioning]) {
						t.Errorf("%s: ordered under keys %v, want at most the one of the provisioning", story, w.orders)
					}

					if len(w.runtimes) != 0 || w.rows != 0 {
						t.Errorf("%s: remaining runtimes %v and %d rows", story, w.runtimes, w.rows)
					}
				}
			}
		})
	}
}
