package broker_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/broker"
	"github.com/environment-broker/environment-broker/broker/expiry"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/auditlog"
	"github.com/environment-broker/environment-broker/storage/operations"
	"github.com/environment-broker/environment-broker/storage/storagetest"
)

func TestSynchronousBinding(t *testing.T) {
	onRunning(t, func(b *fixture) {
		made := b.want("G4: created synchronously", b.bind("one", role), 201)

		if kubeconfig, _ := made.Body["credentials"].(map[string]any)["kubeconfig"].(string); !strings.HasPrefix(kubeconfig, "kubeconfig 1") {
			b.Errorf("G10: credentials %v", made.Body["credentials"])
		}

		want := map[string]any{
			"endpoints": []any{map[string]any{"host": "api.example.com", "ports": []any{"443"}, "protocol": "tcp"}},
			"metadata":  map[string]any{"expires_at": "2030-01-02T03:24:05.0Z", "renew_before": "2030-01-02T03:20:05.0Z"},
		}
		got := map[string]any{}

		for field := range want {
			got[field] = made.Body[field]
		}

		if diff := cmp.Diff(want, got); diff != "" {
			b.Errorf("G12, G16: -want +got\n%s", diff)
		}

		if made.Header.Get("Cache-Control") != "no-store" {
			b.Error("the response does not prevent proxies from caching the credentials")
		}

		again := b.want("G4: the same request", b.bind("one", role), 200)
		fetched := b.want("I1: fetched", b.getBinding("one"), 200)

		parameters := fetched.Body["parameters"]
		delete(fetched.Body, "parameters")

		if diff := cmp.Diff(map[string]any{"role": "view", "expiration_seconds": 1200.0}, parameters); diff != "" {
			b.Errorf("I4: only a fetch returns the parameters: -want +got\n%s", diff)
		}

		if again.Raw != made.Raw || !cmp.Equal(fetched.Body, made.Body) {
			b.Errorf("G4: created %s\nagain %s\nfetched %s", made.Raw, again.Raw, fetched.Raw)
		}

		other := b.want("G11: a second binding", b.bind("two", role), 201)
		if cmp.Equal(other.Body["credentials"], made.Body["credentials"]) {
			b.Error("G11: two bindings share credentials")
		}

		b.want("H3: removed", b.unbind("one", ""), 200)
		b.want("G11: the other binding still exists", b.getBinding("two"), 200)

		if len(b.accounts.roles) != 1 {
			b.Errorf("H2: accounts %v", b.accounts.roles)
		}
	})
}

func TestAsynchronousBinding(t *testing.T) {
	onRunning(t, func(b *fixture) {
		made := b.want("C2: asynchronous", b.bindLater("one", role), 202)
		if len(made.Body) != 1 || made.text("operation") == "" {
			b.Errorf("G5: the response is %s", made.Raw)
		}

		if again := b.want("G5: repeated", b.bindLater("one", role), 202); again.Raw != made.Raw {
			b.Errorf("G5: the repeated request got another operation: %s", again.Raw)
		}

		b.want("I2: not ready", b.getBinding("one"), 404)

		polled := b.want("C14: polled", b.pollBinding("one", made.text("operation")), 200)
		if polled.text("state") != "in progress" || polled.Header.Get("Retry-After") == "" {
			b.Errorf("C11, C14: response %s, header %v", polled.Raw, polled.Header)
		}

		b.carries()

		for _, operation := range []string{made.text("operation"), "", "bind"} {
			if polled := b.want("C14: polled", b.pollBinding("one", operation), 200); polled.text("state") != "succeeded" {
				b.Errorf("C10: %s", polled.Raw)
			}
		}

		b.want("C17: available immediately", b.getBinding("one"), 200)
		b.want("G4: ready", b.bindLater("one", role), 200)
		b.want("C6: a kind without an operation", b.pollBinding("one", "provision"), 400)
		b.want("C7: an unknown binding", b.pollBinding("two", ""), 404)

		removed := b.want("H4: asynchronous", b.unbind("one", "&accepts_incomplete=true"), 202)
		if again := b.want("H4: repeated", b.unbind("one", "&accepts_incomplete=true"), 202); again.Raw != removed.Raw {
			b.Errorf("H4: the repeated request got another operation: %s", again.Raw)
		}

		b.want("C15: bind during the removal", b.bindLater("one", role), 422, "ConcurrencyError")
		b.want("I2: fetch during the removal", b.getBinding("one"), 404)
		b.carries()
		for _, operation := range []string{removed.text("operation"), "", "unbind"} {
			b.wantState("C8, C14: removed", b.pollBinding("one", operation), "succeeded")
		}

		b.want("C14: the result of the bind is gone", b.pollBinding("one", made.text("operation")), 404)
		b.want("H5: already removed", b.unbind("one", ""), 410)
		b.want("the ID can be reused", b.bind("one", ""), 201)
	})
}

