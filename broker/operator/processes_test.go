package operator_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/broker/operator"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
	"github.com/environment-broker/environment-broker/process"
)

func TestProcesses(t *testing.T) {
	watch := process.StepFunc[struct{}]("Watch", nil)
	processes := []process.Process[struct{}]{{
		Kind: "provision", Limit: time.Hour,
		Stages: []process.Stage[struct{}]{
			{Name: "start", Retry: process.DefaultRetry(), Steps: process.Steps(process.StepFunc[struct{}]("Starting", nil))},
			{Name: "create", Retry: process.DefaultRetry(), RetryFrom: "start", Steps: []process.Task[struct{}]{{
				Step: watch, Skippable: true, When: process.Condition[struct{}]{Text: "not trial", Off: true},
				Notes: process.Notes{Does: "Watches the runtime.", System: "Monitoring", Creates: "a monitor", Limit: time.Minute, Optional: true},
			}}},
		},
	}}

	b := newBench(t, func(options *operator.Options) { options.Processes = process.Describe(processes) })

	var got operatorapi.ProcessList
	if err := json.Unmarshal([]byte(b.want("viewers may read the processes", b.do("viewer", "GET", "/processes"), 200).Raw), &got); err != nil {
		t.Fatal(err)
	}

	want := operatorapi.ProcessList{Data: []operatorapi.Process{{Kind: "provision", Limit: "1h0m0s", Steps: []operatorapi.ProcessStep{
		{Stage: "start", Step: "Starting", Retry: "1s to 1m0s", RetryFrom: "start", Limit: "1h0m0s"},
		{
			Stage: "create", Step: "Watch", Does: "Watches the runtime.", System: "Monitoring", Condition: "not trial", Off: true, Retry: "1s to 1m0s", RetryFrom: "start",
			Limit: "1m0s", Optional: true, Skippable: true, Creates: "a monitor",
		},
	}}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}
