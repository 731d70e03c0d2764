//go:build garden

package e2e

import (
	"slices"
	"testing"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/environment-broker/environment-broker/provisioner/gardener"
	"github.com/environment-broker/environment-broker/provisioner/shoot"
	"github.com/environment-broker/environment-broker/provisioner/spec"
	"github.com/environment-broker/environment-broker/test/harness"
)

const (
	ownManager = "environment-broker-provisioner"
	// formerManager is the field manager name of Kyma Provisioner. Earlier versions of our Provisioner used it too.
	formerManager = "provisioner"
)

// ownership changes one Shoot of the local garden under several field managers. The API server records which manager owns each
// field.
type ownership struct {
	*testing.T

	garden project
	shoots *gardener.Client
	name   string
}

// TestFieldsOfFormerManagersOnLocalGarden checks which fields of a Shoot our Provisioner changes, removes and keeps if the Shoot was
// written by Kyma Provisioner or by an earlier version of our Provisioner.
func TestFieldsOfFormerManagersOnLocalGarden(t *testing.T) {
	t.Parallel()

	garden := sharedGarden(t, "simulated").asAdmin(t)

	on := func(t *testing.T, name string) ownership {
		t.Helper()

		return ownership{T: t, garden: garden.project, shoots: gardener.New(garden, garden.Namespace()), name: name}
	}

	t.Run("Kyma Provisioner", func(t *testing.T) { on(t, "c-former").testKymaProvisioner() })
	t.Run("earlier version", func(t *testing.T) { on(t, "c-earlier").testEarlierVersion(false) })
	t.Run("earlier version beside this version", func(t *testing.T) { on(t, "c-concurrent").testEarlierVersion(true) })
	t.Run("pools of an adopted Shoot", func(t *testing.T) { on(t, "c-adopted").testAdoptedPools(false) })
	t.Run("pools of an adopted Shoot after a change", func(t *testing.T) { on(t, "c-changed").testAdoptedPools(true) })
}

// testAdoptedPools removes a worker pool from a Shoot whose pools belong to another manager, as in an adopted Shoot. The pool must be gone,
// and the pool "theirs", which no order contains, must stay. If changed is true, our Provisioner changes the Shoot before.
func (o ownership) testAdoptedPools(changed bool) {
	o.applyAs("former-provisioner", o.order(3, "batch", "theirs").Shoot)

	if changed {
		o.change(4, "batch")
	}

	o.changeWith(func() *shoot.Objects {
		objects := o.order(5)
		objects.DroppedPools = []string{"batch"}

		return objects
	})

	var pools []string
	for _, worker := range o.get().Spec.Provider.Workers {
		pools = append(pools, worker.Name)
	}

	if diff := cmp.Diff([]string{shoot.WorkerPool, "theirs"}, pools); diff != "" {
		o.Errorf("pools: -want +got\n%s", diff)
	}

	if diff := cmp.Diff([]string{ownManager, "former-provisioner"}, o.managers()); diff != "" {
		o.Errorf("managers: -want +got\n%s", diff)
	}
}

// testKymaProvisioner changes a Shoot whose fields all belong to Kyma Provisioner. Fields that our order omits must stay.
//
//nolint:staticcheck // Kyma Provisioner sets fields that are deprecated now.
func (o ownership) testKymaProvisioner() {
	secretBinding := &gardencorev1beta1.SecretBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: o.garden.Namespace(), Name: "former"},
		Provider:   &gardencorev1beta1.SecretBindingProvider{Type: "aws"},
		SecretRef:  corev1.SecretReference{Namespace: o.garden.Namespace(), Name: "aws"},
	}
	if err := o.garden.Create(o.Context(), secretBinding); err != nil {
		o.Fatal(err)
	}

	written := o.order(1).Shoot
	delete(written.Labels, shoot.LabelRuntimeID)

	written.Annotations["custom"] = "kept"
	written.Spec.CredentialsBindingName, written.Spec.SecretBindingName = nil, new("former")
	written.Spec.Kubernetes.VerticalPodAutoscaler = &gardencorev1beta1.VerticalPodAutoscaler{Enabled: true, EvictAfterOOMThreshold: &metav1.Duration{Duration: 7 * 60e9}}
	o.applyAs(formerManager, written)

	// Gardener rejects a Shoot with a SecretBinding and a CredentialsBinding, so an operator replaces the SecretBinding before
	// the first change.
	swapped := o.get()
	before := swapped.DeepCopy()
	swapped.Spec.SecretBindingName, swapped.Spec.CredentialsBindingName = nil, new("aws")

	if err := o.garden.Patch(o.Context(), swapped, client.MergeFrom(before)); err != nil {
		o.Fatal(err)
	}

	for _, machines := range []int32{5, 6} {
		o.change(machines)

		after := o.get()
		if after.Annotations["custom"] != "kept" || after.Labels[shoot.LabelRuntimeID] != o.runtimeID() || after.Spec.Provider.Workers[0].Maximum != machines {
			o.Errorf("got annotations %v, labels %v and %+v", after.Annotations, after.Labels, after.Spec.Provider.Workers)
		}

		autoscaler := after.Spec.Kubernetes.VerticalPodAutoscaler
		if autoscaler == nil || !autoscaler.Enabled || autoscaler.EvictAfterOOMThreshold.Minutes() != 7 {
			o.Errorf("the vertical pod autoscaler that Kyma Provisioner configured is now %+v", autoscaler)
		}
	}

	if diff := cmp.Diff([]string{ownManager, formerManager}, o.managers()); diff != "" {
		o.Errorf("managers: -want +got\n%s", diff)
	}
}

