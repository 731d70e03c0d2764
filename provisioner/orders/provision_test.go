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
	"github.com/environment-broker/environment-broker/provisioner/orders"
	"github.com/environment-broker/environment-broker/provisioner/spec"
)

func TestProvision(t *testing.T) {
	onBothDatabases(t, func(f *fixture) {
		status, err := f.service.Provision(f.Context(), caller("tenant", "key"), order("c-first"))
		if err != nil {
			f.Fatal(err)
		}

		want := operation.Status{
			ID: status.ID, RuntimeID: status.RuntimeID, Kind: operation.KindProvisionNoInstall,
			State: process.Pending, Message: "Operation accepted",
		}
		if diff := cmp.Diff(want, status); diff != "" {
			f.Errorf("-want +got:\n%s", diff)
		}

		if f.wakes.Load() != 1 {
			f.Errorf("the engine was woken %d times", f.wakes.Load())
		}

		runtime, err := f.store.Get(f.Context(), f.store.Reader(), status.RuntimeID)
		if err != nil || runtime.Tenant != "tenant" || runtime.SubAccount != "sub" || runtime.ShootName != "c-first" || runtime.ProvisionedBy != status.ID {
			f.Errorf("stored %+v, %v", runtime, err)
		}

		if diff := cmp.Diff(order("c-first"), decode(f.T, runtime.Configuration)); diff != "" {
			f.Errorf("the stored order differs, -want +got:\n%s", diff)
		}

		record := f.claimDue()[status.ID]

		var data operation.Data
		if err := json.Unmarshal(record.Payload, &data); err != nil {
			f.Fatal(err)
		}

		if diff := cmp.Diff(runtime.ID, data.Runtime.ID); diff != "" || record.InstanceID != runtime.ID || data.Runtime.ShootName != "c-first" {
			f.Errorf("the steps get runtime %+v for %s", data.Runtime, record.InstanceID)
		}
	})
}

func TestProvisionIsAcceptedOnce(t *testing.T) {
	onBothDatabases(t, func(f *fixture) {
		first, runtimeID := f.provision("tenant", "key-1", "c-first")

		calls := []struct {
			reason      string
			tenant, key string
			name        string
			other       bool
			same        bool
			want        failure.Kind
		}{
			{"a repeated order", "tenant", "key-1", "c-first", false, true, ""},
			{"the key identifies the order, even with another body", "tenant", "key-1", "c-first", true, true, ""},
			{"another order with the same name", "tenant", "key-2", "c-first", true, false, failure.Conflict},
			{"an order of another tenant with the same name", "other", "key-1", "c-first", false, false, failure.Conflict},
			{"the same key of another tenant", "other", "key-1", "c-second", false, false, ""},
			{"the key of a rejected order can be used again", "tenant", "key-2", "c-third", false, false, ""},
			{"the same order with another key", "tenant", "key-3", "c-first", false, true, ""},
			{"from now on the other key identifies the order too", "tenant", "key-3", "c-first", true, true, ""},
			{"the same order without a key", "tenant", "", "c-first", false, true, ""},
		}

		for _, c := range calls {
			wanted := order(c.name)
			if c.other {
				wanted.ClusterConfig.GardenerConfig.KubernetesVersion = "1.34.0"
			}

			status, err := f.service.Provision(f.Context(), caller(c.tenant, c.key), wanted)
			if (err == nil) != (c.want == "") || (err != nil && failure.KindOf(err) != c.want) {
				f.Errorf("%s: got %v", c.reason, err)

				continue
			}

			if err != nil {
				if known := failure.Of(err); known.Reason != failure.ReasonAlreadyExists || !strings.Contains(known.Text, c.name) {
					f.Errorf("%s: got reason %q: %s", c.reason, known.Reason, known.Text)
				}

				continue
			}

			if same := status.ID == first && status.RuntimeID == runtimeID; same != c.same {
				f.Errorf("%s: got operation %s of %s, the first was %s of %s", c.reason, status.ID, status.RuntimeID, first, runtimeID)
			}
		}

		if runtimes, operations := f.count("runtimes"), f.count("operations"); runtimes != 3 || operations != 3 {
			f.Errorf("there are %d runtimes and %d operations, want 3 of each", runtimes, operations)
		}
	})
}

