package ebctl_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/environment-broker/environment-broker/internal/operatorapi"
)

// scenario is the data of a fakeBroker, read from the YAML of a script.
type scenario struct {
	// Username and Password are the credentials that requests must have. Both empty means that requests need none.
	Username string `json:"username"`
	Password string `json:"password"`
	// Date is the time of the broker's clock in the format of HTTP; by default that of ebctl.
	Date string `json:"date"`
	// PageSize limits the entries of a page; 0 is unlimited.
	PageSize int                   `json:"pageSize"`
	Runtimes []operatorapi.Runtime `json:"runtimes"`
	// Bindings holds the bindings of all instances.
	Bindings []operatorapi.Binding `json:"bindings"`
	// Operations holds the operations as sequences of frames. Each request for an operation returns the next frame; the last frame repeats.
	Operations []script `json:"operations"`
	// ListsAdvance makes lists of operations show the next frame of each operation, like requests for single operations.
	ListsAdvance bool `json:"listsAdvance"`
	// Provision, Update, Expire and Deprovision are the IDs of the operations that such requests start. A request without an operation
	// completes at once.
	Provision   string `json:"provision"`
	Update      string `json:"update"`
	Expire      string `json:"expire"`
	Deprovision string `json:"deprovision"`
	// CatalogProblem is the error in the catalog's files, if it has a message.
	CatalogProblem operatorapi.CatalogProblem `json:"catalogProblem"`
	// Kubeconfig is the admin kubeconfig of all runtimes.
	Kubeconfig operatorapi.AdminKubeconfig `json:"kubeconfig"`
	// Interventions lists the allowed interventions. The response to all others is 409.
	Interventions []allowedIntervention `json:"interventions"`
	// Audit is the audit log, newest entry first.
	Audit []operatorapi.AuditEntry `json:"audit"`
	// Faults lists the calls that fail.
	Faults []fault `json:"faults"`
}

// script is an operation as a sequence of frames.
type script struct {
	ID     string  `json:"id"`
	Frames []frame `json:"frames"`
}

// allowedIntervention is an intervention that the broker accepts.
type allowedIntervention struct {
	// Operation is the ID of the operation.
	Operation string `json:"operation"`
	// Verb is cancel, retry or skip.
	Verb string `json:"verb"`
	// Successor is the ID of the operation that a retry starts. The response is the current frame of that operation.
	Successor string `json:"successor"`
}

// frame is the response to one request for an operation.
type frame struct {
	// Operation holds the fields that differ from the previous frame. The value null removes a field.
	Operation map[string]any `json:"operation"`
	// Fault, if set, is the response in place of the operation.
	Fault *fault `json:"fault"`
}

// fault is an error response.
type fault struct {
	// Call is the method and path of the failing request. It is empty in a frame.
	Call string `json:"call"`
	// Cut closes the connection in place of a response.
	Cut bool `json:"cut"`
	// Status, RetryAfter (in seconds) and Body form the response.
	Status     int    `json:"status"`
	RetryAfter int    `json:"retryAfter"`
	Body       string `json:"body"`
}

// parseScenario parses the YAML of a scenario. Unknown fields are an error.
func parseScenario(text []byte) (scenario, error) {
	var parsed scenario
	if err := yaml.UnmarshalStrict(text, &parsed); err != nil {
		return scenario{}, fmt.Errorf("reading the scenario: %w", err)
	}

	return parsed, nil
}

// playback serves the frames of a script as complete operations.
type playback struct {
	frames []playedFrame
	asked  int
}

type playedFrame struct {
	operation operatorapi.Operation
	fault     *fault
}

// complete returns the script with complete operations: each frame inherits the fields of the previous frame.
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

// current returns the frame for the next request.
func (t *playback) current() playedFrame { return t.frames[min(t.asked, len(t.frames)-1)] }

// fakeClock advances by the duration of each wait, so waits take no time. Only one goroutine may use it.
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
