package operator_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/broker/operator"
	"github.com/environment-broker/environment-broker/internal/auth"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/storagetest"
)

// eachWithPlatforms runs the test on both databases, with instance one of platform alpha and instance two of platform
// beta.
func eachWithPlatforms(t *testing.T, test func(b *bench)) {
	t.Helper()

	platforms, err := auth.ParsePlatforms([]byte(`
platforms:
- {name: alpha, users: [platform], regions: [cf-eu10], tenants: [ga]}
- {name: beta, claims: {scope: [b]}}
- {name: gamma, certificates: {ou: [g]}}
- {name: elsewhere, regions: [cf-us10]}
- {name: others, tenants: [ga-2]}
`))
	if err != nil {
		t.Fatal(err)
	}

	storagetest.EachDatabase(t, func(t *testing.T, db *storage.DB) {
		b := benchOn(t, db, func(options *operator.Options) { options.Platforms = func() auth.Platforms { return platforms } })
		b.instance("one", process.Succeeded, func(instance *environment.Instance) { instance.Platform = "alpha" })
		b.instance("two", process.Succeeded, func(instance *environment.Instance) { instance.Platform = "beta" })
		test(b)
	})
}

// changes sends a change of the platforms of an instance as the user admin. The verb is grant, revoke or move.
func (b *bench) changes(verb, instance, platform, reason string) reply {
	b.Helper()
	b.clock.SetTime(b.clock.Now().Add(time.Second))

	body, err := json.Marshal(operatorapi.PlatformChange{Platform: platform, Reason: reason})
	if err != nil {
		b.Fatal(err)
	}

	return b.send("admin", "POST", "/runtimes/"+instance+"/"+verb, strings.NewReader(string(body)))
}

func TestChangesOfPlatforms(t *testing.T) {
	eachWithPlatforms(t, func(b *bench) {
		const why = "both\nneed it"

		for _, step := range []struct {
			reason, verb, platform string
			status                 int
			want                   string // the owner, then the platforms that share the instance
		}{
			{"a share", "grant", "beta", 200, "alpha beta"},
			{"the same share", "grant", "beta", 200, "alpha beta"},
			{"a second share", "grant", "gamma", 200, "alpha beta gamma"},
			{"the owner needs no share", "grant", "alpha", 200, "alpha beta gamma"},
			{"the platform is unknown", "grant", "delta", 400, "alpha beta gamma"},
			{"the region is that of other platforms", "grant", "elsewhere", 409, "alpha beta gamma"},
			{"the tenant is that of other platforms", "move", "others", 409, "alpha beta gamma"},
			{"a move", "move", "beta", 200, "beta gamma"},
			{"the same move", "move", "beta", 200, "beta gamma"},
			{"the owner is not a share", "revoke", "beta", 409, "beta gamma"},
			{"the end of a share", "revoke", "gamma", 200, "beta"},
			{"there is no such share", "revoke", "unknown", 200, "beta"},
			{"no platform", "move", "", 400, "beta"},
		} {
			got := b.want(step.reason, b.changes(step.verb, "one", step.platform, why), step.status)

			if step.status == http.StatusOK {
				shown := read[operatorapi.InstancePlatforms](b, got)
				if text := strings.Join(append([]string{shown.Platform}, shown.SharedWith...), " "); text != step.want || shown.InstanceID != "one" {
					b.Errorf("%s: want %q, got %s", step.reason, step.want, got.Raw)
				}
			}

			shown := list[operatorapi.Runtime](b, "/runtimes/one")
			if text := strings.Join(append([]string{shown.Platform}, shown.SharedWith...), " "); text != step.want {
				b.Errorf("%s: want %q, got %q", step.reason, step.want, text)
			}
		}

		b.want("no reason", b.changes("move", "one", "alpha", " "), 400)
		b.want("no instance", b.changes("move", "none", "alpha", why), 404)
		b.want("an unknown field", b.send("admin", "POST", "/runtimes/one/move", strings.NewReader(`{"platforms":"beta","reason":"x"}`)), 400)

		lines := []string{}
		for _, entry := range b.audit("?instance_id=one") {
			lines = append(lines, strings.TrimSpace(fmt.Sprintf("%s %d %s %v -> %v", entry.Action, entry.Status, entry.Reason, entry.Before, entry.After)))
		}

		want := []string{
			"grant 200 both need it map[sharedWith:<nil>] -> map[sharedWith:[beta]]",
			"grant 200 both need it map[sharedWith:[beta]] -> map[sharedWith:[beta gamma]]",
			"grant 400  map[] -> map[]", "grant 409  map[] -> map[]", "move 409  map[] -> map[]",
			"move 200 both need it map[platform:alpha sharedWith:[beta gamma]] -> map[platform:beta sharedWith:[gamma]]",
			"revoke 409  map[] -> map[]",
			"revoke 200 both need it map[sharedWith:[gamma]] -> map[sharedWith:<nil>]",
			"move 400  map[] -> map[]", "move 400  map[] -> map[]", "move 400  map[] -> map[]",
		}
		if diff := cmp.Diff(want, slices.DeleteFunc(lines, func(line string) bool { return strings.HasPrefix(line, "provision") })); diff != "" {
			b.Errorf("audit log: -want +got\n%s", diff)
		}
	})
}

