package environment_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
)

// shown contains the fields of an instance that an update can change.
type shown struct {
	Plan, Account, First, Exclusive, Maintenance string
	Expiry                                       int64
	Nodes                                        int
	Credentials, Parameters, Context             string
}

func shownOf(instance environment.Instance) shown {
	cluster := instance.Request.Cluster

	return shown{
		instance.PlanID, instance.GlobalAccountID, instance.SubscriptionAccountID, instance.Exclusive, instance.MaintenanceVersion, instance.ExpiresAt.Unix(),
		cluster.AutoScalerMin, string(cluster.ServiceManager.ClientID.Reveal()), string(instance.Request.Parameters), string(instance.Request.Context),
	}
}

// TestRetryKeepsLaterChanges changes an instance after an update of it has failed, and applies the retry of the update. The retry
// must make the changes of the update, and keep the later ones.
func TestRetryKeepsLaterChanges(t *testing.T) {
	first := environment.Instance{
		ID: "one", PlanID: "plan", GlobalAccountID: "first", Exclusive: "plan:first", MaintenanceVersion: "1", ExpiresAt: time.Unix(1000, 0),
		Request: environment.Request{
			Parameters: []byte(`{}`), Context: []byte(`{"globalaccount_id":"first","name":"old"}`),
			Cluster: environment.Cluster{AutoScalerMin: 3, ServiceManager: &environment.ServiceManager{ClientID: "old"}},
		},
	}
	resized := func(update *environment.Update) {
		update.Cluster.AutoScalerMin, update.Parameters = 6, []byte(`{"autoScalerMin":6}`)
		update.Context = []byte(`{"globalaccount_id":"first","name":"old"}`) // platforms repeat the whole context
	}
	replanned := func(exclusive string) func(*environment.Update) {
		return func(update *environment.Update) {
			update.PlanID, update.PlanName, update.Exclusive = "other", "other", exclusive
			update.MaintenanceVersion, update.ExpiresAt = "7", time.Unix(7000, 0)
		}
	}
	moved := func(instance *environment.Instance) {
		instance.GlobalAccountID, instance.SubscriptionAccountID, instance.Exclusive = "second", "first", "plan:second"
		instance.Request.Context = []byte(`{"globalaccount_id":"second","name":"old"}`)
	}

	const (
		size, context       = `{"autoScalerMin":6}`, `{"globalaccount_id":"first","name":"old"}`
		contextOfTheAccount = `{"globalaccount_id":"second","name":"old"}`
	)

	cases := map[string]struct {
		reason string
		update func(*environment.Update)
		later  func(*environment.Instance)
		want   shown
	}{
		"nothing": {
			"the update is applied as it was ordered", resized, func(*environment.Instance) {},
			shown{"plan", "first", "", "plan:first", "1", 1000, 6, "old", size, context},
		},
		"account": {
			"the instance stays in its new account", resized, moved,
			shown{"plan", "second", "first", "plan:second", "1", 1000, 6, "old", size, contextOfTheAccount},
		},
		"account twice": {
			"of two moves the later one counts", func(update *environment.Update) {
				update.GlobalAccountID, update.Exclusive, update.Context = "third", "plan:third", []byte(`{"globalaccount_id":"third"}`)
			}, moved,
			shown{"plan", "second", "first", "plan:second", "1", 1000, 3, "old", `{}`, contextOfTheAccount},
		},
		"account of another plan": {
			"a plan without a limit is valid for every account", replanned(""), moved,
			shown{"other", "second", "first", "", "7", 7000, 3, "old", `{}`, contextOfTheAccount},
		},
		"maintenance": {
			"maintenance without a change of the cluster needs no operation", resized,
			func(instance *environment.Instance) { instance.MaintenanceVersion = "2" },
			shown{"plan", "first", "", "plan:first", "2", 1000, 6, "old", size, context},
		},
		"maintenance of the former plan": {
			"the versions of two plans are unrelated", replanned("other:first"),
			func(instance *environment.Instance) {
				instance.MaintenanceVersion, instance.ExpiresAt = "2", time.Unix(2000, 0)
			},
			shown{"other", "first", "", "other:first", "7", 7000, 3, "old", `{}`, context},
		},
		"expiry": {
			"only a change of the plan changes the expiry", resized, func(instance *environment.Instance) { instance.ExpiresAt = time.Unix(2000, 0) },
			shown{"plan", "first", "", "plan:first", "1", 2000, 6, "old", size, context},
		},
		"credentials": {
			"after a failed suspension, new credentials need no operation",
			func(update *environment.Update) {
				update.Cluster.ServiceManager = &environment.ServiceManager{ClientID: "of the update"}
			},
			func(instance *environment.Instance) {
				instance.Request.Cluster.ServiceManager = &environment.ServiceManager{ClientID: "new"}
			},
			shown{"plan", "first", "", "plan:first", "1", 1000, 3, "new", `{}`, context},
		},
		"context": {
			"a later context counts, also if the update repeats the former one", func(update *environment.Update) {
				update.Context = []byte(`{"name":"old","active":false,"big":12345678901234567890}`)
			},
			func(instance *environment.Instance) {
				instance.Request.Context = []byte(`{"globalaccount_id":"first","name":"new"}`)
			},
			shown{"plan", "first", "", "plan:first", "1", 1000, 3, "old", `{}`, `{"active":false,"big":12345678901234567890,"globalaccount_id":"first","name":"new"}`},
		},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			update, present := environment.UnchangedUpdate(first), first
			c.update(&update)
			c.later(&present)

			data := environment.Data{Instance: first, Update: &update}

			for _, attempt := range []string{"the retry", "the retry of the retry"} {
				var err error
				if data, err = data.ForRetry(present); err != nil {
					t.Fatal(err)
				}

				got, err := data.Update.Apply(present)
				if diff := cmp.Diff(c.want, shownOf(got)); diff != "" || err != nil {
					t.Errorf("%s: %s: %v -want +got\n%s", c.reason, attempt, err, diff)
				}
			}
		})
	}
}

