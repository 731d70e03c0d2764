package broker_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/broker"
	"github.com/environment-broker/environment-broker/broker/catalog"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/resources"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/storagetest"
)

// offering returns a change of the broker's options: the built-in catalog, loaded with the changed catalog options.
func offering(t *testing.T, change func(*catalog.Options)) func(*broker.Options) {
	t.Helper()

	options := catalog.Options{KubernetesVersion: "1.34", OperationTimeout: 24 * time.Hour}
	change(&options)

	offer, err := catalog.Load(resources.Catalog(), options)
	if err != nil {
		t.Fatal(err)
	}

	return func(options *broker.Options) { options.Catalog = offer }
}

// oneTrial limits each account to one instance of the trial plan.
func oneTrial(options *catalog.Options) { options.OnePerAccount = []string{"trial"} }

// trialOf returns the body of an account's order for the trial plan.
func trialOf(account string) string {
	return order(with("plan_id", planTrial), with("parameters", nil), with("context", map[string]any{"globalaccount_id": account}))
}

func TestOneTrialPerAccount(t *testing.T) {
	storagetest.EachDatabase(t, func(t *testing.T, db *storage.DB) {
		b := newFixtureOn(t, db, offering(t, oneTrial))

		first := b.want("the first order", b.put("one", trialOf("ga-1")), 202)

		if again := b.want("a repeated order does not count twice", b.put("one", trialOf("ga-1")), 202); again.text("operation") != first.text("operation") {
			b.Errorf("D10: the same order has another operation: %s", again.Raw)
		}

		const text = "An account may have only one instance of plan trial, and this account already has instance one. Delete that instance first."
		if got := b.want("a second order", b.put("two", trialOf("ga-1")), 422); got.text("description") != text {
			b.Errorf("the description is %q, want %q", got.text("description"), text)
		}

		b.want("A15: the rejected instance does not exist", b.get("two"), 404)
		b.want("other plans have their own quota", b.put("three", order(with("context", map[string]any{"globalaccount_id": "ga-1"}))), 202)
		b.want("other accounts have their own quota", b.put("four", trialOf("ga-2")), 202)

		b.move(first.text("operation"), process.Succeeded)
		b.want("D12: repeated after the creation", b.put("one", trialOf("ga-1")), 200)
		b.forget("one")
		b.want("deleted instances do not count", b.put("two", trialOf("ga-1")), 202)
	})
}

func TestConcurrentTrials(t *testing.T) {
	const times = 8

	storagetest.EachDatabase(t, func(t *testing.T, db *storage.DB) {
		b := newFixtureOn(t, db, offering(t, oneTrial))
		statuses := make(chan int, times)
		start := make(chan struct{})

		for i := range times {
			go func() {
				<-start

				statuses <- b.send(call{
					method: "PUT", path: path(fmt.Sprintf("trial-%d", i)) + "?accepts_incomplete=true", body: trialOf("ga-1"),
				}).Status
			}()
		}

		close(start)

		got := map[int]int{}
		for range times {
			got[<-statuses]++
		}

		if got[202] != 1 || got[422] != times-1 {
			b.Errorf("want one of %d concurrent orders to be accepted and the others to be rejected, got the statuses %v", times, got)
		}
	})
}

