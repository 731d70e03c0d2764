package operator_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/internal/operatorapi"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/provisioner/operation"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/runtimes"
	"github.com/environment-broker/environment-broker/storage/storagetest"
)

// onlyReason is the body of an intervention that has only a reason.
const onlyReason = `{"reason": "the quota was raised"}`

func (f *fixture) operationIDs(query string) []string {
	f.Helper()

	ids := []string{}
	for _, operation := range get[operatorapi.OperationList](f, "/operations"+query).Data {
		ids = append(ids, operation.ID)
	}

	return ids
}

func TestListOperations(t *testing.T) {
	onEach(t, func(f *fixture) {
		first := f.order("first", process.InProgress)
		second := f.order("second", process.Failed, func(r *runtimes.Runtime) { r.Tenant, r.Region = "other", "eu-west-1" })
		gone := f.order("gone", process.Succeeded, func(r *runtimes.Runtime) { r.DeletedAt = start.Add(time.Hour) })

		if _, err := storage.Exec(f.Context(), f.db.Writer(), `UPDATE operations SET problem_message = 'no quota' WHERE id = ?`, first); err != nil {
			f.Fatal(err)
		}

		for query, want := range map[string][]string{
			"":                              {gone, second, first},
			"?instance_id=first":            {first},
			"?name=c-second":                {second},
			"?account=other":                {second},
			"?account=acme":                 {gone, first},
			"?region=eu-west-1":             {second},
			"?state=failed":                 {second},
			"?kind=Provision":               {},
			"?stuck=true":                   {first},
			"?since=2030-01-02T03:04:07Z":   {gone, second},
			"?until=2030-01-02T03:04:07Z":   {first},
			"?account=acme&state=succeeded": {gone},
		} {
			if diff := cmp.Diff(want, f.operationIDs(query)); diff != "" {
				f.Errorf("%q: -want +got\n%s", query, diff)
			}
		}

		listed := get[operatorapi.OperationList](f, "/operations?instance_id=gone").Data[0]
		if listed.InstanceName != "c-gone" || listed.InstanceID != "gone" {
			f.Errorf("an operation has the name of its Shoot: got %+v", listed)
		}

		processes := get[operatorapi.ProcessList](f, "/processes").Data
		if len(processes) != 1 || processes[0].Limit != "1h0m0s" || processes[0].Steps[0].Does != "Creates the Shoot." {
			f.Errorf("operators read what the steps do: got %+v", processes)
		}

		shown := get[operatorapi.Operation](f, "/operations/"+first)
		if shown.InstanceName != "c-first" || len(shown.Stages) != 2 || len(shown.Timeline) == 0 || shown.Problem.Message != "no quota" {
			f.Errorf("an operation has stages, timeline and problem: got %+v", shown)
		}
	})
}

func TestInvalidListsOfOperations(t *testing.T) {
	f := newFixture(t, storagetest.SQLite(t))

	for query, want := range map[string]string{
		"?binding_id=b&instance_id=i": `The parameter "binding_id" is unknown.`, // only the broker has bindings
		"?stuck=perhaps":              "stuck must be true or false.",
		"?since=yesterday":            "since must be a time such as 2030-01-02T15:04:05Z.",
	} {
		got := read[operatorapi.Error](f, f.do("viewer", "GET", "/operations"+query, "", http.StatusBadRequest))
		if !strings.Contains(got.Description, want) {
			t.Errorf("%s: got %q, want %q", query, got.Description, want)
		}
	}
}

func TestInterventions(t *testing.T) {
	onEach(t, func(f *fixture) {
		running, failed := f.order("running", process.InProgress), f.order("failed", process.Failed)

		canceled := read[operatorapi.Operation](f, f.do("operator", "POST", "/operations/"+running+"/cancel", onlyReason, http.StatusAccepted))
		if canceled.State != operatorapi.OperationStateCanceling || f.woken != 1 {
			f.Errorf("the operation is %s, and the engine was woken %d times", canceled.State, f.woken)
		}

		again := read[operatorapi.Operation](f, f.do("operator", "POST", "/operations/"+failed+"/retry", onlyReason, http.StatusAccepted))
		if again.PredecessorID != failed || again.State != operatorapi.OperationStatePending || again.InstanceID != "failed" {
			f.Errorf("the retry is %+v", again)
		}

		refused := read[operatorapi.Error](f, f.do("operator", "POST", "/operations/"+failed+"/retry", onlyReason, http.StatusConflict))
		if want := "A later operation exists for this runtime: " + again.ID; !strings.HasPrefix(refused.Description, want) {
			f.Errorf("a second retry: got %q, want %q", refused.Description, want)
		}

		list := read[operatorapi.AuditList](f, f.do("admin", "GET", "/audit?instance_id=failed", "", http.StatusOK))

		var actions []string
		for _, entry := range list.Data {
			actions = append(actions, entry.Action+" "+entry.OperationID+" "+entry.By.User+" "+entry.Reason)
		}

		if want := "retry " + failed + " operator the quota was raised"; len(actions) == 0 || !strings.Contains(strings.Join(actions, "\n"), want) {
			f.Errorf("the audit log has %q, want %q", actions, want)
		}
	})
}

func TestNoRetryWithoutARuntime(t *testing.T) {
	onEach(t, func(f *fixture) {
		id := f.order("gone", process.Failed, func(r *runtimes.Runtime) { r.DeletedAt = start.Add(time.Hour) })

		refused := read[operatorapi.Error](f, f.do("operator", "POST", "/operations/"+id+"/retry", onlyReason, http.StatusConflict))
		if want := "The runtime of the operation no longer exists, so there is nothing to retry."; refused.Description != want {
			f.Errorf("got %q, want %q", refused.Description, want)
		}

		if got := f.operationIDs("?kind=" + operation.KindProvisionNoInstall); len(got) != 1 {
			f.Errorf("the runtime has the operations %v, want no new one", got)
		}
	})
}