// testEarlierVersion creates a Shoot as an earlier version of our Provisioner did, and then removes a worker pool from the order.
// If concurrent is true, replicas of both versions write the Shoot before the removal.
func (o ownership) testEarlierVersion(concurrent bool) {
	o.applyAs(formerManager, o.order(3, "batch").Shoot)

	if concurrent {
		o.change(4, "batch")
		o.applyAs(formerManager, o.order(3, "batch").Shoot)
	}

	before := o.get()
	o.change(5)
	after := o.get()

	if after.UID != before.UID || len(after.Spec.Provider.Workers) != 1 || after.Spec.Provider.Workers[0].Maximum != 5 {
		o.Errorf("want one pool with 5 machines, got %+v", after.Spec.Provider.Workers)
	}

	if diff := cmp.Diff([]string{ownManager}, o.managers()); diff != "" {
		o.Errorf("managers: -want +got\n%s", diff)
	}

	// A change based on an outdated version of the Shoot must fail without changing fields or owners.
	if err := o.shoots.Change(o.Context(), before, o.order(9)); err == nil || o.get().Spec.Provider.Workers[0].Maximum != 5 {
		o.Errorf("a change of an outdated Shoot returned %v", err)
	}
}

func (o ownership) runtimeID() string { return "runtime-of-" + o.name }

// order returns the objects of a cluster. machines is the maximum number of machines in the first pool, and pools contains the names
// of additional pools.
func (o ownership) order(machines int32, pools ...string) *shoot.Objects {
	o.Helper()

	config := &spec.Cluster{
		Name: o.name, KubernetesVersion: "1.33.11", Provider: "aws", TargetSecret: "aws", Region: "eu-central-1",
		MachineType: "m6i.large", DiskType: new("gp3"), VolumeSizeGB: new(50), WorkerCIDR: "10.250.0.0/16",
		AutoScalerMin: 1, AutoScalerMax: int(machines), MaxSurge: 1, Purpose: new("evaluation"),
		ProviderSpecificConfig: &spec.Provider{AWSConfig: &spec.AWS{
			VpcCIDR: "10.250.0.0/16",
			AWSZones: []*spec.AWSZone{{
				Name: "eu-central-1a", WorkerCIDR: "10.250.0.0/19", PublicCIDR: "10.250.32.0/20", InternalCIDR: "10.250.48.0/20",
			}},
		}},
	}
	for _, pool := range pools {
		config.AdditionalWorkers = append(config.AdditionalWorkers, &spec.WorkerPool{
			Name: pool, MachineType: "m6i.large", AutoScalerMin: 1, AutoScalerMax: 2, MaxSurge: 1, DiskType: new("gp3"), VolumeSizeGB: new(50),
		})
	}

	objects, err := shoot.Build(shoot.Runtime{
		ID: o.runtimeID(), OperationID: "op-1", Tenant: "acme", SubAccount: "acme-dev", Config: config,
	}, shoot.Options{Namespace: o.garden.Namespace()})
	if err != nil {
		o.Fatal(err)
	}

	return objects
}

// change changes the Shoot as the Provisioner does. It retries after conflicts, because the gardenlet also changes the Shoot.
func (o ownership) change(machines int32, pools ...string) {
	o.Helper()

	o.changeWith(func() *shoot.Objects { return o.order(machines, pools...) })
}

// changeWith is change with objects other than order's.
func (o ownership) changeWith(objects func() *shoot.Objects) {
	o.Helper()

	var err error

	if !harness.Within(harness.Patience, func() bool {
		err = o.shoots.Change(o.Context(), o.get(), objects())

		return err == nil
	}) {
		o.Fatal(err)
	}
}

// applyAs applies the Shoot under another field manager. It retries, because Gardener reads referenced objects from a cache,
// which may not have new objects yet.
func (o ownership) applyAs(manager string, wanted *gardencorev1beta1.Shoot) {
	o.Helper()

	manifest, err := shoot.Manifest(wanted)
	if err != nil {
		o.Fatal(err)
	}

	if !harness.Within(harness.Patience, func() bool {
		err = o.garden.Apply(o.Context(), client.ApplyConfigurationFromUnstructured(manifest), client.FieldOwner(manager), client.ForceOwnership)

		return err == nil
	}) {
		o.Fatal(err)
	}
}

func (o ownership) get() *gardencorev1beta1.Shoot {
	o.Helper()

	existing := &gardencorev1beta1.Shoot{}
	if err := o.garden.Get(o.Context(), client.ObjectKey{Namespace: o.garden.Namespace(), Name: o.name}, existing); err != nil {
		o.Fatal(err)
	}

	return existing
}

// managers returns the sorted names of the managers that have applied fields of the Shoot.
func (o ownership) managers() []string {
	o.Helper()

	var managers []string

	for _, entry := range o.get().ManagedFields {
		if entry.Operation == metav1.ManagedFieldsOperationApply {
			managers = append(managers, entry.Manager)
		}
	}

	slices.Sort(managers)

	return managers
}