// TestUpdatesRespectTheQuota moves an instance to another account, and to another plan. Both are rejected if the quota of
// the target is used up. The platform must not repeat the update, because it will be rejected until an instance is deleted.
func TestUpdatesRespectTheQuota(t *testing.T) {
	cases := map[string]struct {
		reason, plan string
		fields       map[string]any
		status       int
		taken        bool
	}{
		"Move":       {"the other account has an instance of the plan", planLarge, with("context", with("globalaccount_id", "other")), 422, true},
		"MoveFree":   {"the other account has none", planLarge, with("context", with("globalaccount_id", "free")), 200, true},
		"MoveBack":   {"a move to the own account is no change", planLarge, with("context", with("globalaccount_id", "own")), 200, true},
		"Change":     {"the account has an instance of the new plan", planAWS, with("plan_id", planLarge), 422, true},
		"ChangeFree": {"the account has no instance of the new plan", planAWS, with("plan_id", planLarge), 202, false},
		"Both": {
			"the other account has an instance of the new plan", planAWS,
			map[string]any{"plan_id": planLarge, "context": with("globalaccount_id", "other")},
			422, false,
		},
	}

	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			storagetest.EachDatabase(t, func(t *testing.T, db *storage.DB) {
				b := newFixtureOn(t, db, withLargePlan(t, "large"), func(options *broker.Options) { options.AccountMovement = true })
				create := func(id, plan, account string) {
					fields := map[string]any{"plan_id": plan, "parameters": nil, "context": with("globalaccount_id", account)}
					b.move(b.want("an instance", b.put(id, order(fields)), 202).text("operation"), process.Succeeded)
				}

				create("holder", planLarge, "other")
				create(instanceID, test.plan, "own")

				if test.taken && test.plan == planAWS {
					create("second", planLarge, "own")
				}

				before := b.stored(instanceID)

				got := b.want(test.reason, b.patch(instanceID, test.fields), test.status)
				if test.status != 422 {
					return
				}

				if got.Body["update_repeatable"] != false || got.Body["error"] != nil {
					b.Errorf("F15: the update is reported as repeatable, or has an error code: %s", got.Raw)
				}

				if !strings.HasPrefix(got.text("description"), "An account may have only one instance of plan large, ") {
					b.Errorf("the description is %q", got.text("description"))
				}

				if diff := cmp.Diff(before, b.stored(instanceID)); diff != "" || len(b.carried(instanceID)) != 1 {
					b.Errorf("F13: the rejected update changed the instance or started an operation: -before +after\n%s", diff)
				}
			})
		})
	}
}

// TestConcurrentMoves sends more updates at once than the connection pool has connections. If an update needed a second
// connection, all updates would block each other.
func TestConcurrentMoves(t *testing.T) {
	const times = 60

	b := newFixtureOn(t, storagetest.Open(t, storagetest.Postgres(t)), offering(t, oneTrial),
		func(options *broker.Options) { options.AccountMovement = true })
	id := func(n int) string { return fmt.Sprintf("trial-%d", n) }

	for n := range times {
		b.want("a trial", b.put(id(n), trialOf(id(n))), 202)
	}

	for _, work := range storagetest.Claim(b, b.operations, process.Claim{
		Owner: "test", Limit: times, Now: b.clock.Now(), Until: b.clock.Now().Add(time.Minute),
	}, environment.KindProvision) {
		work.Record.State, work.Record.FinishedAt = process.Succeeded, b.clock.Now()

		if _, err := b.operations.Save(t.Context(), process.Progress{Record: work.Record, Release: true, Now: b.clock.Now()}); err != nil {
			t.Fatal(err)
		}
	}

	for _, got := range b.togetherEach(times, func(n int) call {
		return call{method: "PATCH", path: path(id(n)), body: patching(with("context", with("globalaccount_id", "other-"+id(n))))}
	}) {
		if got.Status != 200 {
			t.Fatalf("a move to an account without other instances got %d %s", got.Status, got.Raw)
		}
	}
}

func TestTrialsWithoutTheRule(t *testing.T) {
	b := newFixture(t)

	b.want("with the limit", b.put("one", trialOf("ga-1")), 202)
	b.want("without the limit", b.put("two", trialOf("ga-1")), 202)
}

func TestPlansNotOffered(t *testing.T) {
	b := newFixture(t)
	b.want("the plan is offered", b.put("one", order()), 202)

	offering(t, func(options *catalog.Options) { options.EnablePlans = []string{"trial", "azure"} })(&b.options)
	b.restart()

	if got := b.want("the plan is no longer offered", b.put("two", order()), 400); got.text("description") != "This plan is not available for new instances. Choose a different plan." {
		b.Errorf("the description is %s", got.Raw)
	}

	b.want("D10: repeated orders of existing instances are accepted", b.put("one", order()), 202)
	b.want("existing instances can be deleted", b.remove("one"), 202)

	plans := b.do(call{method: "GET", path: "/v2/catalog"}).Body["services"].([]any)[0].(map[string]any)["plans"].([]any)
	if len(plans) != 2 {
		b.Errorf("the catalog has %d plans, want two", len(plans))
	}
}