// TestUnfinishedOperationsMove moves an instance while operations on the instance and on a binding run. After the deletion of the
// instance, the platforms of the instance must see its operations.
func TestUnfinishedOperationsMove(t *testing.T) {
	eachWithPlatforms(t, func(b *bench) {
		want := map[string]string{
			b.operation("one", environment.KindDeprovision, process.InProgress): "beta gamma",
			b.bound("creating", process.Pending).OperationID:                    "beta gamma",
			b.bound("ready", process.Succeeded).OperationID:                     "",
			b.operation("two", environment.KindDeprovision, process.InProgress): "",
		}

		b.want("a share", b.changes("grant", "one", "gamma", "x"), http.StatusOK)
		b.want("a move", b.changes("move", "one", "beta", "x"), http.StatusOK)

		for id, platforms := range want {
			if record, err := b.operations.Get(b.Context(), b.db.Reader(), id); err != nil || record.VisibleTo != platforms {
				b.Errorf("the %s operation of %s is visible to %q, want %q, %v", record.Kind, record.InstanceID, record.VisibleTo, platforms, err)
			}
		}
	})
}

// TestRetryIsVisibleToPresentPlatforms retries operations on an instance and on a binding that were accepted before the instance was
// shared.
func TestRetryIsVisibleToPresentPlatforms(t *testing.T) {
	eachWithPlatforms(t, func(b *bench) {
		failed := []string{
			b.operation("one", environment.KindDeprovision, process.Failed),
			b.operation(environment.BindingKey("one", "b"), environment.KindUnbind, process.Failed),
		}

		b.want("a share", b.changes("grant", "one", "gamma", "x"), http.StatusOK)

		for _, id := range failed {
			retry, err := b.operations.Get(b.Context(), b.db.Reader(), b.answered("a retry", b.intervene("retry", id, onlyReason)).ID)
			if err != nil || retry.VisibleTo != "alpha gamma" {
				b.Errorf("the retry of the %s operation is visible to %q, %v", retry.Kind, retry.VisibleTo, err)
			}
		}
	})
}

// TestConcurrentShares shares an instance with several platforms at once. No share may be lost.
func TestConcurrentShares(t *testing.T) {
	eachWithPlatforms(t, func(b *bench) {
		var senders sync.WaitGroup

		for _, platform := range []string{"beta", "gamma"} {
			senders.Go(func() {
				body := strings.NewReader(`{"platform":"` + platform + `","reason":"x"}`)
				if got := b.send("admin", "POST", "/runtimes/one/grant", body); got.Status != http.StatusOK {
					b.Errorf("sharing with %s: %d %s", platform, got.Status, got.Raw)
				}
			})
		}

		senders.Wait()

		if shown := list[operatorapi.Runtime](b, "/runtimes/one"); len(shown.SharedWith) != 2 {
			b.Errorf("the instance is shared with %v, want both platforms", shown.SharedWith)
		}
	})
}

func TestListsOfPlatforms(t *testing.T) {
	eachWithPlatforms(t, func(b *bench) {
		got := read[operatorapi.PlatformList](b, b.want("the platforms", b.do("admin", "GET", "/platforms"), http.StatusOK))
		if len(got.Data) != 5 || got.Data[0].Name != "alpha" || got.Data[0].Users[0] != "platform" || got.Data[1].Claims["scope"][0] != "b" {
			b.Errorf("platforms: %+v", got)
		}

		for query, want := range map[string][]string{"?platform=alpha": {"one"}, "?platform=beta": {"two"}, "?platform=none": nil} {
			found := instanceIDs(list[operatorapi.RuntimeList](b, "/runtimes"+query).Data)
			if diff := cmp.Diff(want, found); diff != "" {
				b.Errorf("%s: -want +got\n%s", query, diff)
			}
		}
	})
}

func TestTooManyShares(t *testing.T) {
	b := newBench(t)
	b.instance("one", process.Succeeded, func(instance *environment.Instance) {
		instance.Platform = "alpha"
		for i := range 20 {
			instance.SharedWith = append(instance.SharedWith, fmt.Sprintf("p%d", i))
		}
	})
	b.want("the number of shares is limited", b.changes("grant", "one", auth.DefaultPlatform, "x"), http.StatusConflict)

	got := read[operatorapi.PlatformList](b, b.want("no platforms are configured", b.do("admin", "GET", "/platforms"), http.StatusOK))
	if diff := cmp.Diff([]operatorapi.Platform{{Name: auth.DefaultPlatform}}, got.Data); diff != "" {
		b.Errorf("platforms: -want +got\n%s", diff)
	}
}
