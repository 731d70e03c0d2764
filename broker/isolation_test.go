package broker_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/broker"
	"github.com/environment-broker/environment-broker/internal/auth"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/secret"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/storagetest"
)

// platformsFile defines the platforms of the tests. The platform alpha owns the instances, unless a test says otherwise.
const platformsFile = `
platforms:
- name: alpha
  users: [platform, alpha-next]
  regions: [cf-eu10, cf-us10]
  tenants: [org-1, ga-1]
- name: beta
  users: [beta]
- name: gamma
  users: [gamma]
  regions: [cf-us10]
- name: partner
  users: [partner]
- name: other-tenant
  users: [other-tenant]
  tenants: [ga-2]
`

// isolated configures several platforms.
func isolated(t *testing.T) func(*broker.Options) {
	t.Helper()

	users := []string{}
	for _, name := range []string{"platform", "alpha-next", "beta", "gamma", "partner", "other-tenant", "stray"} {
		users = append(users, name+":"+password)
	}

	known, err := auth.ParseUsers(secret.String(strings.Join(users, ",")))
	if err != nil {
		t.Fatal(err)
	}

	platforms, err := auth.ParsePlatforms([]byte(platformsFile))
	if err != nil {
		t.Fatal(err)
	}

	return func(options *broker.Options) {
		options.Authorizer, options.Platforms = auth.NewAuthorizer(known), func() auth.Platforms { return platforms }
	}
}

// as sends the request as a user, through a region.
func (b *fixture) as(user, region string, sent call) reply {
	b.Helper()

	sent.user, sent.password = user, password
	if region != "" {
		sent.path = "/oauth/" + region + sent.path
	}

	return b.do(sent)
}

// shares sets the owner of an instance and the platforms with which it is shared.
func (b *fixture) shares(id, owner string, with ...string) {
	b.Helper()

	instance := b.stored(id)
	instance.Platform, instance.SharedWith = owner, with

	if err := b.options.DB.InTx(b.Context(), func(tx storage.Tx) error {
		return b.instances.SetPlatforms(b.Context(), tx, instance)
	}); err != nil {
		b.Fatal(err)
	}
}

// instanceRoutes returns a request for each route on an instance that has the binding b1. operation and binding are the
// IDs of the operations that created the instance and the binding.
func instanceRoutes(id, operation, binding string) map[string]call {
	const async = "?accepts_incomplete=true"

	polled, bound := path(id)+"/last_operation", bindingOf(id, "b1")

	return map[string]call{
		"fetch":                {method: "GET", path: path(id)},
		"poll":                 {method: "GET", path: polled},
		"poll by ID":           {method: "GET", path: polled + "?operation=" + operation},
		"poll by kind":         {method: "GET", path: polled + "?operation=provision"},
		"update":               {method: "PATCH", path: path(id) + async, body: patching(with("context", map[string]any{"instance_name": "new"}))},
		"update the cluster":   {method: "PATCH", path: path(id) + async, body: patching(with("parameters", map[string]any{"autoScalerMin": 5}))},
		"update in vain":       {method: "PATCH", path: path(id) + async, body: patching(with("parameters", map[string]any{"autoScalerMin": -1}))},
		"delete":               {method: "DELETE", path: path(id) + async + ids},
		"synchronous delete":   {method: "DELETE", path: path(id) + "?" + ids[1:]},
		"bind":                 {method: "PUT", path: bindingOf(id, "b2"), body: bindOf(role)},
		"asynchronous bind":    {method: "PUT", path: bindingOf(id, "b2") + async, body: bindOf(role)},
		"repeated bind":        {method: "PUT", path: bound, body: bindOf(role)},
		"rotation":             {method: "PUT", path: bindingOf(id, "b2"), body: `{"predecessor_binding_id":"b1"}`},
		"fetch a binding":      {method: "GET", path: bound},
		"poll a binding":       {method: "GET", path: bound + "/last_operation"},
		"poll a binding by ID": {method: "GET", path: bound + "/last_operation?operation=" + binding},
		"unbind":               {method: "DELETE", path: bound + "?" + ids[1:]},
		"asynchronous unbind":  {method: "DELETE", path: bound + async + ids},
	}
}

