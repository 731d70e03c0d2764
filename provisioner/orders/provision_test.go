package orders_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/provisioner/operation"
)

func TestProvision(t *testing.T) {
	each(t, func(b *bench) {
		status, err := b.service.Provision(b.Context(), caller("tenant", "key"), order("c-first"))
		if err != nil {
			b.Fatal(err)
		}

		want := operation.Status{
			ID: status.ID, RuntimeID: status.RuntimeID, Kind: operation.KindProvisionNoInstall,
			State: process.Pending, Message: "Operation accepted",
		}
		if diff := cmp.Diff(want, status); diff != "" {
			b.Errorf("-want +got:\n%s", diff)
		}

		if b.woken.Load() != 1 {
			b.Errorf("the engine was woken %d times", b.woken.Load())
		}

		runtime, err := b.store.Get(b.Context(), b.store.Reader(), status.RuntimeID)
		if err != nil || runtime.Tenant != "tenant" || runtime.SubAccount != "sub" || runtime.ShootName != "c-first" || runtime.ProvisionedBy != status.ID {
			b.Errorf("stored %+v, %v", runtime, err)
		}

		if diff := cmp.Diff(order("c-first"), decode(b.T, runtime.Configuration)); diff != "" {
			b.Errorf("the stored order differs, -want +got:\n%s", diff)
		}

		record := b.begin()[status.ID]

		var data operation.Data
		if err := json.Unmarshal(record.Payload, &data); err != nil {
			b.Fatal(err)
		}

		if diff := cmp.Diff(runtime.ID, data.Runtime.ID); diff != "" || record.InstanceID != runtime.ID || data.Runtime.ShootName != "c-first" {
			b.Errorf("the steps get runtime %+v for %s", data.Runtime, record.InstanceID)
		}
	})
}

func TestProvisionIsAcceptedOnce(t *testing.T) {
	each(t, func(b *bench) {
		first, runtimeID := b.provision("tenant", "key-1", "c-first")

		calls := []struct {
			reason      string
			tenant, key string
			name        string
			other       bool
			same        bool
			want        failure.Kind
		}{
			{"a repeated order", "tenant", "key-1", "c-first", false, true, ""},
			{"the key identifies the order, even with another body", "tenant", "key-1", "c-other", true, true, ""},
			{"another order with the same name", "tenant", "key-2", "c-first", true, false, failure.Conflict},
			{"an order of another tenant with the same name", "other", "key-1", "c-first", false, false, failure.Conflict},
			{"the same key of another tenant", "other", "key-1", "c-second", false, false, ""},
			{"the key of a refused order is free", "tenant", "key-2", "c-third", false, false, ""},
			{"the same order with another key", "tenant", "key-3", "c-first", false, true, ""},
			{"the other key identifies the order from now on", "tenant", "key-3", "c-other", true, true, ""},
			{"the same order without a key", "tenant", "", "c-first", false, true, ""},
		}

		for _, c := range calls {
			wanted := order(c.name)
			if c.other {
				wanted.ClusterConfig.GardenerConfig.KubernetesVersion = "1.34.0"
			}

			status, err := b.service.Provision(b.Context(), caller(c.tenant, c.key), wanted)
			if (err == nil) != (c.want == "") || (err != nil && failure.KindOf(err) != c.want) {
				b.Errorf("%s: got %v", c.reason, err)

				continue
			}

			if err != nil {
				if known := failure.Of(err); known.Reason != failure.ReasonAlreadyExists || !strings.Contains(known.Text, c.name) {
					b.Errorf("%s: got reason %q: %s", c.reason, known.Reason, known.Text)
				}

				continue
			}

			if same := status.ID == first && status.RuntimeID == runtimeID; same != c.same {
				b.Errorf("%s: got operation %s of %s, the first was %s of %s", c.reason, status.ID, status.RuntimeID, first, runtimeID)
			}
		}

		if runtimes, operations := b.count("runtimes"), b.count("operations"); runtimes != 3 || operations != 3 {
			b.Errorf("there are %d runtimes and %d operations, want 3 of each", runtimes, operations)
		}
	})
}