// TestRepeatedOrderOfKymaEnvironmentBroker repeats orders as that broker does after a lost response: without a key, with a different
// runtime name and with different zones.
func TestRepeatedOrderOfKymaEnvironmentBroker(t *testing.T) {
	cases := []struct {
		reason         string
		tenant         string
		instance, then any
		want           failure.Kind
	}{
		{"the same instance", "tenant", "instance-1", "instance-1", ""},
		{"another instance", "tenant", "instance-1", "instance-2", failure.Conflict},
		{"no label", "tenant", nil, nil, failure.Conflict},
		{"empty labels", "tenant", "", "", failure.Conflict},
		{"labels that are not text", "tenant", 1, 1, failure.Conflict},
		{"another tenant", "other", "instance-1", "instance-1", failure.Conflict},
	}

	for _, c := range cases {
		t.Run(c.reason, func(t *testing.T) {
			onBothDatabases(t, func(f *fixture) {
				ordered := func(tenant, suffix string, instance any) (operation.Status, error) {
					wanted := order("c-first")
					wanted.Metadata.Name = "runtime-" + suffix
					wanted.Metadata.Labels = map[string]any{"broker_instance_id": instance}
					wanted.ClusterConfig.GardenerConfig.ProviderSpecificConfig = &spec.Provider{GCPConfig: &spec.GCP{Zones: []string{suffix}}}

					return f.service.Provision(f.Context(), caller(tenant, ""), wanted)
				}

				first, err := ordered("tenant", "a", c.instance)
				if err != nil {
					f.Fatal(err)
				}

				again, err := ordered(c.tenant, "b", c.then)
				if (err == nil) != (c.want == "") || err != nil && !failure.Is(err, c.want) || err == nil && again != first {
					f.Errorf("got %+v and %v, the first was %+v", again, err, first)
				}

				if runtimes, operations := f.count("runtimes"), f.count("operations"); runtimes != 1 || operations != 1 {
					f.Errorf("there are %d runtimes and %d operations, want one of each", runtimes, operations)
				}
			})
		})
	}
}

func TestConcurrentProvisioning(t *testing.T) {
	onBothDatabases(t, func(f *fixture) {
		provision := func(key string) (string, error) {
			status, err := f.service.Provision(f.Context(), caller("tenant", key), order("c-first"))
			if err != nil {
				return "", err
			}

			return status.ID, nil
		}

		ids, errs := concurrently(func(string) (string, error) { return provision("key") })
		for i := range ids {
			if errs[i] != nil || ids[i] != ids[0] {
				f.Errorf("one order, sent concurrently: got %v, %v", ids, errs)

				break
			}
		}

		if runtimes := f.count("runtimes"); runtimes != 1 {
			f.Errorf("one order created %d runtimes", runtimes)
		}

		// After the runtime is marked as deleted, its name is free for the next concurrent orders.
		if err := f.store.MarkDeleted(f.Context(), f.runtimeOf(ids[0]), time.Now()); err != nil {
			f.Fatal(err)
		}

		ids, errs = concurrently(func(key string) (string, error) { return provision("other " + key) })
		for i := range ids {
			if errs[i] != nil || ids[i] != ids[0] {
				f.Errorf("one order with many keys: got %v, %v", ids, errs)

				break
			}
		}

		if f.count("runtimes") != 2 || f.count("operations") != 2 {
			f.Errorf("there are %d runtimes and %d operations, want 2 of each", f.count("runtimes"), f.count("operations"))
		}
	})
}

// runtimeOf returns the ID of the operation's runtime.
func (f *fixture) runtimeOf(operationID string) string {
	f.Helper()

	record, err := f.ops.Get(f.Context(), f.ops.Reader(), operationID)
	if err != nil {
		f.Fatal(err)
	}

	return record.InstanceID
}

func TestRefusedOrderStoresNothing(t *testing.T) {
	onBothDatabases(t, func(f *fixture) {
		f.checkError.Store(failure.New(failure.Invalid, "no such region"))

		if _, err := f.service.Provision(f.Context(), caller("tenant", "key"), order("c-first")); !failure.Is(err, failure.Invalid) {
			f.Errorf("got %v", err)
		}

		f.checkError.Store(nil)
		f.planError = failure.New(failure.Invalid, "kymaConfig.version: there is no release 1.24.0")

		if _, err := f.service.Provision(f.Context(), caller("tenant", "key"), orderWithKyma("c-first", "1.24.0")); !errors.Is(err, f.planError) {
			f.Errorf("an order of Kyma without a plan: got %v", err)
		}

		if f.count("runtimes")+f.count("operations")+f.count("idempotency_keys") != 0 || f.wakes.Load() != 0 {
			f.Error("a rejected order left rows")
		}

		f.provision("tenant", "key", "c-first")
	})
}

func TestRepeatedOrderIsNotValidatedAgain(t *testing.T) {
	onBothDatabases(t, func(f *fixture) {
		first, _ := f.provision("tenant", "key", "c-first")

		f.checkError.Store(failure.New(failure.Invalid, "the region was removed"))

		// If the order were rejected, the client would assume that no runtime exists, and the runtime would leak.
		if again, _ := f.provision("tenant", "key", "c-first"); again != first {
			f.Errorf("got operation %s, want %s", again, first)
		}
	})
}