// bound creates an instance with a runtime and the binding b1. It returns the IDs of their operations.
func (b *fixture) bound(id string) (operation, binding string) {
	b.Helper()

	operation = b.provisioned(id)
	b.ranOn(id, "runtime-of-"+id)
	b.want("a binding", b.do(call{method: "PUT", path: bindingOf(id, "b1"), body: bindOf(role)}), 201)

	newest, err := b.operations.Latest(b.Context(), b.operations.Reader(), environment.BindingKey(id, "b1"), environment.KindBind)
	if err != nil {
		b.Fatal(err)
	}

	return operation, newest.ID
}

// contents returns all rows that a request could change, except those of the audit log.
func (b *fixture) contents() string {
	b.Helper()

	var all []any

	for _, query := range []string{
		`SELECT id || platform || shared_with || updated_at || request FROM instances ORDER BY id`,
		`SELECT id || state || updated_at || payload FROM operations ORDER BY id`, `SELECT id || state FROM bindings ORDER BY id`,
	} {
		rows, err := storage.Select[string](b.Context(), b.operations.Reader(), query)
		if err != nil {
			b.Fatal(err)
		}

		all = append(all, rows)
	}

	return fmt.Sprint(all...)
}

// The expected results of a request for an instance.
const (
	works     = "works"
	missing   = "is answered as for a missing instance"
	forbidden = "is forbidden"
)

// TestPlatformsAreIsolated sends a request on each route, with each credential and region, to an instance that alpha owns and
// shares with partner. The instance is in the region cf-eu10, the default.
func TestPlatformsAreIsolated(t *testing.T) {
	storagetest.EachDatabase(t, func(t *testing.T, db *storage.DB) {
		b := newFixtureOn(t, db, isolated(t))
		count := 0

		var id, operation, binding string

		for _, test := range []struct{ reason, user, region, want string }{
			{"the owner, through the default region", "platform", "", works},
			{"another credential of the owner", "alpha-next", "", works},
			{"the owner, through the region of the instance", "platform", "cf-eu10", works},
			{"the owner, through another of its regions", "platform", "cf-us10", missing},
			{"the owner, through a region of others", "platform", "cf-ap10", forbidden},
			{"a platform with which the instance is shared", "partner", "", works},
			{"that platform is not limited to regions", "partner", "cf-us10", works},
			{"another platform", "beta", "", missing},
			{"another platform, through the region of the instance", "beta", "cf-eu10", missing},
			{"a platform that is limited to another region", "gamma", "cf-us10", missing},
			{"that platform, through the default region", "gamma", "", forbidden},
			{"a platform that is limited to another tenant", "other-tenant", "", missing},
			{"a user without a platform", "stray", "", forbidden},
		} {
			for name := range instanceRoutes("", "", "") {
				if id == "" { // at the start, and after a request that may have changed the instance
					count++
					id = fmt.Sprintf("00000000-0000-4000-8000-%012d", count)
					operation, binding = b.bound(id)
					b.shares(id, "alpha", "partner")
				}

				before := b.contents()
				got := b.as(test.user, test.region, instanceRoutes(id, operation, binding)[name])
				absent := b.as(test.user, test.region, instanceRoutes("absent", operation, binding)[name])

				result := works

				switch {
				case got.Status == 403:
					result = forbidden
				case got.Status == absent.Status && got.Raw == absent.Raw:
					result = missing
				}

				if result != test.want {
					t.Errorf("%s: %s %s, want that it %s: %d %s", test.reason, name, result, test.want, got.Status, got.Raw)
				}

				if test.want != works && b.contents() != before {
					t.Errorf("%s: %s changed rows", test.reason, name)
				}

				if test.want == works || result == works {
					id = ""
				}
			}
		}
	})
}

// TestMissingInstances checks the status of the responses for an instance of another platform. They are the same as for a
// missing instance.
func TestMissingInstances(t *testing.T) {
	b := newFixture(t, isolated(t))
	operation, binding := b.bound(instanceID)

	want := map[string]int{
		"fetch": 404, "poll": 404, "poll by ID": 404, "poll by kind": 404, "update": 404, "update the cluster": 404, "update in vain": 404, "delete": 410, "synchronous delete": 410,
		"bind": 404, "asynchronous bind": 404, "repeated bind": 404, "rotation": 404, "fetch a binding": 404, "poll a binding": 404,
		"poll a binding by ID": 404, "unbind": 410, "asynchronous unbind": 410,
	}
	got := map[string]int{}

	for name, sent := range instanceRoutes(instanceID, operation, binding) {
		got[name] = b.as("beta", "", sent).Status
	}

	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("responses to another platform: -want +got\n%s", diff)
	}
}