func TestRequestsForBindings(t *testing.T) {
	cases := map[string]struct {
		reason  string
		id      string
		body    string
		version string
		query   string
		want    int
	}{
		"NoService":      {"G2: service_id is required", "", `{"plan_id":"` + planAWS + `"}`, "", "", 400},
		"NoPlan":         {"G2: plan_id is required", "", `{"service_id":"` + serviceID + `"}`, "", "", 400},
		"UnknownService": {"G2: service_id is not the instance's", "", `{"service_id":"x","plan_id":"` + planAWS + `"}`, "", "", 400},
		"OtherPlan":      {"G2: plan_id is not the instance's", "", `{"service_id":"` + serviceID + `","plan_id":"` + planGCP + `"}`, "", "", 400},
		"NoObject":       {"G3: the body must be an object", "", `[]`, "", "", 400},
		"Resource":       {"G3: bind_resource must be an object", "", bindOf(`,"bind_resource":5`), "", "", 400},
		"Context":        {"G3: context must be an object", "", bindOf(`,"context":"x"`), "", "", 400},
		"Predecessor":    {"G3: predecessor_binding_id must be a string", "", bindOf(`,"predecessor_binding_id":{}`), "", "", 400},
		"Role":           {"G19: the role must exist", "", bindOf(`,"parameters":{"role":"owner"}`), "", "", 400},
		"RoleNumber":     {"G19: role must be a string", "", bindOf(`,"parameters":{"role":5}`), "", "", 400},
		"Short":          {"G19: the lifetime has a minimum", "", bindOf(`,"parameters":{"expiration_seconds":599}`), "", "", 400},
		"Long":           {"G19: the lifetime has a maximum", "", bindOf(`,"parameters":{"expiration_seconds":7201}`), "", "", 400},
		"Huge":           {"G19: the number overflows an integer", "", bindOf(`,"parameters":{"expiration_seconds":1e300}`), "", "", 400},
		"Part":           {"G19: the lifetime has whole seconds", "", bindOf(`,"parameters":{"expiration_seconds":700.5}`), "", "", 400},
		"Unknown":        {"G19: unknown parameters are rejected", "", bindOf(`,"parameters":{"verbs":["*"]}`), "", "", 400},
		"UnknownFormer":  {"G15: an unknown predecessor", "", `{"predecessor_binding_id":"nobody"}`, "", "", 400},
		"NoInstance":     {"G20: an unknown instance", "unknown", bindOf(""), "", "", 404},
		"LongID":         {"IDs have a maximum length", strings.Repeat("x", 300), bindOf(""), "", "", 400},
		"ServiceKey":     {"M2: Cloud Foundry creates service keys like this", "", bindOf(`,"app_guid":"","bind_resource":{"app_guid":""}`), "", "", 201},
		"Null":           {"M1: no parameters", "", bindOf(`,"parameters":null,"bind_resource":null,"context":null`), "", "", 201},
		"Empty":          {"M5: empty objects", "", bindOf(`,"parameters":{},"bind_resource":{}`), "", "", 201},
		"More":           {"A9: unknown fields are ignored", "", bindOf(`,"x":1,"bind_resource":{"y":2},"context":{"z":3}`), "", "", 201},
		"Old":            {"M4: Service Manager cannot poll at version 2.13, although it claims so", "", bindOf(""), "2.13", "?accepts_incomplete=true", 201},
		"New":            {"C2: asynchronous binding since version 2.14", "", bindOf(""), "2.14", "?accepts_incomplete=true", 202},
	}

	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			b := newFixture(t)
			b.runs(instanceID)

			id := instanceID
			if test.id != "" {
				id = test.id
			}

			version := "2.17"
			if test.version != "" {
				version = test.version
			}

			b.want(test.reason, b.do(call{
				method: "PUT", path: bindingOf(id, "one") + test.query, body: test.body,
				header: map[string]string{"X-Broker-API-Version": version},
			}), test.want)

			if test.want >= 400 {
				b.want("A15: no binding was stored", b.getBinding("one"), 404)
				b.want("A15: no operation was stored", b.pollBinding("one", ""), 404)
				b.want("A15: the ID is free", b.bind("one", ""), 201)
			}
		})
	}
}