func TestOnlyKnownKeysSkipTheChecks(t *testing.T) {
	onBothDatabases(t, func(f *fixture) {
		operationID, runtimeID := f.provision("tenant", "key", "c-first")
		f.provision("tenant", "", "c-second")

		f.checkError.Store(failure.New(failure.Invalid, "checked again"))

		cases := []struct {
			reason            string
			tenant, key, name string
			want              bool
		}{
			{"a repeated order", "tenant", "key", "c-first", true},
			{"a new key", "tenant", "other", "c-third", false},
			{"the key of another tenant", "other", "key", "c-third", false},
			{"no key, although an earlier order had none", "tenant", "", "c-third", false},
			{"the key of another cluster", "tenant", "key", "c-third", false},
		}

		for _, c := range cases {
			status, err := f.service.Provision(f.Context(), caller(c.tenant, c.key), order(c.name))

			known := err == nil
			if known != c.want || (!known && !failure.Is(err, failure.Invalid)) {
				f.Errorf("%s: got %v", c.reason, err)

				continue
			}

			if known && (status.ID != operationID || status.RuntimeID != runtimeID) {
				f.Errorf("%s: got operation %s of %s", c.reason, status.ID, status.RuntimeID)
			}
		}
	})
}

// TestKeyOfAnotherRequest sends requests with keys that were used for other requests. The service must reject them. If it
// returned the operation of the other request, the client would assume that its own request was accepted.
func TestKeyOfAnotherRequest(t *testing.T) {
	onBothDatabases(t, func(f *fixture) {
		created, runtimeID := f.provision("tenant", "creation", "c-first")
		f.finish(created, process.Succeeded)

		other, otherID := f.provision("tenant", "", "c-other")
		f.finish(other, process.Succeeded)

		upgraded, err := f.upgrade("upgrade", runtimeID)
		if err != nil {
			f.Fatal(err)
		}

		f.finish(upgraded.ID, process.Succeeded)
		f.deprovision("tenant", "removal of another", otherID)

		operations := f.count("operations")
		removal := func(key, runtimeID string) error {
			_, err := f.service.Deprovision(f.Context(), caller("tenant", key), runtimeID)

			return err
		}

		for reason, call := range map[string]func() error{
			"a removal with the key of a creation":                 func() error { return removal("creation", runtimeID) },
			"a removal with the key of an upgrade":                 func() error { return removal("upgrade", runtimeID) },
			"a removal with the key of another runtime's removal":  func() error { return removal("removal of another", runtimeID) },
			"a removal with the key of another runtime's creation": func() error { return removal("creation", otherID) },
			"an upgrade with the key of a creation":                func() error { _, err := f.upgrade("creation", runtimeID); return err },
			"an upgrade with the key of another runtime's upgrade": func() error { _, err := f.upgrade("upgrade", otherID); return err },
			"a hibernation with the key of an upgrade": func() error {
				_, err := f.service.Hibernate(f.Context(), caller("tenant", "upgrade"), runtimeID)
				return err
			},
			"a wake-up, publicly UpgradeShoot, with the key of an upgrade": func() error {
				_, err := f.service.WakeUp(f.Context(), caller("tenant", "upgrade"), runtimeID)
				return err
			},
			"a reconnection with the key of an upgrade": func() error {
				_, err := f.service.ReconnectAgent(f.Context(), caller("tenant", "upgrade"), runtimeID)

				return err
			},
			"a creation with the key of a removal": func() error {
				_, err := f.service.Provision(f.Context(), caller("tenant", "removal of another"), order("c-third"))

				return err
			},
			"the same for an order that is invalid": func() error {
				_, err := f.service.Provision(f.Context(), caller("tenant", "upgrade"), order("c-first"))

				return err
			},
		} {
			if err := call(); !failure.Is(err, failure.Invalid) || !strings.Contains(failure.Of(err).Text, "Idempotency-Key") {
				f.Errorf("%s: got %v", reason, err)
			}
		}

		if now := f.count("operations"); now != operations {
			f.Errorf("the rejected requests added %d operations", now-operations)
		}
	})
}