func TestOrderOfAnotherPlatformsInstance(t *testing.T) {
	onEach(t, func(b *fixture) {
		isolated(t)(&b.options)
		b.restart()
		b.runs(instanceID)

		before := b.contents()
		put := call{method: "PUT", path: path(instanceID) + "?accepts_incomplete=true", body: order()}

		for _, sent := range []call{
			put,
			{method: "PUT", path: path(instanceID), body: order()},
			{method: "PUT", path: put.path, body: order(with("parameters", map[string]any{"region": "eu-west-1", "autoScalerMin": 5}))},
		} {
			b.want("the ID is taken", b.as("beta", "", sent), 409)
		}

		b.want("the owner repeats the order", b.as("alpha-next", "", put), 200)
		b.want("the owner, through another region", b.as("platform", "cf-us10", put), 409)

		validation := b.want("a validation", b.as("beta", "", call{method: "POST", path: path(instanceID) + "/validate", body: order()}), 200)
		if validation.Body["valid"] != false {
			t.Errorf("the validation does not reject the ID: %s", validation.Raw)
		}

		if b.contents() != before {
			t.Error("rejected orders changed rows")
		}
	})
}

func TestPlatformsOrderTheSameID(t *testing.T) {
	onEach(t, func(b *fixture) {
		isolated(t)(&b.options)
		b.restart()

		users := []string{"platform", "beta"}

		for round := range 10 {
			id := fmt.Sprintf("00000000-0000-4000-8000-%012d", round)

			if round%2 == 1 { // an ID that was used before
				b.deletedAs(id)
			}

			replies := b.togetherEach(6, func(n int) call {
				return call{
					method: "PUT", path: path(id) + "?accepts_incomplete=true", body: order(), user: users[n%len(users)], password: password,
				}
			})

			owner := b.stored(id).Platform

			for n, got := range replies {
				want := http.StatusConflict
				if (owner == "alpha") == (users[n%len(users)] == "platform") {
					want = http.StatusAccepted
				}

				if got.Status != want {
					t.Errorf("the instance belongs to %s, but %s got %d %s", owner, users[n%len(users)], got.Status, got.Raw)
				}
			}

			if count := len(slices.DeleteFunc(b.carried(id), func(record process.Record) bool { return record.State.Terminal() })); count != 1 {
				t.Errorf("%d operations were accepted", count)
			}

			b.move(replies[slices.IndexFunc(replies, func(got reply) bool { return got.Status == 202 })].text("operation"), process.Succeeded)
		}
	})
}

// deletedAs creates and deletes an instance of alpha.
func (b *fixture) deletedAs(id string) {
	b.Helper()
	b.runs(id)
	b.deleted(id)
}

// TestPlatformsReuseAnID deletes an instance whose ID another platform then uses. Neither platform may see the operations of the
// other.
func TestPlatformsReuseAnID(t *testing.T) {
	onEach(t, func(b *fixture) {
		isolated(t)(&b.options)
		b.restart()

		creation := b.provisioned(instanceID)
		b.later()

		deletion := b.want("a deletion", b.remove(instanceID), 202).text("operation")
		b.forget(instanceID)
		b.move(deletion, process.Succeeded)

		poll := func(user, operation string) reply {
			sent := call{method: "GET", path: path(instanceID) + "/last_operation"}
			if operation != "" {
				sent.path += "?operation=" + operation
			}

			return b.as(user, "", sent)
		}
		seen := func(reason string, want map[string]int) {
			t.Helper()

			for request, status := range want {
				user, operation, _ := strings.Cut(request, " ")
				if got := poll(user, operation); got.Status != status {
					t.Errorf("%s: %s polls %q: want %d, got %d %s", reason, user, operation, status, got.Status, got.Raw)
				}
			}
		}

		seen("deleted", map[string]int{
			"platform": 200, "platform " + deletion: 200, "platform " + creation: 200,
			"beta": 404, "beta " + deletion: 404, "beta " + creation: 404, "beta deprovision": 404,
		})

		b.later()

		put := call{method: "PUT", path: path(instanceID) + "?accepts_incomplete=true", body: order()}
		ordered := b.want("the ID is free", b.as("beta", "", put), 202).text("operation")

		seen("ordered by another platform", map[string]int{
			"platform": 404, "platform " + ordered: 404, "platform " + deletion: 200,
			"beta": 200, "beta " + ordered: 200, "beta " + creation: 400, "beta " + deletion: 400, // as for an unknown operation
		})

		b.want("the first owner", b.remove(instanceID), 410)
	})
}