func TestDifferentRequestWithTheSameID(t *testing.T) {
	onRunning(t, func(b *fixture) {
		b.want("a binding that is being created", b.bindLater("one", role), 202)

		for _, status := range []int{201, 200} {
			b.want("G6: another role", b.bindLater("one", ""), 409)
			b.want("G6: another application", b.bindLater("one", role+`,"bind_resource":{"app_guid":"x"}`), 409)
			b.want("G6: another predecessor", b.bindLater("one", role+`,"predecessor_binding_id":"two"`), 409)
			b.want("ready", b.bind("one", role), status)
		}
	})
}

func TestUnbindableInstances(t *testing.T) {
	onEach(t, func(b *fixture) {
		creation := b.want("a creation", b.put(instanceID, order()), 202).text("operation")
		b.want("the instance is being created", b.bind("one", ""), 422, "ConcurrencyError")
		b.move(creation, process.Failed)
		b.want("the creation of the instance has failed", b.bind("one", ""), 422, "")
	})
}

func TestBindingsGoWithTheirRuntime(t *testing.T) {
	onRunning(t, func(b *fixture) {
		b.want("bound", b.bind("one", ""), 201)

		b.ranOn(instanceID, "")

		b.want("an instance without a runtime", b.bind("two", ""), 422, "")
		b.want("I2: the runtime of the binding is gone", b.getBinding("one"), 404)

		b.ranOn(instanceID, "another")

		b.want("I2: the binding belongs to a previous runtime", b.getBinding("one"), 404)
		b.want("the unusable binding is replaced", b.bind("one", ""), 201)

		deletion := b.want("a deletion", b.remove(instanceID), 202).text("operation")
		b.want("bind during the deletion", b.bind("two", ""), 422, "ConcurrencyError")
		b.want("fetch during the deletion", b.getBinding("one"), 404)
		b.forget(instanceID)
		b.move(deletion, process.Succeeded)
		b.want("J10: deleting the instance deletes its bindings", b.getBinding("one"), 404)
		b.want("H5: nothing to remove", b.unbind("one", ""), 410)
		b.want("G20: the instance is gone", b.bind("two", ""), 404)
	})
}

func TestBindingLimit(t *testing.T) {
	onRunning(t, func(b *fixture) {
		replies := make([]reply, 0, 14)
		for n := range cap(replies) {
			replies = append(replies, b.bindLater(fmt.Sprint("b", n), ""))
		}

		made := 0

		for _, got := range replies {
			if got.Status == 202 {
				made++
			} else {
				b.want("beyond the limit", got, 422, "")
			}
		}

		if made != 10 {
			b.Errorf("%d bindings were accepted, want 10", made)
		}

		b.carries()
		b.want("a binding is removed", b.unbind("b0", ""), 200)
		b.want("another binding is created", b.bind("more", ""), 201)
		b.want("the limit is reached again", b.bind("too many", ""), 422, "")
		b.clock.SetTime(b.clock.Now().Add(11 * time.Minute))
		b.want("expired bindings do not count", b.bind("too many", ""), 201)
	})
}

func TestConcurrentBindings(t *testing.T) {
	onRunning(t, func(b *fixture) {
		b.options.BindingLimit = 10

		statuses := map[int]int{}
		for _, got := range b.togetherEach(16, func(n int) call {
			return call{method: "PUT", path: bindingOf(instanceID, fmt.Sprint("b", n)) + "?accepts_incomplete=true", body: bindOf("")}
		}) {
			statuses[got.Status]++
		}

		if diff := cmp.Diff(map[int]int{202: 10, 422: 6}, statuses); diff != "" {
			b.Errorf("statuses: -want +got\n%s", diff)
		}

		for _, got := range b.together(6, call{method: "PUT", path: bindingOf(instanceID, "b0") + "?accepts_incomplete=true", body: bindOf("")}) {
			if got.Status != 202 && got.Status != 422 {
				b.Errorf("a repeated request got %d %s", got.Status, got.Raw)
			}
		}
	})
}