func TestConcurrentProvisioning(t *testing.T) {
	each(t, func(b *bench) {
		provision := func(key string) (string, error) {
			status, err := b.service.Provision(b.Context(), caller("tenant", key), order("c-first"))
			if err != nil {
				return "", err
			}

			return status.ID, nil
		}

		ids, errs := together(func(string) (string, error) { return provision("key") })
		for i := range ids {
			if errs[i] != nil || ids[i] != ids[0] {
				b.Errorf("one order, sent concurrently: got %v, %v", ids, errs)

				break
			}
		}

		if runtimes := b.count("runtimes"); runtimes != 1 {
			b.Errorf("one order made %d runtimes", runtimes)
		}

		// Concurrent orders for a free name.
		if err := b.store.MarkDeleted(b.Context(), b.runtimeOf(ids[0]), time.Now()); err != nil {
			b.Fatal(err)
		}

		ids, errs = together(func(key string) (string, error) { return provision("other " + key) })
		for i := range ids {
			if errs[i] != nil || ids[i] != ids[0] {
				b.Errorf("one order with many keys: got %v, %v", ids, errs)

				break
			}
		}

		if b.count("runtimes") != 2 || b.count("operations") != 2 {
			b.Errorf("there are %d runtimes and %d operations, want 2 of each", b.count("runtimes"), b.count("operations"))
		}
	})
}

// runtimeOf returns the runtime of an operation.
func (b *bench) runtimeOf(operationID string) string {
	b.Helper()

	record, err := b.ops.Get(b.Context(), b.ops.Reader(), operationID)
	if err != nil {
		b.Fatal(err)
	}

	return record.InstanceID
}

func TestRefusedOrderStoresNothing(t *testing.T) {
	each(t, func(b *bench) {
		b.refused.Store(failure.New(failure.Invalid, "no such region"))

		if _, err := b.service.Provision(b.Context(), caller("tenant", "key"), order("c-first")); !failure.Is(err, failure.Invalid) {
			b.Errorf("got %v", err)
		}

		b.refused.Store(nil)
		b.unplanned = failure.New(failure.Invalid, "kymaConfig.version: there is no release 1.24.0")

		if _, err := b.service.Provision(b.Context(), caller("tenant", "key"), orderWithKyma("c-first", "1.24.0")); !errors.Is(err, b.unplanned) {
			b.Errorf("an order of Kyma without a plan: got %v", err)
		}

		if b.count("runtimes")+b.count("operations")+b.count("idempotency_keys") != 0 || b.woken.Load() != 0 {
			b.Error("a refused order left rows")
		}

		b.provision("tenant", "key", "c-first")
	})
}

func TestRepeatedOrderIsNotValidatedAgain(t *testing.T) {
	each(t, func(b *bench) {
		first, _ := b.provision("tenant", "key", "c-first")

		b.refused.Store(failure.New(failure.Invalid, "the region was removed"))

		// A refusal would make the sender believe that the runtime was never created, and the runtime would leak.
		if again, _ := b.provision("tenant", "key", "c-first"); again != first {
			b.Errorf("got operation %s, want %s", again, first)
		}
	})
}

func TestOnlyKnownKeysSkipTheChecks(t *testing.T) {
	each(t, func(b *bench) {
		operationID, runtimeID := b.provision("tenant", "key", "c-first")
		b.provision("tenant", "", "c-second")

		b.refused.Store(failure.New(failure.Invalid, "checked again"))

		cases := []struct {
			reason      string
			tenant, key string
			want        bool
		}{
			{"a repeated order", "tenant", "key", true},
			{"a new key", "tenant", "other", false},
			{"the key of another tenant", "other", "key", false},
			{"no key, although an earlier order had none", "tenant", "", false},
		}

		for _, c := range cases {
			status, err := b.service.Provision(b.Context(), caller(c.tenant, c.key), order("c-third"))

			known := err == nil
			if known != c.want || (!known && !failure.Is(err, failure.Invalid)) {
				b.Errorf("%s: got %v", c.reason, err)

				continue
			}

			if known && (status.ID != operationID || status.RuntimeID != runtimeID) {
				b.Errorf("%s: got operation %s of %s", c.reason, status.ID, status.RuntimeID)
			}
		}
	})
}

