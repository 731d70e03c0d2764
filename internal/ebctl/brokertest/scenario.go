package brokertest

import (
	"encoding/json"
	"fmt"
	"maps"

	"sigs.k8s.io/yaml"

	"github.com/environment-broker/environment-broker/internal/operatorapi"
)

// Scenario is what a Broker has, and how it answers.
type Scenario struct {
	// Username and Password are insisted on unless both are empty.
	Username string `json:"username"`
	Password string `json:"password"`
	// PageSize is how many entries stand on a page; zero: all.
	PageSize int                   `json:"pageSize"`
	Runtimes []operatorapi.Runtime `json:"runtimes"`
	// Bindings are those of all instances.
	Bindings []operatorapi.Binding `json:"bindings"`
	// Operations are told frame by frame, one with each question; the last frame is told from then on.
	Operations []Script `json:"operations"`
	// Provision, Update, Expire and Deprovision name the operations that such requests begin. Without one there is nothing left to do.
	Provision   string `json:"provision"`
	Update      string `json:"update"`
	Expire      string `json:"expire"`
	Deprovision string `json:"deprovision"`
	// Kubeconfig is given out as every runtime's.
	Kubeconfig operatorapi.AdminKubeconfig `json:"kubeconfig"`
	// Interventions are what may be done about operations. Everything else is a conflict.
	Interventions []Intervention `json:"interventions"`
	// Audit is the audit trail, the newest entry first.
	Audit []operatorapi.AuditEntry `json:"audit"`
	// Faults are answers to calls in place of the right ones.
	Faults []Fault `json:"faults"`
}

// Script is how an operation goes on.
type Script struct {
	ID     string  `json:"id"`
	Frames []Frame `json:"frames"`
}

// Intervention is something that may be done about an operation.
type Intervention struct {
	// Operation is its id, Verb is cancel, retry or skip.
	Operation string `json:"operation"`
	Verb      string `json:"verb"`
	// Successor is, for a retry, the id of the operation that goes on. It is told from its first frame.
	Successor string `json:"successor"`
}

// Frame is one answer to the question for an operation.
type Frame struct {
	// Operation has the fields that differ from the frame before; null takes a field away.
	Operation map[string]any `json:"operation"`
	// Fault, if set, is the answer instead.
	Fault *Fault `json:"fault"`
}

// Fault is an answer that is no success.
type Fault struct {
	// Call is the method and path that is answered so. In a frame it is left out.
	Call string `json:"call"`
	// Cut breaks the connection without an answer.
	Cut bool `json:"cut"`
	// Status, RetryAfter in seconds and Body make the answer.
	Status     int    `json:"status"`
	RetryAfter int    `json:"retryAfter"`
	Body       string `json:"body"`
}

// Parse reads a scenario from YAML.
func Parse(text []byte) (Scenario, error) {
	var scenario Scenario
	if err := yaml.UnmarshalStrict(text, &scenario); err != nil {
		return Scenario{}, fmt.Errorf("reading the scenario: %w", err)
	}

	return scenario, nil
}

// told is a script with each of its operations complete.
type told struct {
	frames []frame
	asked  int
}

type frame struct {
	operation operatorapi.Operation
	fault     *Fault
}

// complete lays the frames of a script over each other.
func (s Script) complete() (*told, error) {
	fields := map[string]any{"operationID": s.ID}
	result := &told{}

	for number, next := range s.Frames {
		maps.Copy(fields, next.Operation)

		encoded, err := json.Marshal(fields)
		if err != nil {
			return nil, fmt.Errorf("operation %s, frame %d: %w", s.ID, number, err)
		}

		full := frame{fault: next.Fault}
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

// present is the frame of the next question.
func (t *told) present() frame { return t.frames[min(t.asked, len(t.frames)-1)] }
