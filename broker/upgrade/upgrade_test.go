package upgrade_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/environment-broker/environment-broker/broker/catalog"
	"github.com/environment-broker/environment-broker/broker/upgrade"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/resources"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/instances"
	"github.com/environment-broker/environment-broker/storage/operations"
	"github.com/environment-broker/environment-broker/storage/storagetest"
)

const (
	planAWS     = "361c511f-f939-4621-b228-d0fb79a1fe15"
	planPreview = "5cb3d976-b85c-42ea-a636-79cadda109a9"
)

var began = time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)

// fixture is an Upgrader with its stores. No engine runs: operations end when the test calls end.
type fixture struct {
	*testing.T
	upgrade.Upgrader

	mutex sync.Mutex
	wakes int
}

func newFixture(t *testing.T, db *storage.DB) *fixture {
	t.Helper()

	keys := storagetest.Keys(t)

	ops, err := operations.Open(t.Context(), db, keys)
	if err != nil {
		t.Fatal(err)
	}

	rows, err := instances.Open(t.Context(), db, keys)
	if err != nil {
		t.Fatal(err)
	}

	plans, err := catalog.Load(resources.Catalog(), catalog.Options{KubernetesVersion: "1.35", OperationTimeout: time.Hour, KymaVersion: "2.0.0"})
	if err != nil {
		t.Fatal(err)
	}

	b := &fixture{T: t}
	b.Upgrader = upgrade.Upgrader{
		DB: db, Instances: rows, Operations: ops, Catalog: plans, Clock: clocktesting.NewFakePassiveClock(began), Wake: func() {
			b.mutex.Lock()
			defer b.mutex.Unlock()

			b.wakes++
		},
	}

	return b
}

// create stores an instance with the ID "one" and a provisioning that ended in the given state.
func (b *fixture) create(state process.State, change func(*environment.Instance)) environment.Instance {
	b.Helper()

	instance := environment.Instance{
		ID: "one", PlanID: planPreview, PlanName: "preview", ShootName: "c-one", RuntimeID: "runtime", CreatedAt: began, UpdatedAt: began,
		Request: environment.Request{Cluster: environment.Cluster{
			KubernetesVersion: "1.34.2", Kyma: &environment.Kyma{Version: "1.0.0", Modules: []string{"eventing"}},
		}},
	}
	change(&instance)

	if err := b.DB.InTx(b.Context(), func(tx storage.Tx) error {
		return storagetest.Insert(b.Context(), tx, b.Instances, instance)
	}); err != nil {
		b.Fatal(err)
	}

	b.operation(environment.KindProvision, instance, state)

	return instance
}

// operation stores an operation of the instance in the given state.
func (b *fixture) operation(kind string, instance environment.Instance, state process.State) {
	b.Helper()

	operation, err := environment.NewOperation(kind, instance, nil, began)
	if err != nil {
		b.Fatal(err)
	}

	if err := b.DB.InTx(b.Context(), func(tx storage.Tx) error { return b.Operations.Accept(b.Context(), tx, operation) }); err != nil {
		b.Fatal(err)
	}

	if state == process.Pending {
		return
	}

	for _, work := range storagetest.Claim(b, b.Operations, process.Claim{Owner: "test", Limit: 100, Now: began, Until: began.Add(time.Minute)}, kind) {
		progress := process.Progress{Record: work.Record, Release: true, Now: began}
		progress.Record.NextRun, progress.Record.State = began, state

		if state.Terminal() {
			progress.Record.FinishedAt = began
		}

		if _, err := b.Operations.Save(b.Context(), progress); err != nil {
			b.Fatal(err)
		}
	}
}

