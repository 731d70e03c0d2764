package operator_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/broker/estimate"
	"github.com/environment-broker/environment-broker/broker/operator"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
)

const allTargets = `{"targets":{"include":[{"target":"all"}]},"strategy":{"type":"parallel","schedule":"immediate","parallel":{"workers":2}}}`

// orchestrate orders an orchestration and adds targets to it: one that failed, one that is pending and one that was left out.
func (b *bench) orchestrate() string {
	b.Helper()

	got := b.want("an order", b.send("operator", "POST", "/upgrade/cluster", strings.NewReader(allTargets)), 202)
	id := read[operatorapi.AcceptedOrchestration](b, got).OrchestrationID

	b.inTx(func(tx storage.Tx) error {
		return b.orchestrations.AddTargets(b.Context(), tx, []environment.Target{
			{OrchestrationID: id, InstanceID: "a", OperationID: "op-a", State: environment.TargetFailed, NotBefore: b.clock.Now()},
			{OrchestrationID: id, InstanceID: "b", OperationID: "op-b", State: environment.TargetPending, Description: "Waiting", NotBefore: b.clock.Now()},
			{OrchestrationID: id, InstanceID: "c", OperationID: "op-c", State: environment.TargetLeftOut, Description: "why", NotBefore: b.clock.Now()},
		})
	})

	return id
}

func TestOrchestrations(t *testing.T) {
	b := newBench(t)
	id := b.orchestrate()

	shown := read[operatorapi.Orchestration](b, b.want("one", b.do("viewer", "GET", "/orchestrations/"+id), 200))
	if shown.OrchestrationID != id || shown.Type != "upgradeCluster" || shown.State != "pending" || shown.OrderedBy != "operator" ||
		shown.Parameters.Strategy.Parallel.Workers != 2 || !shown.Parameters.Strategy.ScheduleTime.Equal(b.clock.Now()) {
		t.Errorf("got %+v", shown)
	}

	if diff := cmp.Diff(map[string]int{"failed": 1, "pending": 1, "left out": 1}, shown.OperationStats); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}

	if shown.Percent != 50 || !shown.EstimatedEnd.IsZero() || len(shown.Waves) != 1 || shown.Waves[0].Percent != 50 {
		t.Errorf("got %d %%, an end at %s and waves %+v, want half of the targets, and no end without past upgrades", shown.Percent, shown.EstimatedEnd, shown.Waves)
	}

	for query, want := range map[string]int{"": 1, "?state=pending": 1, "?state=failed,canceled": 0, "?page=2&page_size=1": 0} {
		list := read[operatorapi.OrchestrationList](b, b.want("the list", b.do("viewer", "GET", "/orchestrations"+query), 200))
		if len(list.Data) != want || list.Count != want || list.TotalCount == nil || list.Data == nil {
			t.Errorf("%s: got %+v", query, list)
		}

		if want == 1 && list.Data[0].Percent != 50 {
			t.Errorf("%s: the list has %d %%, want half of the targets", query, list.Data[0].Percent)
		}
	}

	targets := read[operatorapi.OrchestrationOperationList](b, b.want("its operations", b.do("viewer", "GET", "/orchestrations/"+id+"/operations"), 200))
	if len(targets.Data) != 2 || *targets.TotalCount != 2 || targets.Data[1].Description != "Waiting" || targets.Data[0].State != "failed" {
		t.Errorf("got %+v", targets)
	}

	out := read[operatorapi.OrchestrationOperationList](b, b.want("left out", b.do("viewer", "GET", "/orchestrations/"+id+"/operations?state=left%20out"), 200))
	if len(out.Data) != 1 || out.Data[0].Description != "why" {
		t.Errorf("got %+v", out)
	}

	for path, want := range map[string]string{
		"/orchestrations?state=failed,done":                     "The state \\\"done\\\" is unknown. Use one of: planned,",
		"/orchestrations/" + id + "/operations?state=canceling": "The state \\\"canceling\\\" is unknown. Use one of: pending,",
	} {
		if response := b.do("viewer", "GET", path); response.Status != http.StatusBadRequest || !strings.Contains(response.Raw, want) {
			t.Errorf("%s: %d %s, want %q", path, response.Status, response.Raw, want)
		}
	}

	one := read[operatorapi.OrchestrationOperation](b, b.want("an operation", b.do("viewer", "GET", "/orchestrations/"+id+"/operations/op-b"), 200))
	if one.InstanceID != "b" || one.OrchestrationID != id {
		t.Errorf("got %+v", one)
	}

	b.want("an unknown operation", b.do("viewer", "GET", "/orchestrations/"+id+"/operations/op-x"), 404)

	for range 2 {
		b.want("a cancellation, which can be repeated", b.do("operator", "PUT", "/orchestrations/"+id+"/cancel"), 200)
	}

	b.want("a retry meanwhile", b.do("operator", "POST", "/orchestrations/"+id+"/retry"), 409)

	entries := read[operatorapi.AuditList](b, b.want("the audit log", b.do("admin", "GET", "/audit?user=operator"), 200)).Data

	var actions []string
	for _, entry := range entries {
		actions = append(actions, entry.Action)
	}

	slices.Sort(actions) // all have the same time

	if diff := cmp.Diff([]string{"cancel", "orchestrate", "retry"}, actions); diff != "" {
		t.Errorf("audit log -want +got\n%s", diff)
	}
}

