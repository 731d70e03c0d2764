package lifecyclemanager

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/environment-broker/environment-broker/internal/failure"
)

// State is the state of a Kyma resource or of a module, as Lifecycle Manager reports it.
type State string

// The states of Lifecycle Manager. A new resource has no state.
const (
	Ready      State = "Ready"
	Processing State = "Processing"
	// Warning means that the modules are installed but need the attention of the user.
	Warning State = "Warning"
	// Error means that Lifecycle Manager failed and tries again.
	Error    State = "Error"
	Deleting State = "Deleting"
	// Unmanaged means that Lifecycle Manager no longer touches the modules, because a user has requested this.
	Unmanaged State = "Unmanaged"
)

// Status is the status of a Kyma resource.
type Status struct {
	State State
	// Current reports whether the state reflects the latest change of the resource.
	Current bool
	// Report names the modules that are not ready, with Lifecycle Manager's messages. It is for operators.
	Report string
}

// Done reports whether Lifecycle Manager has nothing left to do for the resource.
func (s Status) Done() bool {
	return s.Current && (s.State == Ready || s.State == Warning || s.State == Unmanaged)
}

// Describe returns the state for operators, such as "Lifecycle Manager reports the state Error: module eventing is in state Error: …".
func (s Status) Describe() string {
	text := "Lifecycle Manager has not reported a state yet"

	switch {
	case !s.Current && s.State != "":
		text = "Lifecycle Manager has not processed the latest change yet"
	case s.State != "":
		text = "Lifecycle Manager reports the state " + string(s.State)
	}

	if s.Report != "" {
		text += ": " + s.Report
	}

	return text
}

// maxReported limits the number of modules in a report.
const maxReported = 10

// wireKyma is the part of a Kyma resource that the broker reads, in its wire format.
type wireKyma struct {
	Metadata struct {
		Generation int64 `json:"generation"`
	} `json:"metadata"`
	Status struct {
		State      State `json:"state"`
		Conditions []struct {
			ObservedGeneration int64 `json:"observedGeneration"`
		} `json:"conditions"`
		Modules []struct {
			Name    string `json:"name"`
			State   State  `json:"state"`
			Message string `json:"message"`
		} `json:"modules"`
		LastOperation struct {
			Operation string `json:"operation"`
		} `json:"lastOperation"`
	} `json:"status"`
}

// decodeStatus decodes the status of a Kyma resource from its JSON. If Lifecycle Manager does not report an observed generation,
// the status is assumed to be current.
func decodeStatus(raw json.RawMessage) (Status, error) {
	var kyma wireKyma
	if json.Unmarshal(raw, &kyma) != nil {
		return Status{}, failure.New(failure.Transient, "the control plane returned a Kyma resource in an unexpected format").
			WithReason(failure.ReasonHTTPStatus, failure.ComponentControlPlane)
	}

	observed := int64(0)
	for _, condition := range kyma.Status.Conditions {
		observed = max(observed, condition.ObservedGeneration)
	}

	var report []string

	for _, module := range kyma.Status.Modules {
		if module.State == Ready || len(report) == maxReported {
			continue
		}

		line := fmt.Sprintf("module %s is in state %s", module.Name, module.State)
		if module.Message != "" {
			line += ": " + module.Message
		}

		report = append(report, line)
	}

	if len(report) == 0 && kyma.Status.State != Ready && kyma.Status.LastOperation.Operation != "" {
		report = append(report, kyma.Status.LastOperation.Operation)
	}

	return Status{
		State: kyma.Status.State, Current: observed == 0 || observed >= kyma.Metadata.Generation, Report: strings.Join(report, "; "),
	}, nil
}