func TestRotation(t *testing.T) {
	onRunning(t, func(b *fixture) {
		b.runs("other")
		b.want("a binding", b.bind("one", role), 201)
		b.want("a binding of another instance", b.do(call{method: "PUT", path: bindingOf("other", "foreign"), body: bindOf("")}), 201)

		rotate := func(binding, body string) reply {
			return b.do(call{method: "PUT", path: bindingOf(instanceID, binding), body: body})
		}

		b.want("the predecessor alone suffices", rotate("two", `{"predecessor_binding_id":"one"}`), 201)

		successor := b.want("the successor", b.getBinding("two"), 200)
		if diff := cmp.Diff(map[string]any{"role": "view", "expiration_seconds": 1200.0}, successor.Body["parameters"]); diff != "" {
			b.Errorf("parameters differ from the predecessor's: -want +got\n%s", diff)
		}

		b.want("with matching IDs", rotate("three", bindOf(`,"predecessor_binding_id":"two"`)), 201)
		b.want("with equal parameters", rotate("four", bindOf(role+`,"predecessor_binding_id":"two"`)), 201)
		b.want("with different parameters", rotate("five", bindOf(`,"parameters":{"role":"admin"},"predecessor_binding_id":"two"`)), 400)
		b.want("with another plan", rotate("five", `{"plan_id":"`+planGCP+`","predecessor_binding_id":"two"}`), 400)
		b.want("an unknown predecessor", rotate("five", `{"predecessor_binding_id":"nobody"}`), 400)
		b.want("a predecessor of another instance", rotate("five", `{"predecessor_binding_id":"foreign"}`), 400)
		b.want("the predecessor stays valid", b.getBinding("one"), 200)

		b.want("the predecessor is removed", b.unbind("one", ""), 200)
		b.want("the successor stays valid", b.getBinding("two"), 200)
		b.want("a repeated request does not need the predecessor", rotate("two", `{"predecessor_binding_id":"one"}`), 200)
		b.want("a removed predecessor", rotate("five", `{"predecessor_binding_id":"one"}`), 400)

		b.clock.SetTime(b.clock.Now().Add(21 * time.Minute))
		b.want("an expired predecessor", rotate("five", `{"predecessor_binding_id":"two"}`), 400)
	})
}

func TestExpiredBindingsGo(t *testing.T) {
	onRunning(t, func(b *fixture) {
		first := b.want("a binding", b.bind("one", ""), 201)
		b.want("a binding with a longer lifetime", b.bind("two", role), 201)

		b.expires()
		b.clock.SetTime(b.clock.Now().Add(10 * time.Minute))
		b.want("I2: expired", b.getBinding("one"), 404)

		again := b.want("the same request creates a new binding", b.bind("one", ""), 201)
		if cmp.Equal(again.Body["credentials"], first.Body["credentials"]) {
			b.Error("the expired credentials were reused")
		}

		b.clock.SetTime(b.clock.Now().Add(10 * time.Minute))

		for range 3 { // three replicas
			b.expires()
		}

		if entries, err := b.entries.List(b.Context(), auditlog.Filter{InstanceID: instanceID, Limit: 1}); err != nil || len(entries) != 1 ||
			entries[0].Reason != broker.ExpiryOfBindings(b.options, 0).Reason {
			b.Errorf("the audit log does not have the reason: %+v, %v", entries, err)
		}

		b.carries()

		if left, err := b.bindings.OfInstance(b.Context(), instanceID); err != nil || len(left) != 0 || len(b.accounts.roles) != 0 {
			b.Errorf("remaining bindings %v, accounts %v, %v", left, b.accounts.roles, err)
		}

		if removals := b.carried(environment.BindingKey(instanceID, "two")); len(removals) != 2 {
			b.Errorf("operations on the binding: %v", removals)
		}
	})
}

func TestFailedRemovalIsRetriedLater(t *testing.T) {
	onRunning(t, func(b *fixture) {
		b.want("a binding", b.bind("one", ""), 201)
		b.accounts.fault = failure.New(failure.Permanent, "the API server rejects the call")
		b.clock.SetTime(b.clock.Now().Add(10 * time.Minute))

		var got []int

		for range 4 { // at 0, 25 and 50 minutes, before the removal is due again, and at 75 minutes
			for range 3 {
				b.expires()

				if err := b.runBindings(b.Context()); err != nil && !errors.Is(err, context.DeadlineExceeded) {
					b.Fatal(err)
				}
			}

			got = append(got, len(b.carried(environment.BindingKey(instanceID, "one")))-1)

			b.clock.SetTime(b.clock.Now().Add(25 * time.Minute))
		}

		if diff := cmp.Diff([]int{1, 1, 1, 2}, got); diff != "" {
			b.Errorf("removals started: -want +got\n%s", diff)
		}
	})
}

