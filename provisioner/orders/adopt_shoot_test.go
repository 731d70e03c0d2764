package orders_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/objectdiff"
	"github.com/environment-broker/environment-broker/provisioner/operation"
	"github.com/environment-broker/environment-broker/provisioner/orders"
	"github.com/environment-broker/environment-broker/provisioner/shoot"
	"github.com/environment-broker/environment-broker/storage/auditlog"
	"github.com/environment-broker/environment-broker/storage/runtimes"
	"github.com/environment-broker/environment-broker/storage/storagetest"
)

// adopter claims the Shoot of a fixture. err is the error that Claim returns after changing the Shoot.
type adopter struct {
	f      *fixture
	err    error
	claims int
}

func (a *adopter) CheckBindings(context.Context, *gardencorev1beta1.Shoot, string) error { return nil }

func (a *adopter) Claim(_ context.Context, read *gardencorev1beta1.Shoot, _ string, owner metav1.ObjectMeta) (bool, error) {
	a.claims++
	claimed := read.DeepCopy()
	claimed.Labels, claimed.Annotations = owner.Labels, owner.Annotations
	a.f.lost = claimed

	return true, a.err
}

// withShoot gives the fixture a Shoot of another program.
func (f *fixture) withShoot() *adopter {
	f.lost = &gardencorev1beta1.Shoot{
		ObjectMeta: metav1.ObjectMeta{Name: "theirs", UID: "uid", Generation: 5, CreationTimestamp: metav1.Now(), Labels: map[string]string{}, Annotations: map[string]string{}},
		Spec: gardencorev1beta1.ShootSpec{
			Region: "eu-de-1", CredentialsBindingName: new("openstack"), Kubernetes: gardencorev1beta1.Kubernetes{Version: "1.34.2"},
			CloudProfile: &gardencorev1beta1.CloudProfileReference{Kind: "CloudProfile", Name: "theirs"},
			Networking:   &gardencorev1beta1.Networking{Type: new("cilium"), Nodes: new("10.250.0.0/16")},
			Maintenance:  &gardencorev1beta1.Maintenance{AutoUpdate: &gardencorev1beta1.MaintenanceAutoUpdate{KubernetesVersion: true, MachineImageVersion: new(true)}},
			Provider: gardencorev1beta1.Provider{
				Type: "openstack", InfrastructureConfig: &runtime.RawExtension{Raw: []byte(`{"kind":"InfrastructureConfig","floatingPoolName":"pool","networks":{"workers":"10.250.0.0/16","id":"mine"}}`)},
				ControlPlaneConfig: &runtime.RawExtension{Raw: []byte(`{"kind":"ControlPlaneConfig","loadBalancerProvider":"f5"}`)},
				Workers: []gardencorev1beta1.Worker{{
					Name: "machines", Minimum: 1, Maximum: 3, MaxSurge: new(intstr.FromInt32(1)), MaxUnavailable: new(intstr.FromInt32(0)),
					Machine: gardencorev1beta1.Machine{Type: "g_c4_m16"}, Zones: []string{"eu-de-1b"},
				}},
			},
		},
		Status: gardencorev1beta1.ShootStatus{LastOperation: &gardencorev1beta1.LastOperation{State: gardencorev1beta1.LastOperationStateSucceeded}},
	}

	claimer := &adopter{f: f}
	f.service.Adopter = claimer
	f.service.Build = func(runtime runtimes.Runtime, operationID string) (*shoot.Objects, error) {
		order, err := operation.OrderOf(runtime)
		if err != nil {
			return nil, err
		}

		return shoot.Build(shoot.Runtime{ID: runtime.ID, OperationID: operationID, Tenant: runtime.Tenant, Config: order.ClusterConfig.GardenerConfig}, shoot.Options{})
	}

	return claimer
}

