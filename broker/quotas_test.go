package broker_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/broker"
	"github.com/environment-broker/environment-broker/broker/quota"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/storagetest"
)

// quotas returns a change to the broker's options that sets the quotas in file. The file refers to plans by their IDs.
func quotas(t *testing.T, file string) func(*broker.Options) {
	t.Helper()

	parsed, err := quota.Parse([]byte(file), func(id string) (string, bool) { return id, true })
	if err != nil {
		t.Fatal(err)
	}

	return func(options *broker.Options) {
		options.Quotas = quota.Checker{DB: options.DB, Instances: options.Instances, Current: func() quota.Quotas { return parsed }}
	}
}

// awsOf returns the body of an account's order for the aws plan.
func awsOf(account string) string {
	return order(with("context", map[string]any{"globalaccount_id": account, "subaccount_id": "sub-of-" + account}))
}

const twoPerAccount = `quotas: [{name: clusters, per: [account], limit: 2, limits: {big: 3, free: -1, none: 0}}]`

// TestQuotas orders instances until a quota is used up. Every instance counts until its deletion has succeeded.
func TestQuotas(t *testing.T) {
	storagetest.EachDatabase(t, func(t *testing.T, db *storage.DB) {
		b := newFixtureOn(t, db, quotas(t, twoPerAccount))

		first := b.want("the first order", b.put("one", awsOf("ga-1")), 202)
		second := b.want("the second order", b.put("two", awsOf("ga-1")), 202)

		const text = "The quota clusters is used up: this account has 2 instances, and the limit is 2. Delete an instance, or ask the operator of the broker for a higher limit."
		if got := b.want("the third order", b.put("three", awsOf("ga-1")), 422, "QuotaExceeded"); got.text("description") != text {
			b.Errorf("the description is %q, want %q", got.text("description"), text)
		}

		b.want("A15: the rejected instance does not exist", b.get("three"), 404)

		if again := b.want("D10: a repeated order is none", b.put("two", awsOf("ga-1")), 202); again.text("operation") != second.text("operation") {
			b.Errorf("D10: the same order has another operation: %s", again.Raw)
		}

		b.want("another account", b.put("four", awsOf("ga-2")), 202)
		b.want("an account without instances", b.put("five", awsOf("none")), 422, "QuotaExceeded")

		for n, want := range []int{202, 202, 202, 422} {
			b.want("an account with a higher limit", b.put(fmt.Sprint("big-", n), awsOf("big")), want)
		}

		for n := range 5 {
			b.want("an account without a limit", b.put(fmt.Sprint("free-", n), awsOf("free")), 202)
		}

		b.move(first.text("operation"), process.Failed)
		b.want("a failed creation may have left a cluster", b.put("three", awsOf("ga-1")), 422, "QuotaExceeded")

		b.want("the deletion", b.remove("one"), 202)
		b.want("a deletion that is running", b.put("three", awsOf("ga-1")), 422, "QuotaExceeded")
		b.forget("one")
		b.want("deleted instances do not count", b.put("three", awsOf("ga-1")), 202)
	})
}

// TestQuotaDimensions checks which instances a quota counts together. One instance of the aws plan already exists.
func TestQuotaDimensions(t *testing.T) {
	existing := order(with("context", map[string]any{"globalaccount_id": "ga-1", "subaccount_id": "sub-1"}), with("parameters", map[string]any{"region": "eu-central-1", "name": "a"}))

	cases := map[string]struct {
		reason, quota string
		order         string
		status        int
	}{
		"all":              {"all instances are one group", `per: []`, awsOf("ga-2"), 422},
		"plan":             {"the plan has an instance", `per: [plan]`, awsOf("ga-2"), 422},
		"other plan":       {"the other plan has none", `per: [plan]`, order(with("plan_id", planAzure), with("parameters", nil), with("context", with("globalaccount_id", "ga-1"))), 202},
		"not the plan":     {"the quota is for another plan", `per: [], plans: [` + planAzure + `]`, awsOf("ga-1"), 202},
		"the plan":         {"the quota is for this plan", `per: [], plans: [` + planAWS + `]`, awsOf("ga-2"), 422},
		"region":           {"the region has an instance", `per: [region]`, order(with("context", with("globalaccount_id", "ga-2")), with("parameters", map[string]any{"region": "eu-central-1", "name": "a"})), 422},
		"other region":     {"the other region has none", `per: [region]`, order(with("context", with("globalaccount_id", "ga-1")), with("parameters", map[string]any{"region": "us-east-1", "name": "a"})), 202},
		"not the region":   {"the quota is for another region", `per: [account], regions: [us-east-1]`, existing, 202},
		"subaccount":       {"the subaccount has an instance", `per: [subaccount]`, existing, 422},
		"other subaccount": {"the other subaccount has none", `per: [subaccount]`, awsOf("ga-1"), 202},
		"no subaccount":    {"an order without a subaccount is in a group of its own", `per: [subaccount]`, order(with("space_guid", ""), with("context", with("globalaccount_id", "ga-1"))), 202},
	}

	storagetest.EachDatabase(t, func(t *testing.T, db *storage.DB) {
		b := newFixtureOn(t, db)
		b.want("an instance", b.put("existing", existing), 202)

		for name, test := range cases {
			quotas(t, "quotas: [{name: q, limit: 1, "+test.quota+"}]")(&b.options)
			b.restart()

			id := strings.ReplaceAll(name, " ", "-")

			valid := b.do(call{method: "POST", path: path(id) + "/validate", body: test.order})
			if rejected := strings.Contains(valid.Raw, `"rule":"quota"`); rejected != (test.status == 422) {
				b.Errorf("%s: the validation differs from the order: %s", name, valid.Raw)
			}

			b.want(name+": "+test.reason, b.put(id, test.order), test.status)

			if test.status == 202 {
				b.forget(id)
			}
		}
	})
}