func TestUpgrade(t *testing.T) {
	kyma, cluster := environment.KindUpgradeKyma, environment.KindUpgradeCluster

	cases := map[string]struct {
		reason string
		order  upgrade.Order
		change func(*environment.Instance)
		want   upgrade.Accepted
		data   environment.Upgrade
	}{
		"Kyma": {
			"the operation chooses the version",
			upgrade.Order{Kind: kyma},
			func(*environment.Instance) {},
			upgrade.Accepted{Versions: upgrade.Versions{From: "1.0.0"}},
			environment.Upgrade{},
		},
		"version of Kyma": {
			"the plan has the components of a version",
			upgrade.Order{Kind: kyma, Version: "2.1.0", DryRun: true},
			func(*environment.Instance) {},
			upgrade.Accepted{Versions: upgrade.Versions{From: "1.0.0", To: "2.1.0"}, Components: []string{"cluster-essentials", "compass-runtime-agent", "eventing"}},
			environment.Upgrade{Version: "2.1.0", DryRun: true},
		},
		"cluster": {
			"the version and the maintenance version of the plan",
			upgrade.Order{Kind: cluster},
			func(*environment.Instance) {},
			upgrade.Accepted{Versions: upgrade.Versions{From: "1.34.2", To: "1.35"}},
			environment.Upgrade{Version: "1.35", MaintenanceVersion: "1.0.0"},
		},
		"version of the cluster": {
			"a version of the operator",
			upgrade.Order{Kind: cluster, Version: "1.35.1"},
			func(*environment.Instance) {},
			upgrade.Accepted{Versions: upgrade.Versions{From: "1.34.2", To: "1.35.1"}},
			environment.Upgrade{Version: "1.35.1"},
		},
		"later cluster": {
			"a cluster keeps a later version than that of the plan",
			upgrade.Order{Kind: cluster},
			func(instance *environment.Instance) { instance.Request.Cluster.KubernetesVersion = "1.36.0" },
			upgrade.Accepted{Versions: upgrade.Versions{From: "1.36.0", To: "1.36.0"}},
			environment.Upgrade{Version: "1.36.0", MaintenanceVersion: "1.0.0"},
		},
		"same minor version": {
			"Gardener chooses the patch version",
			upgrade.Order{Kind: cluster, Version: "1.34"},
			func(*environment.Instance) {},
			upgrade.Accepted{Versions: upgrade.Versions{From: "1.34.2", To: "1.34"}},
			environment.Upgrade{Version: "1.34"},
		},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			b := newFixture(t, storagetest.SQLite(t))
			b.create(process.Succeeded, c.change)
			c.order.InstanceID = "one"

			accepted, err := b.Upgrade(t.Context(), c.order)
			if accepted.Instance.ID == "" {
				t.Error("the accepted upgrade has no instance")
			}

			if diff := cmp.Diff(c.want, accepted, cmpopts.IgnoreFields(upgrade.Accepted{}, "OperationID", "Instance")); diff != "" || err != nil || b.wakes != 1 {
				t.Fatalf("%s: %v, woken %d times, -want +got\n%s", c.reason, err, b.wakes, diff)
			}

			payload, err := b.Operations.Payload(t.Context(), b.DB.Reader(), accepted.OperationID)
			if err != nil {
				t.Fatal(err)
			}

			var data environment.Data
			if err := data.UnmarshalJSON(payload); err != nil {
				t.Fatal(err)
			}

			if diff := cmp.Diff(environment.Data{Upgrade: &c.data}, data); diff != "" {
				t.Errorf("%s: stored -want +got\n%s", c.reason, diff)
			}
		})
	}
}

func TestRefused(t *testing.T) {
	kyma, cluster := environment.KindUpgradeKyma, environment.KindUpgradeCluster

	cases := map[string]struct {
		reason string
		order  upgrade.Order
		change func(*environment.Instance)
		want   failure.Kind
		text   string
	}{
		"unknown": {"no such instance", upgrade.Order{Kind: kyma, InstanceID: "two"}, nil, failure.NotFound, "does not exist"},
		"plan without Kyma": {"there is nothing to upgrade", upgrade.Order{Kind: kyma}, func(instance *environment.Instance) {
			instance.PlanID, instance.PlanName, instance.Request.Cluster.Kyma = planAWS, "aws", nil
		}, failure.Invalid, "plan aws does not install Kyma"},
		"created without Kyma": {"the plan got Kyma later", upgrade.Order{Kind: kyma}, func(instance *environment.Instance) {
			instance.Request.Cluster.Kyma = nil
		}, failure.Invalid, "created without Kyma"},
		"own cluster": {"the broker does not manage the cluster", upgrade.Order{Kind: cluster}, func(instance *environment.Instance) {
			instance.Request.Cluster = environment.Cluster{Own: &environment.OwnCluster{}}
		}, failure.Invalid, "belongs to the tenant"},
		"downgrade": {"Kubernetes cannot be downgraded", upgrade.Order{Kind: cluster, Version: "1.33"}, nil, failure.Invalid, "cannot be downgraded to 1.33"},
		"patch":     {"nor can patch versions", upgrade.Order{Kind: cluster, Version: "1.34.1"}, nil, failure.Invalid, "cannot be downgraded"},
		"skipped": {
			"neither the Provisioner nor Gardener skips a minor version",
			upgrade.Order{Kind: cluster, Version: "1.36"},
			nil, failure.Invalid,
			"The cluster has Kubernetes 1.34.2, and an upgrade to 1.36 would skip a minor version. Upgrade it to 1.35 first.",
		},
		"major": {
			"nor does it change the major version",
			upgrade.Order{Kind: cluster, Version: "9.9.9"},
			nil, failure.Invalid,
			"an upgrade to 9.9.9 would skip a minor version",
		},
		"no version": {
			"a version with a prefix", upgrade.Order{Kind: cluster, Version: "v1.35"}, nil, failure.Invalid, "such as 1.34",
		},
		"no version of Kyma": {"a version is part of a path", upgrade.Order{Kind: kyma, Version: "../1"}, nil, failure.Invalid, "must be a Kyma version"},
		"lost module": {"the plan lost a module of the instance", upgrade.Order{Kind: kyma}, func(instance *environment.Instance) {
			instance.Request.Cluster.Kyma = &environment.Kyma{Version: "1.0.0", Modules: []string{"lost"}}
		}, failure.Conflict, `no longer has the module "lost"`},
		"lost plan": {"the plan was removed", upgrade.Order{Kind: cluster}, func(instance *environment.Instance) {
			instance.PlanID, instance.PlanName = "lost", "lost"
		}, failure.Conflict, "no longer has plan lost"},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			b := newFixture(t, storagetest.SQLite(t))

			if c.change == nil {
				c.change = func(*environment.Instance) {}
			}

			b.create(process.Succeeded, c.change)

			if c.order.InstanceID == "" {
				c.order.InstanceID = "one"
			}

			accepted, err := b.Upgrade(t.Context(), c.order)
			if !failure.Is(err, c.want) || !strings.Contains(failure.Of(err).Text, c.text) || accepted.OperationID != "" || b.wakes != 0 {
				t.Errorf("%s: %v", c.reason, err)
			}
		})
	}
}