// TestKeyOfAnotherOrder repeats keys of orders with other orders. The cluster and the service instance decide whether an order is the
// same; an upgraded broker may change anything else.
func TestKeyOfAnotherOrder(t *testing.T) {
	onBothDatabases(t, func(f *fixture) {
		ordered := func(name, instance string, changes ...func(*spec.Runtime)) spec.Runtime {
			made := order(name)
			if instance != "" {
				made.Metadata.Labels = map[string]any{"broker_instance_id": instance}
			}

			for _, change := range changes {
				change(&made)
			}

			return made
		}

		first, err := f.service.Provision(f.Context(), caller("tenant", "key"), ordered("c-first", "i-1"))
		if err != nil {
			f.Fatal(err)
		}

		for _, ended := range []bool{false, true} {
			if ended {
				f.finish(first.ID, process.Succeeded)
			}

			for reason, c := range map[string]struct {
				order spec.Runtime
				want  bool
			}{
				"the same order":                   {ordered("c-first", "i-1"), true},
				"a broker that sends another name": {ordered("c-first", "i-1", func(r *spec.Runtime) { r.Metadata.Name = "renamed" }), true},
				"a broker that sends more": {ordered("c-first", "i-1", func(r *spec.Runtime) {
					r.Metadata.Labels["added"] = "x"
					r.ClusterConfig.GardenerConfig.MachineType = "m6i.large"
					r.ClusterConfig.Administrators = []string{"added"}
				}), true},
				"a broker without labels":  {ordered("c-first", ""), true},
				"another cluster":          {ordered("c-second", "i-1"), false},
				"another service instance": {ordered("c-first", "i-2"), false},
				"no cluster":               {spec.Runtime{}, false},
			} {
				status, err := f.service.Provision(f.Context(), caller("tenant", "key"), c.order)
				if c.want && (err != nil || status.ID != first.ID) {
					f.Errorf("%s, ended %t: got operation %q, %v", reason, ended, status.ID, err)
				}

				if !c.want && (!failure.Is(err, failure.Invalid) || !strings.Contains(failure.Of(err).Text, "Idempotency-Key")) {
					f.Errorf("%s, ended %t: got operation %q, %v", reason, ended, status.ID, err)
				}
			}
		}

		if f.count("operations") != 1 || f.count("runtimes") != 1 {
			f.Errorf("the orders created %d operations and %d runtimes", f.count("operations"), f.count("runtimes"))
		}
	})
}

func TestNameIsFreeAfterRemoval(t *testing.T) {
	onBothDatabases(t, func(f *fixture) {
		created, runtimeID := f.provision("tenant", "key-1", "c-first")
		f.finish(created, process.Succeeded)

		if err := f.store.MarkDeleted(f.Context(), runtimeID, time.Now()); err != nil {
			f.Fatal(err)
		}

		if _, again := f.provision("tenant", "key-2", "c-first"); again == runtimeID {
			f.Error("the new runtime has the ID of the removed runtime")
		}
	})
}

func TestUnavailableDatabase(t *testing.T) {
	onBothDatabases(t, func(f *fixture) {
		_, runtimeID := f.provision("tenant", "key", "c-first")
		cursor, _, err := f.service.Changes(f.Context(), "", 0)

		if err != nil || f.db.Close() != nil {
			f.Fatal(err)
		}

		_, provision := f.service.Provision(f.Context(), caller("tenant", ""), order("c-first"))
		_, deprovision := f.service.Deprovision(f.Context(), caller("tenant", "key"), runtimeID)
		_, status := f.service.OperationStatus(f.Context(), caller("tenant", ""), "some")
		_, runtime := f.service.RuntimeStatus(f.Context(), caller("tenant", ""), runtimeID, allFields)
		next, _, changes := f.service.Changes(f.Context(), cursor, 0)
		_, known := f.service.Provision(f.Context(), caller("tenant", "key"), order("c-first"))

		for call, err := range map[string]error{
			"provision": provision, "deprovision": deprovision, "operation status": status, "runtime status": runtime, "changes": changes,
			"known": known,
		} {
			if known := failure.Of(err); !failure.Is(err, failure.Transient) || known.Component != failure.ComponentProvisionerStorage {
				f.Errorf("%s: got %v of component %q", call, err, known.Component)
			}
		}

		if next != cursor {
			f.Errorf("the cursor moved: %s", next)
		}
	})
}

// TestOrderAfterACancellation orders a runtime, lets an operator cancel the operation, and repeats the order with a different
// region.
func TestOrderAfterACancellation(t *testing.T) {
	onBothDatabases(t, func(f *fixture) {
		creation, runtimeID := f.provision("tenant", "", "c-first")
		f.setState(creation, process.Canceled, process.Problem{})

		changed := order("c-first")
		changed.ClusterConfig.GardenerConfig.Region = "eu-west-1"

		again, err := f.service.Provision(f.Context(), caller("tenant", ""), changed)
		if err != nil || again.ID == creation || again.RuntimeID != runtimeID || again.State != process.Pending {
			f.Fatalf("got %+v, %v; want a new operation on the runtime %s", again, err, runtimeID)
		}

		if diff := cmp.Diff([]string{"c-first"}, f.shoots(orders.RuntimeFilter{Region: "eu-west-1"})); diff != "" {
			f.Errorf("the list has the region of the new order: -want +got\n%s", diff)
		}
	})
}