// TestMovedInstance moves an instance to another platform while an operation runs. The new owner must see the operation, and the
// previous owner must not.
func TestMovedInstance(t *testing.T) {
	onEach(t, func(b *fixture) {
		isolated(t)(&b.options)
		b.restart()

		operation := b.want("an order", b.put(instanceID, order()), 202).text("operation")
		b.shares(instanceID, "beta")

		poll := call{method: "GET", path: path(instanceID) + "/last_operation?operation=" + operation}
		b.want("the former owner", b.as("platform", "", poll), 404)
		b.want("the new owner", b.as("beta", "", poll), 200)
		b.want("the former owner repeats the order", b.put(instanceID, order()), 409)

		remove := call{method: "DELETE", path: path(instanceID) + "?accepts_incomplete=true" + ids}
		deletion := b.want("the new owner deletes it", b.as("beta", "", remove), 202).text("operation")
		b.forget(instanceID)
		b.move(deletion, process.Succeeded)

		poll.path = path(instanceID) + "/last_operation?operation=" + deletion
		b.wantState("the new owner", b.as("beta", "", poll), "succeeded")
		b.want("the former owner", b.as("platform", "", poll), 404)
	})
}

func TestPlatformsAreLimitedToRegionsAndTenants(t *testing.T) {
	b := newFixture(t, isolated(t), func(options *broker.Options) { options.AccountMovement = true })
	before := b.contents()

	for _, path := range []string{"/v2/catalog", path(instanceID), path(instanceID) + "/last_operation"} {
		b.want("a region of another platform", b.as("gamma", "cf-eu10", call{method: "GET", path: path}), 403, "Forbidden")
	}

	b.want("its own region", b.as("gamma", "cf-us10", call{method: "GET", path: "/v2/catalog"}), 200)
	b.want("no region means the default", b.as("gamma", "", call{method: "GET", path: "/v2/catalog"}), 403, "Forbidden")

	put := call{method: "PUT", path: path(instanceID) + "?accepts_incomplete=true", body: order()}
	b.want("an order for a region of another platform", b.as("gamma", "", put), 403, "Forbidden")
	b.want("an order for another tenant", b.as("other-tenant", "", put), 403, "Forbidden")

	if b.contents() != before {
		t.Error("rejected orders changed rows")
	}

	accountOf := func(id string) map[string]any { return with("context", map[string]any{"globalaccount_id": id}) }

	b.want("an order", b.put(instanceID, order(accountOf("ga-1"))), 202)
	b.move(b.carried(instanceID)[0].ID, process.Succeeded)
	b.want("a tenant of another platform", b.patch(instanceID, accountOf("ga-2")), 403, "Forbidden")
	b.want("a tenant of this platform", b.patch(instanceID, accountOf("org-1")), 200)
	b.want("the tenant that ordered", b.put(instanceID, order(accountOf("ga-1"))), 200)
	b.want("the tenant now", b.put(instanceID, order(accountOf("org-1"))), 200)

	b.shares(instanceID, "alpha", "partner")

	update := call{method: "PATCH", path: path(instanceID) + "?accepts_incomplete=true", body: patching(accountOf("ga-1"))}
	b.want("only the owner moves an instance to another account", b.as("partner", "", update), 422)
	b.want("the owner moves it", b.as("platform", "", update), 200)
}