// TestStates upgrades an instance after another operation.
func TestStates(t *testing.T) {
	cases := map[string]struct {
		reason  string
		created process.State
		kind    string
		state   process.State
		text    string // empty if the upgrade is accepted
	}{
		"created":           {"the runtime works", process.Succeeded, "", "", ""},
		"updated":           {"an update that failed keeps the runtime", process.Succeeded, environment.KindUpdate, process.Failed, ""},
		"creating":          {"the runtime does not exist yet", process.InProgress, "", "", "(provision) of the instance has not ended"},
		"creation failed":   {"the runtime is not complete", process.Failed, "", "", "creation failed"},
		"updating":          {"one change at a time", process.Succeeded, environment.KindUpdate, process.InProgress, "(update) of the instance has not ended"},
		"upgrading":         {"one upgrade at a time", process.Succeeded, environment.KindUpgradeKyma, process.Pending, "(upgradeKyma) of the instance"},
		"deleting":          {"the instance goes away", process.Succeeded, environment.KindDeprovision, process.Pending, "(deprovision) of the instance"},
		"deletion failed":   {"the instance should go away", process.Succeeded, environment.KindDeprovision, process.Failed, "deletion of the instance has failed"},
		"suspended":         {"there is no runtime", process.Succeeded, environment.KindSuspend, process.Succeeded, "Resume the instance first"},
		"suspension failed": {"the runtime is not complete", process.Succeeded, environment.KindSuspend, process.Failed, "suspension failed"},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			b := newFixture(t, storagetest.SQLite(t))
			instance := b.create(c.created, func(*environment.Instance) {})

			if c.kind != "" {
				b.operation(c.kind, instance, c.state)
			}

			_, err := b.Upgrade(t.Context(), upgrade.Order{InstanceID: "one", Kind: environment.KindUpgradeCluster})
			if c.text == "" && err != nil || c.text != "" && (!failure.Is(err, failure.Conflict) || !strings.Contains(failure.Of(err).Text, c.text)) {
				t.Errorf("%s: %v", c.reason, err)
			}
		})
	}
}

// TestConcurrentOrders orders upgrades at the same time. Exactly one of them is accepted.
func TestConcurrentOrders(t *testing.T) {
	storagetest.EachDatabase(t, func(t *testing.T, db *storage.DB) {
		b := newFixture(t, db)
		b.create(process.Succeeded, func(*environment.Instance) {})

		var (
			group    sync.WaitGroup
			mutex    sync.Mutex
			accepted int
		)

		for range 8 {
			group.Go(func() {
				_, err := b.Upgrade(t.Context(), upgrade.Order{InstanceID: "one", Kind: environment.KindUpgradeKyma})

				mutex.Lock()
				defer mutex.Unlock()

				if err == nil {
					accepted++
				} else if !failure.Is(err, failure.Conflict) {
					t.Error(err)
				}
			})
		}

		group.Wait()

		if accepted != 1 || b.wakes != 1 {
			t.Errorf("%d upgrades were accepted, the engine was woken %d times", accepted, b.wakes)
		}
	})
}