// TestRepeatedRequestsDuringTheRemovalOfAnEarlierBinding repeats requests for a binding while the job repeats the failed removal of
// an earlier binding with the same ID, whose operation is newer.
func TestRepeatedRequestsDuringTheRemovalOfAnEarlierBinding(t *testing.T) {
	const async = "&accepts_incomplete=true"

	// withEarlier calls then after the removal of a binding has failed. The job repeats the removal when it runs next.
	withEarlier := func(t *testing.T, then func(b *fixture)) {
		t.Helper()

		onRunning(t, func(b *fixture) {
			b.want("a binding", b.bind("one", ""), 201)
			b.accounts.fault = failure.New(failure.Permanent, "the API server rejects the call")
			b.clock.SetTime(b.clock.Now().Add(10 * time.Minute))
			b.expires()
			b.carries()
			b.clock.SetTime(b.clock.Now().Add(time.Hour + time.Minute))

			b.accounts.fault = nil
			then(b)
		})
	}

	t.Run("Bind", func(t *testing.T) {
		withEarlier(t, func(b *fixture) {
			made := b.want("the ID is free", b.bindLater("one", role), 202)
			b.expires()

			if again := b.want("G5: repeated", b.bindLater("one", role), 202); again.Raw != made.Raw {
				b.Errorf("G5: the repeated request got another operation: %s, want %s", again.Raw, made.Raw)
			}

			b.want("G4: repeated by a platform that does not poll", b.bind("one", role), 201)
			b.want("C17: ready", b.getBinding("one"), 200)
		})
	})

	t.Run("Unbind", func(t *testing.T) {
		withEarlier(t, func(b *fixture) {
			b.want("the ID is free", b.bind("one", role), 201)

			removal := b.want("H4: removed", b.unbind("one", async), 202)
			b.expires()

			if again := b.want("H4: repeated", b.unbind("one", async), 202); again.Raw != removal.Raw {
				b.Errorf("H4: the repeated request got another operation: %s, want %s", again.Raw, removal.Raw)
			}
		})
	})

	t.Run("Poll", func(t *testing.T) {
		withEarlier(t, func(b *fixture) {
			made := b.want("the ID is free", b.bindLater("one", role), 202).text("operation")
			b.carries()
			b.expires()

			show := func(reason string) {
				want := b.want(reason, b.pollBinding("one", made), 200)

				for _, operation := range []string{"", environment.KindBind} {
					if got := b.want(reason, b.pollBinding("one", operation), 200); got.Raw != want.Raw {
						b.Errorf("C9: %s: the poll of operation %q shows %s, want %s", reason, operation, got.Raw, want.Raw)
					}
				}
			}

			show("the removal of the earlier binding waits")
			b.carries()
			show("the earlier binding is removed")
		})
	})
}

func TestRequestWithCanceledOperation(t *testing.T) {
	b := newFixture(t)
	b.runs(instanceID)
	b.want("a binding", b.bind("one", ""), 201)

	b.options.Pause = func(ctx context.Context) error {
		unfinished, err := b.operations.List(ctx, operations.Filter{States: []process.State{process.Pending}, Limit: 1})
		if err != nil || len(unfinished) == 0 {
			return errors.Join(errors.New("no operation is pending"), err)
		}

		return b.options.DB.InTx(ctx, func(tx storage.Tx) error {
			_, err := b.operations.CancelOne(ctx, tx, unfinished[0].ID, "canceled by an operator", b.clock.Now())

			return err
		})
	}
	b.restart()

	for text, got := range map[string]reply{
		"The removal of the binding was canceled. Send the request again.":            b.unbind("one", ""),
		"The binding was removed, or its creation was canceled, before it was ready.": b.bind("two", ""),
	} {
		if b.want("the operation is canceled", got, 409); got.text("description") != text {
			b.Errorf("want %q, got %q", text, got.text("description"))
		}
	}

	b.options.Pause = b.runBindings
	b.restart()
	b.want("H4: a repeated request removes the binding", b.unbind("one", ""), 200)
	b.want("a repeated request creates the binding", b.bind("two", ""), 201)
}