// TestConcurrentOrdersRespectQuotas sends orders to two replicas at once. On PostgreSQL, each replica has a separate connection pool.
func TestConcurrentOrdersRespectQuotas(t *testing.T) {
	const times, limit = 16, 5

	file := fmt.Sprintf(`quotas: [{name: a, per: [account], limit: %d}, {name: b, per: [account, plan], limit: 9}, {name: all, limit: 100}]`, limit)

	run := func(t *testing.T, one, other *storage.DB) {
		t.Helper()

		replicas := []*fixture{newFixtureOn(t, one, quotas(t, file)), newFixtureOn(t, other, quotas(t, file))}

		var (
			senders sync.WaitGroup
			all     [2][]reply
		)

		for i, replica := range replicas {
			senders.Go(func() {
				all[i] = replica.togetherEach(times, func(n int) call {
					return call{method: "PUT", path: path(fmt.Sprint(i, "-", n)) + "?accepts_incomplete=true", body: awsOf("ga-1")}
				})
			})
		}

		senders.Wait()

		statuses := map[int]int{}
		for _, got := range append(all[0], all[1]...) {
			statuses[got.Status]++
		}

		if diff := cmp.Diff(map[int]int{202: limit, 422: 2*times - limit}, statuses); diff != "" {
			t.Errorf("statuses: -want +got\n%s", diff)
		}
	}

	t.Run("postgres", func(t *testing.T) {
		config := storagetest.Postgres(t)
		run(t, storagetest.Open(t, config), storagetest.Open(t, config))
	})
	t.Run("sqlite", func(t *testing.T) {
		db := storagetest.SQLite(t)
		run(t, db, db)
	})
}

// TestQuotasDoNotHarmInstances introduces a quota that is exceeded already. Only changes that use it further are rejected.
func TestQuotasDoNotHarmInstances(t *testing.T) {
	storagetest.EachDatabase(t, func(t *testing.T, db *storage.DB) {
		b := newFixtureOn(t, db, withLargePlan(t), func(options *broker.Options) { options.AccountMovement = true })
		for _, id := range []string{"one", "two", "three"} {
			b.move(b.want("an instance", b.put(id, awsOf("ga-1")), 202).text("operation"), process.Succeeded)
		}

		b.move(b.want("an instance", b.put("other", order(with("plan_id", planLarge), with("parameters", nil), with("context", with("globalaccount_id", "ga-2")))), 202).text("operation"), process.Succeeded)

		quotas(t, `quotas: [{name: total, per: [account], limit: 1}, {name: large, plans: [`+planLarge+`], limit: 1}]`)(&b.options)
		b.restart()

		b.want("a fetch", b.get("one"), 200)
		b.want("a repeated order", b.put("one", awsOf("ga-1")), 200)
		b.want("an update of the cluster", b.patch("one", with("parameters", with("autoScalerMax", 7))), 202)

		got := b.want("a change to a plan whose quota is used up", b.patch("two", with("plan_id", planLarge)), 422, "QuotaExceeded")
		if got.Body["update_repeatable"] != false || !strings.Contains(got.text("description"), "The quota large is used up: there is 1 instance, and the limit is") {
			b.Errorf("F15: %s", got.Raw)
		}

		b.want("a move to an account whose quota is used up", b.patch("two", with("context", with("globalaccount_id", "ga-2"))), 422, "QuotaExceeded")
		b.want("a move to an account without instances", b.patch("two", with("context", with("globalaccount_id", "ga-3"))), 200)
		b.want("a change of the plan within the account's quota", b.patch("three", with("context", with("active", nil))), 200)
		b.want("a deletion", b.remove("three"), 202)
	})
}

// TestSuspendedInstancesCount checks that a suspended instance still counts against a quota: its account can resume it at any time.
func TestSuspendedInstancesCount(t *testing.T) {
	onEach(t, func(b *fixture) {
		b.want("an instance", b.put(instanceID, trialOf("ga-1")), 202)

		for _, work := range b.carried(instanceID) {
			b.succeed(work.ID)
		}

		b.succeed(b.want("the suspension", b.patch(instanceID, with("context", with("active", false))), 202).text("operation"))

		quotas(b.T, `quotas: [{name: clusters, per: [account], limit: 1}]`)(&b.options)
		b.restart()

		b.want("the place is taken", b.put("other", trialOf("ga-1")), 422, "QuotaExceeded")

		quotas(b.T, `quotas: [{name: clusters, per: [account], limit: 0}]`)(&b.options)
		b.restart()
		b.want("a lower limit does not prevent the resumption", b.patch(instanceID, with("context", with("active", true))), 202)
	})
}