// TestUnknownPlansOfTargets misspells plans: an exclusion with an unknown plan would leave nobody out.
func TestUnknownPlansOfTargets(t *testing.T) {
	b := newBench(t)
	b.instance("a", process.Succeeded, func(instance *environment.Instance) { instance.PlanID, instance.PlanName = "former-id", "former" })

	const unknown = "is unknown. Use one of: aws, "

	for targets, want := range map[string]string{
		`{"include": [{"planName": "asw"}]}`:                                      `The plan "asw" ` + unknown,
		`{"include": [{"target": "all"}], "exclude": [{"planName": "asw"}]}`:      `The plan "asw" ` + unknown,
		`{"include": [{"planName": "former-id"}]}`:                                `The plan "former-id" ` + unknown,
		`{"include": [{"planName": "aws"}], "exclude": [{"planName": "former"}]}`: "",
		`{"include": [{"runtimeID": "r", "planName": "asw"}]}`:                    "", // the plan has no effect
	} {
		for path, accepted := range map[string]int{"/upgrade/cluster": 202, "/upgrade/kyma": 202, "/upgrade/cluster/plan": 201, "/upgrade/kyma/plan": 201} {
			status := accepted
			if want != "" {
				status = http.StatusBadRequest
			}

			got := b.want(path+" "+targets, b.send("operator", "POST", path, strings.NewReader(`{"targets": `+targets+`}`)), status)
			if want != "" && !strings.Contains(read[operatorapi.Error](b, got).Description, want) {
				t.Errorf("%s %s: %s, want %q", path, targets, got.Raw, want)
			}
		}
	}
}

// TestForecastOfAnOrchestration predicts the end of orchestrations whose upgrades take ten minutes, and at the latest thirty.
func TestForecastOfAnOrchestration(t *testing.T) {
	past := pastOperations{
		{OperationID: "1", Kind: environment.KindUpgradeCluster, Took: 10 * time.Minute},
		{OperationID: "2", Kind: environment.KindUpgradeCluster, Took: 30 * time.Minute},
	}

	for name, c := range map[string]struct {
		reason         string
		strategy       string
		notBefore      time.Duration
		likely, latest time.Duration
	}{
		"workers":  {"both upgrades run at once", `{"parallel": {"workers": 2}}`, 0, 10 * time.Minute, 30 * time.Minute},
		"region":   {"they run one after the other", `{"parallel": {"workers": 2, "workersPerRegion": 1}}`, 0, 20 * time.Minute, time.Hour},
		"deadline": {"they start at their times", `{"parallel": {"workers": 2}, "deadline": "2030-01-09T00:00:00Z"}`, time.Hour, 70 * time.Minute, 90 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, func(options *operator.Options) {
				options.Estimator = estimate.New(past, past)

				if err := options.Estimator.Refresh(t.Context()); err != nil {
					t.Fatal(err)
				}
			})

			order := strings.NewReader(`{"targets": {"include": [{"target": "all"}]}, "strategy": ` + c.strategy + `}`)
			id := read[operatorapi.AcceptedOrchestration](b, b.want("an order", b.send("operator", "POST", "/upgrade/cluster", order), 202)).OrchestrationID
			target := environment.Target{
				OrchestrationID: id, State: environment.TargetPending, Provider: "aws", Region: "eu", NotBefore: b.clock.Now().Add(c.notBefore),
			}

			b.inTx(func(tx storage.Tx) error {
				for _, instance := range []string{"a", "b"} {
					target.InstanceID, target.OperationID = instance, "op-"+instance
					if err := b.orchestrations.AddTargets(b.Context(), tx, []environment.Target{target}); err != nil {
						return err
					}
				}

				return b.orchestrations.SetState(b.Context(), tx, id, environment.OrchestrationInProgress, "", b.clock.Now())
			})

			shown := read[operatorapi.Orchestration](b, b.want("one", b.do("viewer", "GET", "/orchestrations/"+id), 200))
			if now := b.clock.Now(); !shown.EstimatedEnd.Equal(now.Add(c.likely)) || !shown.LatestEnd.Equal(now.Add(c.latest)) {
				t.Errorf("%s: the end is %s to %s, want after %s to %s", c.reason, shown.EstimatedEnd, shown.LatestEnd, c.likely, c.latest)
			}
		})
	}
}