func TestFailedBindings(t *testing.T) {
	onRunning(t, func(b *fixture) {
		b.faulty = true
		b.accounts.fault = failure.New(failure.Permanent, "the API server rejects the call")
		b.want("the failure is reported", b.bind("one", ""), 502)

		later := b.want("a platform that polls", b.bindLater("two", ""), 202).text("operation")
		b.carries()

		if polled := b.want("C10: the failure is reported", b.pollBinding("two", later), 200); polled.text("state") != "failed" ||
			!strings.Contains(polled.text("description"), "the API server rejects the call") {
			b.Errorf("polled %s", polled.Raw)
		}

		b.want("I2: the binding does not exist", b.getBinding("two"), 404)

		b.accounts.fault = failure.New(failure.Transient, "the API server does not respond")
		slow := b.want("a synchronous request times out", b.bind("three", ""), 503)

		if !regexp.MustCompile(`same request`).MatchString(slow.text("description")) || slow.Header.Get("Retry-After") == "" {
			b.Errorf("the response is %s, %v", slow.Raw, slow.Header)
		}

		b.accounts.fault = nil
		b.want("a repeated request finds the operation", b.bind("three", ""), 201)
		b.want("the ID of a failed binding can be reused", b.bind("one", ""), 201)
		b.want("J12: a failed binding can be removed", b.unbind("two", ""), 200)
		b.want("H5: a second removal", b.unbind("two", ""), 410)

		failing := b.want("another binding", b.bindLater("four", ""), 202).text("operation")
		b.accounts.fault = failure.New(failure.Permanent, "the API server rejects the call")
		b.carries()
		b.accounts.fault = nil
		b.expires()
		b.carries()

		polled := b.want("C10: the failure is still reported", b.pollBinding("four", failing), 200)
		if _, usable := polled.Body["instance_usable"]; usable || polled.text("state") != "failed" {
			b.Errorf("C13: the response is %s", polled.Raw)
		}

		if left, err := b.bindings.OfInstance(b.Context(), instanceID); err != nil || len(left) != 2 || len(b.accounts.roles) != 2 {
			b.Errorf("remaining bindings %v, accounts %v, %v", left, b.accounts.roles, err)
		}
	})
}

func TestRequestsToUnbind(t *testing.T) {
	onRunning(t, func(b *fixture) {
		b.runs("other")
		b.want("a binding", b.bindLater("one", ""), 202)

		remove := func(id, query string) reply {
			return b.do(call{method: "DELETE", path: bindingOf(id, "one") + query})
		}

		b.want("H1: no IDs", remove(instanceID, ""), 400)
		b.want("H1: no plan", remove(instanceID, "?service_id="+serviceID), 400)
		b.want("H1: another plan", remove(instanceID, "?service_id="+serviceID+"&plan_id="+planGCP), 400)
		b.want("H5: a binding of another instance", remove("other", "?"+ids[1:]), 410)
		b.want("H5: an unknown instance", remove("unknown", "?"+ids[1:]), 410)

		removal := b.want("H7: unbind during the creation", remove(instanceID, "?accepts_incomplete=true"+ids), 202).text("operation")
		b.carries()
		b.wantState("H7: the binding is removed", b.pollBinding("one", removal), "succeeded")

		if len(b.accounts.roles) != 0 {
			b.Errorf("H7: accounts %v remain", b.accounts.roles)
		}
	})
}

// TestBindingsEndWithTheirInstance polls the bindings of a deleted instance, before and after the IDs are reused.
func TestBindingsEndWithTheirInstance(t *testing.T) {
	onRunning(t, func(b *fixture) {
		former := b.want("a binding", b.bindLater("one", role), 202).text("operation")
		b.carries()
		b.wantState("ready", b.pollBinding("one", ""), "succeeded")
		b.want("another binding", b.bind("two", ""), 201)
		b.want("its removal", b.unbind("two", ""), 200)
		removal := b.operationOf("two")
		b.deleted(instanceID)

		for _, operation := range []string{removal, "", "unbind"} {
			b.wantState("C10: the removal before the deletion", b.pollBinding("two", operation), "succeeded")
		}

		for _, operation := range []string{former, "", "bind"} {
			b.want("F4: the binding was deleted with its instance", b.pollBinding("one", operation), 404)
		}

		b.clock.SetTime(b.clock.Now().Add(time.Second))
		b.runs(instanceID)

		for _, operation := range []string{former, "", "bind"} {
			b.want("F4: the instance has no binding yet", b.pollBinding("one", operation), 404)
		}

		for _, operation := range []string{"", "unbind"} {
			b.want("F4: the removal belongs to the former instance", b.pollBinding("two", operation), 404)
		}

		later := b.want("a binding", b.bindLater("one", role), 202).text("operation")
		b.carries()
		b.wantState("the new binding", b.pollBinding("one", later), "succeeded")
		b.wantState("the newest operation", b.pollBinding("one", ""), "succeeded")
		b.want("F4: the operation on the previous binding", b.pollBinding("one", former), 404)
	})
}