func TestAccountsInContextsAreCompared(t *testing.T) {
	onEach(t, func(b *fixture) {
		account := func(id string) string { return `,"context":{"globalaccount_id":"` + id + `"}` }

		operation := b.want("an order", b.put(instanceID, order(with("context", map[string]any{"globalaccount_id": "ga-1"}))), 202)
		b.move(operation.text("operation"), process.Succeeded)
		b.ranOn(instanceID, "runtime")

		b.want("a binding for another account", b.bind("b1", role+account("ga-2")), 400)
		b.want("a binding for the account", b.bind("b1", role+account("ga-1")), 201)
		b.want("a repeated bind for another account", b.bind("b1", role+account("ga-2")), 400)
		b.want("a binding without an account", b.bind("b2", role), 201)
		b.want("a repeated order for another account", b.put(instanceID, order(with("context", map[string]any{"globalaccount_id": "ga-2"}))), 409)
		b.want("an update for another account", b.patch(instanceID, with("context", map[string]any{"globalaccount_id": "ga-2"})), 422)
	})
}

func TestQuotaOfAnAccountOnSeveralPlatforms(t *testing.T) {
	b := newFixture(t, isolated(t), offering(t, oneTrial))
	trial := trialOf("ga-1")
	put := call{method: "PUT", path: path("two") + "?accepts_incomplete=true", body: trial}

	b.want("the first trial", b.put("one", trial), 202)

	for _, request := range []string{put.path, path("two") + "/validate"} {
		sent := call{method: "PUT", path: request, body: trial}
		if request != put.path {
			sent.method = "POST"
		}

		got := b.as("beta", "", sent)
		if !strings.Contains(got.Raw, "ordered through another platform") || strings.Contains(got.Raw, "instance one") {
			t.Errorf("want a response that does not name the instance of the other platform, got %d %s", got.Status, got.Raw)
		}
	}

	b.want("the quota holds on all platforms", b.as("beta", "", put), 422)

	if own := b.want("the quota holds", b.do(put), 422); !strings.Contains(own.Raw, "instance one") {
		t.Errorf("the response to the owner does not name the instance: %s", own.Raw)
	}
}

// TestMoveDuringADeletion moves an instance to another platform while a request of the previous owner waits for the lock on it. The
// response must be that for a missing instance. The test needs PostgreSQL, because SQLite locks the whole database before the
// request reads the owner.
func TestMoveDuringADeletion(t *testing.T) {
	b := newFixtureOn(t, storagetest.Open(t, storagetest.Postgres(t)), isolated(t))
	b.bound(instanceID)

	for name, status := range map[string]int{"delete": 410, "update": 404, "bind": 404, "unbind": 410} {
		b.shares(instanceID, "alpha")

		instance := b.stored(instanceID)
		instance.Platform = "beta"
		got := make(chan reply, 1)

		if err := b.options.DB.InTx(b.Context(), func(tx storage.Tx) error {
			if _, err := b.instances.Touch(b.Context(), tx, instanceID, b.clock.Now()); err != nil {
				return err
			}

			go func() { got <- b.send(instanceRoutes(instanceID, "", "")[name]) }()

			b.awaitsLock()

			return b.instances.SetPlatforms(b.Context(), tx, instance)
		}); err != nil {
			t.Fatal(err)
		}

		if got := <-got; got.Status != status {
			t.Errorf("%s: want %d, got %d %s", name, status, got.Status, got.Raw)
		}
	}
}