// TestKeyOfAnotherRequest sends requests with keys of other requests. They must be refused: the answer to the other request would
// hide that this one is never carried out.
func TestKeyOfAnotherRequest(t *testing.T) {
	each(t, func(b *bench) {
		created, runtimeID := b.provision("tenant", "creation", "c-first")
		b.finish(created, process.Succeeded)

		other, otherID := b.provision("tenant", "", "c-other")
		b.finish(other, process.Succeeded)

		upgraded, err := b.upgrade("upgrade", runtimeID)
		if err != nil {
			b.Fatal(err)
		}

		b.finish(upgraded.ID, process.Succeeded)
		b.deprovision("tenant", "removal of another", otherID)

		operations := b.count("operations")
		removal := func(key, runtimeID string) error {
			_, err := b.service.Deprovision(b.Context(), caller("tenant", key), runtimeID)

			return err
		}

		for reason, call := range map[string]func() error{
			"a removal with the key of a creation":                 func() error { return removal("creation", runtimeID) },
			"a removal with the key of an upgrade":                 func() error { return removal("upgrade", runtimeID) },
			"a removal with the key of another runtime's removal":  func() error { return removal("removal of another", runtimeID) },
			"a removal with the key of another runtime's creation": func() error { return removal("creation", otherID) },
			"an upgrade with the key of a creation":                func() error { _, err := b.upgrade("creation", runtimeID); return err },
			"an upgrade with the key of another runtime's upgrade": func() error { _, err := b.upgrade("upgrade", otherID); return err },
			"a hibernation with the key of an upgrade": func() error {
				_, err := b.service.Hibernate(b.Context(), caller("tenant", "upgrade"), runtimeID)
				return err
			},
			"a wake-up, publicly UpgradeShoot, with the key of an upgrade": func() error {
				_, err := b.service.WakeUp(b.Context(), caller("tenant", "upgrade"), runtimeID)
				return err
			},
			"a reconnection with the key of an upgrade": func() error {
				_, err := b.service.ReconnectAgent(b.Context(), caller("tenant", "upgrade"), runtimeID)

				return err
			},
			"a creation with the key of a removal": func() error {
				_, err := b.service.Provision(b.Context(), caller("tenant", "removal of another"), order("c-third"))

				return err
			},
			"the same for an order that is invalid": func() error {
				_, err := b.service.Provision(b.Context(), caller("tenant", "upgrade"), order("c-first"))

				return err
			},
		} {
			if err := call(); !failure.Is(err, failure.Invalid) || !strings.Contains(failure.Of(err).Text, "Idempotency-Key") {
				b.Errorf("%s: got %v", reason, err)
			}
		}

		if now := b.count("operations"); now != operations {
			b.Errorf("the refused requests added %d operations", now-operations)
		}
	})
}

func TestNameIsFreeAfterRemoval(t *testing.T) {
	each(t, func(b *bench) {
		created, runtimeID := b.provision("tenant", "key-1", "c-first")
		b.finish(created, process.Succeeded)

		if err := b.store.MarkDeleted(b.Context(), runtimeID, time.Now()); err != nil {
			b.Fatal(err)
		}

		if _, again := b.provision("tenant", "key-2", "c-first"); again == runtimeID {
			b.Error("the new runtime has the id of the removed one")
		}
	})
}

func TestUnavailableDatabase(t *testing.T) {
	each(t, func(b *bench) {
		_, runtimeID := b.provision("tenant", "key", "c-first")
		cursor, _, err := b.service.Changes(b.Context(), "", 0)

		if err != nil || b.db.Close() != nil {
			b.Fatal(err)
		}

		_, provision := b.service.Provision(b.Context(), caller("tenant", ""), order("c-first"))
		_, deprovision := b.service.Deprovision(b.Context(), caller("tenant", "key"), runtimeID)
		_, status := b.service.OperationStatus(b.Context(), caller("tenant", ""), "some")
		_, runtime := b.service.RuntimeStatus(b.Context(), caller("tenant", ""), runtimeID, everything)
		next, _, changes := b.service.Changes(b.Context(), cursor, 0)
		_, known := b.service.Provision(b.Context(), caller("tenant", "key"), order("c-first"))

		for call, err := range map[string]error{
			"provision": provision, "deprovision": deprovision, "operation status": status, "runtime status": runtime, "changes": changes,
			"known": known,
		} {
			if known := failure.Of(err); !failure.Is(err, failure.Transient) || known.Component != failure.ComponentProvisionerStorage {
				b.Errorf("%s: got %v of component %q", call, err, known.Component)
			}
		}

		if next != cursor {
			b.Errorf("the cursor moved: %s", next)
		}
	})
}