// TestRemovalAfterCanceledRemoval removes a binding whose earlier removal is being canceled.
func TestRemovalAfterCanceledRemoval(t *testing.T) {
	onRunning(t, func(b *fixture) {
		b.want("a binding", b.bind("one", ""), 201)

		first := b.want("a removal", b.unbind("one", "&accepts_incomplete=true"), 202).text("operation")
		storagetest.Claim(b, b.operations, process.Claim{Owner: "test", Limit: 1, Now: b.clock.Now(), Until: b.clock.Now()}, environment.KindUnbind)
		b.cancelOne(first)

		second := b.want("a repeated request", b.unbind("one", "&accepts_incomplete=true"), 202).text("operation")
		if second == first {
			b.Errorf("the response names the canceled removal %s again", first)
		}

		b.carries() // ends the canceled removal
		b.carries()
		b.wantState("the second removal has succeeded", b.pollBinding("one", second), "succeeded")
	})
}

func TestBindingsOfASuspendedInstance(t *testing.T) {
	onRunning(t, func(b *fixture) {
		b.options.Periods = expiry.Periods{"aws": 0}
		b.restart()

		b.want("a binding", b.bind("one", ""), 201)

		suspension := b.want("a suspension", b.patch(instanceID, active(false)), 202).text("operation")
		b.want("bind during the suspension", b.bind("two", ""), 422, "ConcurrencyError")
		b.want("I2: the cluster is being removed", b.getBinding("one"), 404)
		b.succeed(suspension)
		b.want("bind while suspended", b.bind("two", ""), 422, "")
		b.want("I2: the cluster is removed", b.getBinding("one"), 404)
		b.want("the binding can be removed", b.unbind("one", ""), 200)

		resumption := b.want("a resumption", b.patch(instanceID, active(true)), 202).text("operation")
		b.want("bind during the resumption", b.bind("two", ""), 422, "ConcurrencyError")
		b.succeed(resumption)

		b.ranOn(instanceID, "another")

		b.want("bind after the resumption", b.bind("two", ""), 201)
	})
}

func TestCreatorOfABinding(t *testing.T) {
	onRunning(t, func(b *fixture) {
		for id, creator := range map[string]struct{ body, want string }{
			"by-user":    {role, user},
			"by-context": {role + `,"context":{"email":"jane@example.com"}`, "jane@example.com"},
		} {
			b.want("created", b.bind(id, creator.body), 201)

			made, err := b.bindings.Get(b.Context(), b.options.DB.Reader(), instanceID, id)
			if err != nil || made.CreatedBy != creator.want {
				b.Errorf("%s: created by %q, want %q (%v)", id, made.CreatedBy, creator.want, err)
			}
		}
	})
}

