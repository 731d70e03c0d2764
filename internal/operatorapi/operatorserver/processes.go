package operatorserver

import (
	"fmt"
	"net/http"
	"slices"

	"github.com/environment-broker/environment-broker/internal/httpserver"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
	"github.com/environment-broker/environment-broker/process"
)

// ListProcesses returns the processes that this replica runs.
func (a *API) ListProcesses(*http.Request) (httpserver.Response, error) {
	list := operatorapi.ProcessList{Data: []operatorapi.Process{}}

	for _, described := range a.Processes {
		list.Data = append(list.Data, processOf(described))
	}

	return httpserver.OK(list), nil
}

// processOf converts a process description to an operatorapi.Process.
func processOf(described process.Description) operatorapi.Process {
	shown := operatorapi.Process{Kind: described.Kind, Limit: described.Limit.String(), Steps: []operatorapi.ProcessStep{}}

	for _, step := range described.Steps {
		shown.Steps = append(shown.Steps, operatorapi.ProcessStep{
			Stage: step.Stage, Step: step.Step, Does: step.Does, System: step.System, Condition: step.Condition, Off: step.Off,
			Retry:     fmt.Sprintf("%s to %s", step.Retry.First, step.Retry.Cap),
			RetryFrom: step.RetryFrom, Limit: step.Limit.String(), Optional: step.Optional, Skippable: step.Skippable, Creates: step.Creates,
		})
	}

	return shown
}

// described returns the description of the process with the given kind. If the service has no such process, the description is empty.
func (a *API) described(kind string) process.Description {
	at := slices.IndexFunc(a.Processes, func(described process.Description) bool { return described.Kind == kind })
	if at < 0 {
		return process.Description{}
	}

	return a.Processes[at]
}