// TestPlans makes plans and applies them through the API.
func TestPlans(t *testing.T) {
	b := newBench(t)
	known := func(instance *environment.Instance) {
		instance.PlanID = "361c511f-f939-4621-b228-d0fb79a1fe15"
		instance.Request.Cluster.KubernetesVersion = "1.34.2"
	}
	b.instance("one", process.Succeeded, known)
	b.instance("two", process.Succeeded, known)

	for path, kind := range map[string]string{"/upgrade/kyma/plan": "upgradeKyma", "/upgrade/cluster/plan": "upgradeCluster"} {
		got := b.want("a plan", b.send("operator", "POST", path, strings.NewReader(allTargets)), 201)
		id := read[operatorapi.AcceptedOrchestration](b, got).OrchestrationID

		shown := read[operatorapi.Orchestration](b, b.want("one", b.do("viewer", "GET", "/orchestrations/"+id), 200))
		if shown.State != "planned" || shown.Type != kind || !shown.ExpiresAt.Equal(b.clock.Now().Add(7*24*time.Hour)) {
			t.Errorf("got %+v", shown)
		}

		b.want("a misspelled field", b.send("operator", "POST", "/orchestrations/"+id+"/apply", strings.NewReader(`{"strickt":true}`)), 400)

		if kind == "upgradeKyma" {
			continue
		}

		list := read[operatorapi.OrchestrationOperationList](b, b.want("its targets", b.do("viewer", "GET", "/orchestrations/"+id+"/operations"), 200))
		if len(list.Data) != 2 || list.Data[0].ToVersion == "" || list.Data[0].Region == "" {
			t.Errorf("got %+v", list)
		}

		b.inTx(func(tx storage.Tx) error {
			_, err := storage.Exec(b.Context(), tx, `DELETE FROM instances WHERE id = 'two'`)

			return err
		})

		b.want("strict", b.send("operator", "POST", "/orchestrations/"+id+"/apply", strings.NewReader(`{"strict":true}`)), 409)

		applied := read[operatorapi.AppliedPlan](b, b.want("applied", b.do("operator", "POST", "/orchestrations/"+id+"/apply"), 202))
		if applied.ChangedCount != 1 || len(applied.Changed) != 1 || applied.Changed[0].InstanceID != "two" {
			t.Errorf("got %+v", applied)
		}

		if shown := read[operatorapi.Orchestration](b, b.want("one", b.do("viewer", "GET", "/orchestrations/"+id), 200)); shown.AppliedBy != "operator" {
			t.Errorf("got %+v", shown)
		}

		b.want("applied before", b.do("operator", "POST", "/orchestrations/"+id+"/apply"), 409)
	}

	b.want("an unknown plan", b.do("operator", "POST", "/orchestrations/other/apply"), 404)

	var actions []string

	for _, entry := range read[operatorapi.AuditList](b, b.want("the audit log", b.do("admin", "GET", "/audit?user=operator"), 200)).Data {
		actions = append(actions, entry.Action)
	}

	slices.Sort(actions)

	if diff := cmp.Diff([]string{"apply", "apply", "apply", "apply", "apply", "apply", "plan", "plan"}, actions); diff != "" {
		t.Errorf("audit log -want +got\n%s", diff)
	}
}

