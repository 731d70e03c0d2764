package ebctl_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/environment-broker/environment-broker/internal/operatorapi"
)

// scenario is the content of a fakeBroker and its answers.
type scenario struct {
	// Username and Password are required unless both are empty.
	Username string `json:"username"`
	Password string `json:"password"`
	// PageSize limits the entries of a page; 0 is unlimited.
	PageSize int                   `json:"pageSize"`
	Runtimes []operatorapi.Runtime `json:"runtimes"`
	// Bindings are those of all instances.
	Bindings []operatorapi.Binding `json:"bindings"`
	// Operations are played frame by frame, one for each request; the last frame repeats.
	Operations []script `json:"operations"`
	// Provision, Update, Expire and Deprovision name the operations that such requests start. If empty, the request completes at once.
	Provision   string `json:"provision"`
	Update      string `json:"update"`
	Expire      string `json:"expire"`
	Deprovision string `json:"deprovision"`
	// Kubeconfig is the kubeconfig of every runtime.
	Kubeconfig operatorapi.AdminKubeconfig `json:"kubeconfig"`
	// Interventions are the allowed interventions. All others are conflicts.
	Interventions []allowedIntervention `json:"interventions"`
	// Audit is the audit log, the newest entry first.
	Audit []operatorapi.AuditEntry `json:"audit"`
	// Faults replace the answers of calls.
	Faults []fault `json:"faults"`
}

// script is the course of an operation.
type script struct {
	ID     string  `json:"id"`
	Frames []frame `json:"frames"`
}

// allowedIntervention is an intervention that the broker accepts.
type allowedIntervention struct {
	// Operation is its id, Verb is cancel, retry or skip.
	Operation string `json:"operation"`
	Verb      string `json:"verb"`
	// Successor is the ID of the operation that a retry starts. The answer has its current frame.
	Successor string `json:"successor"`
}

// frame is one answer to a request for the operation.
type frame struct {
	// Operation has the fields that differ from the frame before; null removes a field.
	Operation map[string]any `json:"operation"`
	// fault, if set, is the answer instead.
	Fault *fault `json:"fault"`
}

// fault is an error response.
type fault struct {
	// Call is the method and path that fails. Empty in a frame.
	Call string `json:"call"`
	// Cut closes the connection without a response.
	Cut bool `json:"cut"`
	// Status, RetryAfter in seconds and Body make the answer.
	Status     int    `json:"status"`
	RetryAfter int    `json:"retryAfter"`
	Body       string `json:"body"`
}

// parseScenario reads a scenario from YAML.
func parseScenario(text []byte) (scenario, error) {
	var parsed scenario
	if err := yaml.UnmarshalStrict(text, &parsed); err != nil {
		return scenario{}, fmt.Errorf("reading the scenario: %w", err)
	}

	return parsed, nil
}

// playback is a script whose frames are complete operations.
type playback struct {
	frames []playedFrame
	asked  int
}

type playedFrame struct {
	operation operatorapi.Operation
	fault     *fault
}

// complete merges each frame into the one before.
func (s script) complete() (*playback, error) {
	fields := map[string]any{"operationID": s.ID}
	result := &playback{}

	for number, next := range s.Frames {
		maps.Copy(fields, next.Operation)

		encoded, err := json.Marshal(fields)
		if err != nil {
			return nil, fmt.Errorf("operation %s, frame %d: %w", s.ID, number, err)
		}

		full := playedFrame{fault: next.Fault}
		if err := json.Unmarshal(encoded, &full.operation); err != nil {
			return nil, fmt.Errorf("operation %s, frame %d: %w", s.ID, number, err)
		}

		result.frames = append(result.frames, full)
	}

	if len(result.frames) == 0 {
		return nil, fmt.Errorf("operation %s has no frame", s.ID)
	}

	return result, nil
}

// current returns the frame of the next request.
func (t *playback) current() playedFrame { return t.frames[min(t.asked, len(t.frames)-1)] }

// fakeClock advances by every duration that it waits for. It is for one goroutine.
type fakeClock struct{ now time.Time }

// newFakeClock returns a clock that starts at now.
func newFakeClock(now time.Time) *fakeClock { return &fakeClock{now: now} }

// Now returns the current time.
func (c *fakeClock) Now() time.Time { return c.now }

// After advances the clock and returns a channel that has fired.
func (c *fakeClock) After(d time.Duration) <-chan time.Time {
	c.now = c.now.Add(d)

	passed := make(chan time.Time, 1)
	passed <- c.now

	return passed
}