// TestAdoptShootTakenBack adopts a Shoot again after its owner has removed the annotation and the runtime has been removed. The Shoot
// must not get the ID of the removed runtime, because the Provisioner deletes Shoots of removed runtimes.
func TestAdoptShootTakenBack(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(f *fixture) {
		f.withShoot()

		adopted := map[string]bool{}

		for range 3 {
			delete(f.lost.Annotations, shoot.AnnotationRuntimeID)

			found, err := f.service.AdoptShoot(f.Context(), caller("acme", ""), orders.Adoption{ShootName: "theirs"})
			if err != nil || adopted[found.RuntimeID] || f.lost.Annotations[shoot.AnnotationRuntimeID] != found.RuntimeID {
				f.Fatalf("got %+v, %v after the adoptions %v; the Shoot has the annotations %v", found, err, adopted, f.lost.Annotations)
			}

			repeated, err := f.service.AdoptShoot(f.Context(), caller("acme", ""), orders.Adoption{ShootName: "theirs"})
			if err != nil || !repeated.Earlier || repeated.RuntimeID != found.RuntimeID {
				f.Errorf("a repeated adoption returned %+v, %v", repeated, err)
			}

			adopted[found.RuntimeID] = true

			if err := f.service.Runtimes.MarkDeleted(f.Context(), found.RuntimeID, f.service.Clock.Now()); err != nil {
				f.Fatal(err)
			}
		}
	})
}

// TestAdoptShootNotInOrder checks that a dry run lists what the broker does not order for a new cluster of the instance: additional
// worker pools and the failure tolerance of the control plane.
func TestAdoptShootNotInOrder(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(f *fixture) {
		f.withShoot()

		second := *f.lost.Spec.Provider.Workers[0].DeepCopy()
		second.Name = "batch"
		f.lost.Spec.Provider.Workers = append(f.lost.Spec.Provider.Workers, second)
		f.lost.Spec.ControlPlane = &gardencorev1beta1.ControlPlane{HighAvailability: &gardencorev1beta1.HighAvailability{
			FailureTolerance: gardencorev1beta1.FailureTolerance{Type: gardencorev1beta1.FailureToleranceTypeZone},
		}}

		found, err := f.service.AdoptShoot(f.Context(), caller("acme", ""), orders.Adoption{ShootName: "theirs", InstanceID: "instance", DryRun: true})
		if err != nil {
			f.Fatal(err)
		}

		for _, want := range []string{"spec.controlPlane", "spec.provider.workers[batch]"} {
			if !slices.Contains(found.NotInOrder, want) {
				f.Errorf("the dry run must list %s, but lists %v", want, found.NotInOrder)
			}
		}

		if pools := found.Cluster.AdditionalWorkers; len(pools) != 1 || pools[0].Name != "batch" {
			f.Errorf("the runtime must keep the pool, but its order has %v", pools)
		}
	})
}

// TestAdoptShoot adopts a Shoot whose first claim takes effect but returns an error. The repeated call stores the row.
func TestAdoptShoot(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(f *fixture) {
		claimer := f.withShoot()
		wanted := orders.Adoption{ShootName: "theirs", InstanceID: "instance", Administrators: []string{"anna"}, ClientData: new("data")}

		dry := wanted
		dry.DryRun = true

		described, err := f.service.AdoptShoot(f.Context(), caller("acme", ""), dry)
		if err != nil || claimer.claims != 0 || described.Generation != 5 || len(described.Changes) == 0 || len(described.NotInOrder) == 0 {
			f.Fatalf("dry run: got %+v, %v", described, err)
		}

		for _, change := range described.Changes {
			if strings.HasPrefix(change.Path, "spec.") && change.Path != "spec.provider.workersSettings.sshAccess.enabled" {
				f.Errorf("the first change must not touch %s", change)
			}
		}

		for _, path := range described.NotInOrder {
			if slices.Contains(objectdiff.Paths(described.Changes), path) {
				f.Errorf("the first change does not keep %s", path)
			}
		}

		claimer.err = failure.New(failure.Transient, "the answer is lost")
		if _, err := f.service.AdoptShoot(f.Context(), caller("acme", ""), wanted); !failure.Is(err, failure.Transient) {
			f.Fatalf("got %v", err)
		}

		if _, err := f.service.AdoptShoot(f.Context(), caller("other", ""), wanted); !failure.Is(err, failure.Conflict) {
			f.Errorf("another account must not finish the adoption: got %v", err)
		}

		claimer.err = nil

		for _, earlier := range []bool{false, true} {
			found, err := f.service.AdoptShoot(f.Context(), caller("acme", ""), wanted)
			if err != nil || found.Earlier != earlier || found.RuntimeID != described.RuntimeID || found.Cluster.Adopted.WorkerPool != "machines" {
				f.Fatalf("got %+v, %v", found, err)
			}
		}

		past, err := f.ops.OfInstance(f.Context(), f.db.Reader(), described.RuntimeID)
		if err != nil || len(past) != 1 || past[0].Kind != operation.KindProvisionNoInstall || !past[0].State.Terminal() {
			f.Errorf("got the operations %+v, %v", past, err)
		}

		logged, err := f.entries.List(f.Context(), auditlog.Filter{Limit: 10, InstanceID: described.RuntimeID, Action: auditlog.ActionAdopt})
		if err != nil || len(logged) != 1 || logged[0].After["cluster"] != "theirs" {
			f.Errorf("audit log: got %+v, %v", logged, err)
		}

		wanted.InstanceID = "another"
		if _, err := f.service.AdoptShoot(f.Context(), caller("acme", ""), wanted); !failure.Is(err, failure.Conflict) {
			f.Errorf("a Shoot belongs to one instance: got %v", err)
		}
	})
}