// TestRetryOfARetry moves an instance after an update has failed, and back after its retry has failed.
func TestRetryOfARetry(t *testing.T) {
	present := environment.Instance{ID: "one", PlanID: "plan", GlobalAccountID: "first"}
	update := environment.UnchangedUpdate(present)
	update.Cluster.AutoScalerMin = 6
	data := environment.Data{Instance: present, Update: &update}

	for _, account := range []string{"second", "first"} {
		present.GlobalAccountID = account

		var err error
		if data, err = data.ForRetry(present); err != nil {
			t.Fatal(err)
		}

		if got, err := data.Update.Apply(present); err != nil || got.GlobalAccountID != account || got.Request.Cluster.AutoScalerMin != 6 {
			t.Errorf("after a move to account %s: account %s, %d nodes, %v", account, got.GlobalAccountID, got.Request.Cluster.AutoScalerMin, err)
		}
	}
}

func TestRetryConflicts(t *testing.T) {
	first := environment.Instance{ID: "one", PlanID: "plan", GlobalAccountID: "first"}
	unchanged, replanned := environment.UnchangedUpdate(first), environment.UnchangedUpdate(first)
	replanned.PlanID, replanned.PlanName, replanned.Exclusive = "other", "trial", "other:first"

	cases := map[string]struct {
		reason string
		update environment.Update
		later  func(*environment.Instance)
		want   string
	}{
		"plan": {
			"the parameters were checked against the former plan", unchanged, func(instance *environment.Instance) { instance.PlanID = "third" },
			"The plan of the instance has changed since this operation was accepted. Order the change again instead of retrying the operation.",
		},
		"account": {
			"the limit of the plan was checked for the former account", replanned, func(instance *environment.Instance) { instance.GlobalAccountID = "second" },
			"The instance has moved to another account since this operation was accepted, and plan trial allows one instance per account. " +
				"Order the change of the plan again instead of retrying the operation.",
		},
	}

	for name, c := range cases {
		present := first
		c.later(&present)

		if _, err := (environment.Data{Instance: first, Update: &c.update}).ForRetry(present); !failure.Is(err, failure.Conflict) || failure.Of(err).Text != c.want {
			t.Errorf("%s: %s: got %v", name, c.reason, err)
		}
	}

	data := environment.Data{Instance: first}
	if got, err := data.ForRetry(environment.Instance{PlanID: "third"}); err != nil || !cmp.Equal(data, got) {
		t.Errorf("an operation without an update can always be retried: %v", err)
	}
}

// TestRetryOfUnreadableContext checks that a context that is not an object is an error, not an empty context.
func TestRetryOfUnreadableContext(t *testing.T) {
	for _, field := range []string{"update", "known", "present"} {
		known := environment.Instance{PlanID: "plan"}
		update, present := environment.UnchangedUpdate(known), known

		*map[string]*json.RawMessage{"update": &update.Context, "known": &known.Request.Context, "present": &present.Request.Context}[field] = []byte(`[]`)

		if _, err := (environment.Data{Instance: known, Update: &update}).ForRetry(present); err == nil {
			t.Errorf("%s: the context is an array, which ForRetry accepts", field)
		}
	}
}