// TestInvalidOrchestrations sends orders with which Kyma Environment Broker panicked, hung or upgraded nothing.
func TestInvalidOrchestrations(t *testing.T) {
	b := newBench(t)

	for reason, body := range map[string]string{
		"nothing":            ``,
		"no workers":         `{"targets":{"include":[{"target":"all"}]},"strategy":{"parallel":{"workers":0}}}`,
		"a misspelled field": `{"targets":{"include":[{"planname":"aws","globalacount":"x"}]}}`,
		"no JSON":            `targets`,
	} {
		for _, path := range []string{"/upgrade/kyma", "/upgrade/cluster"} {
			b.want(reason, b.send("operator", "POST", path, strings.NewReader(body)), 400)
		}
	}

	b.want("without kyma and without a strategy", b.send("operator", "POST", "/upgrade/kyma", strings.NewReader(`{"targets":{"include":[{"target":"all"}]}}`)), 202)
}

func TestRetryOrchestration(t *testing.T) {
	for name, c := range map[string]struct {
		reason, media, body string
		status              int
		want                operatorapi.OrchestrationRetried
	}{
		"form": {
			"the form of Kyma Environment Broker", "application/x-www-form-urlencoded", "operation-id=op-a&operation-id=op-x&immediate=true", 202,
			operatorapi.OrchestrationRetried{RetryShoots: []string{"a"}, OldOperations: []string{}, InvalidOperations: []string{"op-x"}, Msg: "Retrying 1 operation."},
		},
		"JSON": {
			"JSON", "application/json", `{"operationIDs":["op-b"]}`, 202,
			operatorapi.OrchestrationRetried{RetryShoots: []string{}, OldOperations: []string{}, InvalidOperations: []string{"op-b"}, Msg: "Retrying 0 operations."},
		},
		"all": {
			"all that failed", "application/json", ``, 202,
			operatorapi.OrchestrationRetried{RetryShoots: []string{"a"}, OldOperations: []string{}, InvalidOperations: []string{}, Msg: "Retrying 1 operation."},
		},
		"another type":    {"neither a form nor JSON", "text/plain", "x", 415, operatorapi.OrchestrationRetried{}},
		"another field":   {"a misspelled field", "application/x-www-form-urlencoded", "operation_id=x", 400, operatorapi.OrchestrationRetried{}},
		"an invalid flag": {"immediate is a boolean", "application/x-www-form-urlencoded", "immediate=x", 400, operatorapi.OrchestrationRetried{}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			id := b.orchestrate()

			request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, b.address+"/orchestrations/"+id+"/retry", strings.NewReader(c.body))
			if err != nil {
				t.Fatal(err)
			}

			request.SetBasicAuth("operator", "o")
			request.Header.Set("Content-Type", c.media)

			got := b.want(c.reason, b.exchange(request), c.status)
			if c.status != http.StatusAccepted {
				return
			}

			c.want.OrchestrationID = id
			if diff := cmp.Diff(c.want, read[operatorapi.OrchestrationRetried](b, got)); diff != "" {
				t.Errorf("%s: -want +got\n%s", c.reason, diff)
			}
		})
	}
}

// TestConductor checks that the API rejects interventions in the conductor.
func TestConductor(t *testing.T) {
	b := newBench(t)
	id := b.orchestrate()

	conductor, err := b.operations.Latest(t.Context(), b.db.Reader(), environment.OrchestrationKey(id), environment.KindOrchestrate)
	if err != nil {
		t.Fatal(err)
	}

	got := b.want("a cancellation", b.send("operator", "POST", "/operations/"+conductor.ID+"/cancel", strings.NewReader(`{"reason":"x"}`)), 409)
	if !strings.Contains(got.Raw, "/orchestrations") {
		t.Errorf("the advice is missing: %s", got.Raw)
	}

	b.inTx(func(tx storage.Tx) error {
		_, err := storage.Exec(t.Context(), tx, `UPDATE operations SET state = ?, finished_at = ? WHERE id = ?`,
			string(process.Failed), storage.At(time.Now()), conductor.ID)

		return err
	})
	b.want("a retry", b.send("operator", "POST", "/operations/"+conductor.ID+"/retry", strings.NewReader(`{"reason":"x"}`)), 409)

	list := read[operatorapi.OperationList](b, b.want("the operations", b.do("viewer", "GET", "/operations"), 200))
	if len(list.Data) != 1 || list.Data[0].InstanceID != "" || list.Data[0].Kind != environment.KindOrchestrate {
		t.Errorf("got %+v", list.Data)
	}
}