// TestBindingsOfADeletedInstance binds and unbinds while the instance is being deleted, with runtimes that work, reject
// requests or do not respond. The fixture fails the test if a response has a status of 500 or above.
func TestBindingsOfADeletedInstance(t *testing.T) {
	refused := failure.New(failure.Permanent, "the Shoot is being deleted")

	t.Run("Unbind", func(t *testing.T) {
		onRunning(t, func(b *fixture) {
			b.want("a binding", b.bind("one", ""), 201)
			b.want("a deletion", b.remove(instanceID), 202)

			b.accounts.fault = refused
			b.want("F2: the credentials are invalid without the runtime", b.unbind("one", ""), 200)
			b.want("F2: the binding is gone", b.unbind("one", ""), 410)
		})
	})

	t.Run("UnbindOfASilentRuntime", func(t *testing.T) {
		onRunning(t, func(b *fixture) {
			b.want("a binding", b.bind("one", ""), 201)
			b.want("a deletion", b.remove(instanceID), 202)

			b.accounts.fault = failure.New(failure.Transient, "the API server does not respond")
			b.want("F2: the platform has to try again later", b.unbind("one", ""), 422, "ConcurrencyError")
		})
	})

	t.Run("BindWaits", func(t *testing.T) {
		onRunning(t, func(b *fixture) {
			b.options.Pause = func(context.Context) error {
				if b.send(call{method: http.MethodDelete, path: path(instanceID) + "?accepts_incomplete=true" + ids}).Status != http.StatusAccepted {
					return errors.New("the deletion was refused")
				}

				return nil
			}
			b.restart()

			b.want("F2: the deletion cancels the waiting request", b.bind("one", ""), 409)
			b.wantState("F2: the creation was canceled", b.pollBinding("one", b.operationOf("one")), "failed")
		})
	})

	t.Run("BindRuns", func(t *testing.T) {
		onRunning(t, func(b *fixture) {
			b.options.Pause = func(context.Context) error {
				storagetest.Claim(b, b.operations, process.Claim{Owner: "test", Limit: 1, Now: b.clock.Now(), Until: b.clock.Now()}, environment.KindBind)
				b.remove(instanceID)

				return nil
			}
			b.restart()

			b.want("F2: the request does not wait for the end of the canceled creation", b.bind("one", ""), 409)
		})
	})

	t.Run("BindRefused", func(t *testing.T) {
		onRunning(t, func(b *fixture) {
			b.accounts.fault = refused
			b.options.Pause = func(ctx context.Context) error {
				err := b.runBindings(ctx)
				b.remove(instanceID)

				return err
			}
			b.restart()

			b.want("F2: the deletion is reported, not the failure that it causes", b.bind("one", ""), 422, "ConcurrencyError")
		})
	})
}

func (b *fixture) operationOf(binding string) string {
	b.Helper()

	record, err := b.operations.Latest(b.Context(), b.options.DB.Reader(), environment.BindingKey(instanceID, binding), environment.BindingKinds()...)
	if err != nil {
		b.Fatal(err)
	}

	return record.ID
}

// TestBindDoesNotReturnAnotherBinding removes the binding and creates a second one with the same ID while the first
// bind request waits. That request must not return the credentials of the second binding.
func TestBindDoesNotReturnAnotherBinding(t *testing.T) {
	onRunning(t, func(b *fixture) {
		b.options.Pause = func(ctx context.Context) error {
			for _, next := range []func() reply{
				func() reply { return b.unbind("one", "&accepts_incomplete=true") },
				func() reply { return b.bindLater("one", "") },
			} {
				b.carries()

				if got := next(); got.Status != http.StatusAccepted {
					return fmt.Errorf("the response is %d %s", got.Status, got.Raw)
				}
			}

			return b.runBindings(ctx)
		}
		b.restart()

		b.want("R2: the first binding was removed", b.bind("one", role), 409)
		b.want("the second binding is ready", b.getBinding("one"), 200)
	})
}

// TestUnbindWaits checks the response to an asynchronous unbind request: 200 if the removal succeeds within UnbindWait,
// and otherwise 202.
func TestUnbindWaits(t *testing.T) {
	const async = "&accepts_incomplete=true"

	cases := map[string]struct {
		reason string
		fault  error
		limit  time.Duration
		// status is the status of the response, and state the state in the first poll.
		status int
		state  string
	}{
		"Ended":   {"Cloud Foundry does not poll removals while it deletes the instance", nil, time.Hour, 200, "succeeded"},
		"Running": {"the platform polls a removal that takes long", failure.New(failure.Transient, "the API server does not respond"), time.Hour, 202, "in progress"},
		"Failed":  {"the poll reports the failure", failure.New(failure.Permanent, "the API server refuses"), time.Hour, 202, "failed"},
		"NoWait":  {"the wait is switched off", nil, 0, 202, "in progress"},
	}

	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			onRunning(t, func(b *fixture) {
				b.options.UnbindWait = test.limit
				b.restart()
				b.want("a binding", b.bind("one", ""), 201)

				b.accounts.fault = test.fault
				got := b.want(test.reason, b.unbind("one", async), test.status)
				operation := b.operationOf("one")

				if test.status == http.StatusAccepted && got.text("operation") != operation {
					t.Errorf("the response names operation %q, want %q", got.text("operation"), operation)
				}

				b.wantState(test.reason, b.pollBinding("one", operation), test.state)
			})
		})
	}
}