// TestAttemptsOnOtherPlatformsAreAudited checks the audit entries of changes and reads. Reads of missing instances have
// entries, too: otherwise, the time that it takes to write an entry would reveal which instances exist.
func TestAttemptsOnOtherPlatformsAreAudited(t *testing.T) {
	onEach(t, func(b *fixture) {
		isolated(t)(&b.options)
		b.restart()
		b.runs(instanceID)

		const code = "OtherPlatform"

		want := []string{}
		requests := map[string]call{
			"fetch": {method: "GET", path: path(instanceID)}, "poll": {method: "GET", path: path(instanceID) + "/last_operation"},
			"provision": {method: "PUT", path: path(instanceID) + "?accepts_incomplete=true", body: order()},
			"update":    {method: "PATCH", path: path(instanceID), body: patching(nil)},
			"delete":    {method: "DELETE", path: path(instanceID) + "?" + ids[1:]},
			"bind":      {method: "PUT", path: bindingOf(instanceID, "b1"), body: bindOf(role)},
			"binding":   {method: "GET", path: bindingOf(instanceID, "b1")},
		}

		for _, step := range []struct{ request, entry string }{
			{"fetch", "access %s by beta//: 404 " + code},
			{"poll", "access %s by beta//: 404 " + code},
			{"provision", "provision %s by beta//: 409 " + code},
			{"update", "update %s by beta//: 404 " + code},
			{"delete", "deprovision %s by beta//: 410 " + code},
			{"bind", "bind %s by beta//: 404 " + code + " of b1"},
			{"binding", "access %s by beta//: 404 " + code + " of b1"},
		} {
			b.later()
			b.as("beta", "", requests[step.request])

			want = append(want, fmt.Sprintf(step.entry, instanceID))
		}

		b.later()
		b.as("beta", "", call{method: "GET", path: path("absent")})
		b.later()
		b.as("stray", "", call{method: "GET", path: path(instanceID)})
		b.later()
		b.as("gamma", "", call{method: "GET", path: path(instanceID)})
		b.later()
		b.as("platform", "cf-us10", call{method: "GET", path: path(instanceID)})

		want = append(want, "access absent by beta//: 404", "access "+instanceID+" by stray//: 403 Forbidden",
			"access "+instanceID+" by gamma//: 403 Forbidden", "access "+instanceID+" by platform//: 404 "+code)

		if diff := cmp.Diff(want, b.trail()[1:]); diff != "" {
			t.Errorf("audit log: -want +got\n%s", diff)
		}
	})
}

// TestPlatformsWithoutFile leaves the platforms unconfigured: all users are the platform default, and regions do not matter.
func TestPlatformsWithoutFile(t *testing.T) {
	b := newFixture(t)
	b.runs(instanceID)

	b.want("another region", b.as(user, "cf-us10", call{method: "GET", path: path(instanceID)}), 200)
	b.want("another region", b.as(user, "any", call{method: "GET", path: path(instanceID) + "/last_operation"}), 200)

	if got := b.stored(instanceID); got.Platform != auth.DefaultPlatform || got.SharedWith != nil {
		t.Errorf("the instance belongs to %q, shared with %q", got.Platform, got.SharedWith)
	}

	b.shares(instanceID, "alpha")
	b.want("an instance of a platform that was configured before", b.get(instanceID), 404)
}

// TestRowsOfEarlierReleases checks that requests find the instances and operations that an earlier release stored, without
// platforms.
func TestRowsOfEarlierReleases(t *testing.T) {
	onEach(t, func(b *fixture) {
		b.runs(instanceID)

		for _, statement := range []string{
			`UPDATE instances SET platform = 'default', shared_with = ''`, `UPDATE operations SET visible_to = ''`,
		} {
			if _, err := storage.Exec(b.Context(), b.options.DB.Writer(), statement); err != nil {
				t.Fatal(err)
			}
		}

		b.want("the instance", b.get(instanceID), 200)
		b.want("its operation", b.poll(instanceID, b.carried(instanceID)[0].ID), 200)
		b.deleted(instanceID)
		b.want("its deletion", b.poll(instanceID, ""), 200)
	})
}

// TestChangedOwnerIsDetected changes the owner of an instance directly in the database, without the encryption keys. All
// requests except polls must fail.
func TestChangedOwnerIsDetected(t *testing.T) {
	b := newFixture(t, isolated(t))
	operation, binding := b.bound(instanceID)
	b.faulty = true

	for _, change := range []string{`platform = 'beta'`, `platform = 'alpha', shared_with = 'beta'`} {
		if _, err := storage.Exec(b.Context(), b.options.DB.Writer(), `UPDATE instances SET `+change); err != nil {
			t.Fatal(err)
		}

		for name, sent := range instanceRoutes(instanceID, operation, binding) {
			got := b.as("beta", "", sent)
			if strings.HasPrefix(name, "poll") {
				continue // polls read no secret and change nothing
			}

			if got.Status != 500 {
				t.Errorf("%s: want an error, got %d %s", name, got.Status, got.Raw)
			}
		}
	}

	if encoded, err := json.Marshal(b.carried(instanceID)); err != nil || strings.Contains(string(encoded), environment.KindDeprovision) {
		t.Errorf("an operation was accepted: %s, %v", encoded, err)
	}
}