// TestAdoptShootRefused checks the reasons against an adoption. No Shoot is claimed.
func TestAdoptShootRefused(t *testing.T) {
	t.Parallel()

	for name, c := range map[string]struct {
		alter  func(present *gardencorev1beta1.Shoot)
		kind   failure.Kind
		reason string
	}{
		"owned":      {func(present *gardencorev1beta1.Shoot) { present.Annotations[shoot.AnnotationRuntimeID] = "x" }, failure.Conflict, "belongs to the runtime x"},
		"deleted":    {func(present *gardencorev1beta1.Shoot) { present.DeletionTimestamp = new(metav1.Now()) }, failure.Conflict, "deleting"},
		"incomplete": {func(present *gardencorev1beta1.Shoot) { present.Status.LastOperation = nil }, failure.Permanent, "has not succeeded"},
		"asleep": {func(present *gardencorev1beta1.Shoot) {
			present.Spec.Hibernation = &gardencorev1beta1.Hibernation{Enabled: new(true)}
		}, failure.Permanent, "hibernated"},
		"provider": {func(present *gardencorev1beta1.Shoot) { present.Spec.Provider.Type = "metal" }, failure.Permanent, `provider "metal" is not supported`},
		"no pools": {func(present *gardencorev1beta1.Shoot) { present.Spec.Provider.Workers = nil }, failure.Permanent, "no worker pools"},
		"percentage": {func(present *gardencorev1beta1.Shoot) {
			present.Spec.Provider.Workers[0].MaxSurge = new(intstr.FromString("10%"))
		}, failure.Permanent, "maxSurge of the worker pool machines is 10%"},
		"image":      {func(present *gardencorev1beta1.Shoot) { present.Spec.Provider.Workers[0].MaxSurge = nil }, failure.Permanent, "spec.provider.workers[machines].maxSurge: set to 0"},
		"generation": {func(present *gardencorev1beta1.Shoot) { present.Generation = 6 }, failure.Conflict, "has changed since the dry run"},
		"missing":    {func(present *gardencorev1beta1.Shoot) { present.Name = "other" }, failure.NotFound, "no such Shoot"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onBothDatabases(t, func(f *fixture) {
				claimer := f.withShoot()
				c.alter(f.lost)

				_, err := f.service.AdoptShoot(f.Context(), caller("acme", ""), orders.Adoption{ShootName: "theirs", Generation: new(5)})
				if !failure.Is(err, c.kind) || !strings.Contains(err.Error(), c.reason) || claimer.claims != 0 {
					f.Errorf("want %s with %q, got %v after %d claims", c.kind, c.reason, err, claimer.claims)
				}
			})
		})
	}
}

// TestLimitsOfAnAdoption checks that the texts of an adoption have the limits of an order: the Shoot stores them in an annotation.
func TestLimitsOfAnAdoption(t *testing.T) {
	t.Parallel()

	for want, wanted := range map[string]orders.Adoption{
		"clientData has 65537 characters, but at most 65536 are allowed": {ClientData: new(strings.Repeat("x", 65537))},
		"instanceID has 1025 characters, but at most 1024 are allowed":   {InstanceID: strings.Repeat("x", 1025)},
		"name has more than 256 characters":                              {Name: strings.Repeat("x", 257)},
		"administrators[0] must not be empty":                            {Administrators: []string{""}},
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()

			f := newFixture(t, storagetest.SQLite(t))
			claimer := f.withShoot()
			wanted.ShootName = "theirs"

			_, err := f.service.AdoptShoot(f.Context(), caller("acme", ""), wanted)
			if !failure.Is(err, failure.Invalid) || failure.Of(err).Text != "the adoption is invalid: "+want || claimer.claims != 0 {
				f.Errorf("got %v after %d claims", err, claimer.claims)
			}
		})
	}
}
