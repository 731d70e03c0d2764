package gardener_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/provisioner/gardener"
	"github.com/environment-broker/environment-broker/provisioner/shoot"
	"github.com/environment-broker/environment-broker/provisioner/spec"
)

// trusting returns the objects of a cluster that trusts the identity provider with this issuer.
func (b fixture) trusting(issuer string) *shoot.Objects {
	b.Helper()

	return b.orderWith(runtimeID, func(config *spec.Cluster) {
		config.OIDCConfig = &spec.OIDC{ClientID: "client", IssuerURL: issuer, UsernameClaim: "sub", UsernamePrefix: "-"}
	})
}

// configMaps returns the names of the ConfigMaps that belong to runtimes.
func (b fixture) configMaps() []string {
	b.Helper()

	list := &corev1.ConfigMapList{}
	if err := b.garden.Client().List(b.Context(), list, client.HasLabels{shoot.LabelRuntimeID}); err != nil {
		b.Fatal(err)
	}

	var names []string
	for _, each := range list.Items {
		names = append(names, each.Name)
	}

	return names
}

func (b fixture) change(read *gardencorev1beta1.Shoot, objects *shoot.Objects) {
	b.Helper()

	if err := b.shoots.Change(b.Context(), read, objects); err != nil {
		b.Fatal(err)
	}
}

func TestChange(t *testing.T) {
	b := newFixture(t)
	b.apply(runtimeID)
	before := b.get()

	wanted := b.trusting("https://issuer.example.com")
	wanted.Shoot.Spec.Provider.Workers[0].Maximum = 9
	b.change(before, wanted)

	after := b.get()
	if after.UID != before.UID || after.Generation != before.Generation+1 || after.Spec.Provider.Workers[0].Maximum != 9 {
		t.Errorf("generation %d of %s became %d of %s, with at most %d machines", before.Generation, before.UID, after.Generation, after.UID,
			after.Spec.Provider.Workers[0].Maximum)
	}

	if diff := cmp.Diff([]string{after.Spec.Kubernetes.KubeAPIServer.StructuredAuthentication.ConfigMapName}, b.configMaps()); diff != "" {
		t.Errorf("the ConfigMaps differ from the references of the Shoot, -want +got:\n%s", diff)
	}

	b.change(after, b.order(runtimeID))

	if server := b.get().Spec.Kubernetes.KubeAPIServer; server != nil && server.StructuredAuthentication != nil {
		t.Errorf("a field that the order omits was kept: %v", server)
	}
}

// TestConfinedChange changes Shoots whose owner has confined changes to the maintenance window. The API server does not increase the
// generation for such a change, so without a request to reconcile the Shoot, the change would seem to have succeeded immediately.
func TestConfinedChange(t *testing.T) {
	for _, state := range []gardencorev1beta1.LastOperationState{
		gardencorev1beta1.LastOperationStateSucceeded, gardencorev1beta1.LastOperationStateFailed,
	} {
		for name, write := range map[string]func(b fixture, objects *shoot.Objects) error{
			"Apply":  func(b fixture, objects *shoot.Objects) error { return b.shoots.Apply(b.Context(), objects) },
			"Change": func(b fixture, objects *shoot.Objects) error { return b.shoots.Change(b.Context(), b.get(), objects) },
		} {
			t.Run(name+string(state), func(t *testing.T) {
				b := newFixture(t)
				b.apply(runtimeID)

				confined := b.get()
				confined.Spec.Maintenance.ConfineSpecUpdateRollout = new(true)

				if err := b.garden.Client().Update(t.Context(), confined); err != nil {
					t.Fatal(err)
				}

				confined.Status.ObservedGeneration = confined.Generation
				confined.Status.LastOperation = &gardencorev1beta1.LastOperation{Type: gardencorev1beta1.LastOperationTypeReconcile, State: state}

				if err := b.garden.Client().Status().Update(t.Context(), confined); err != nil {
					t.Fatal(err)
				}

				if err := write(b, b.orderWith(runtimeID, func(config *spec.Cluster) { config.AutoScalerMax = 9 })); err != nil {
					t.Fatal(err)
				}

				after := b.get()
				if after.Generation != confined.Generation+1 || gardener.ProgressOf(after).Done {
					t.Errorf("generation %d became %d, the progress is %+v", confined.Generation, after.Generation, gardener.ProgressOf(after))
				}

				if after.Spec.Provider.Workers[0].Maximum != 9 || !*after.Spec.Maintenance.ConfineSpecUpdateRollout || after.Annotations["gardener.cloud/operation"] != "" {
					t.Errorf("the Shoot is %+v, with the annotations %v", after.Spec, after.Annotations)
				}
			})
		}
	}
}

// TestChangeRemovesDroppedPool checks that a change removes a worker pool that it omits. This requires creation and change to
// use the same field manager: a server-side apply removes only fields that its own manager has set.
func TestChangeRemovesDroppedPool(t *testing.T) {
	b := newFixture(t)
	more := func(config *spec.Cluster) {
		config.AdditionalWorkers = []*spec.WorkerPool{{
			Name: "batch", MachineType: "m6i.large", AutoScalerMin: 1, AutoScalerMax: 2, MaxSurge: 1, DiskType: new("gp3"), VolumeSizeGB: new(50),
		}}
	}

	if err := b.shoots.Apply(t.Context(), b.orderWith(runtimeID, more)); err != nil {
		t.Fatal(err)
	}

	for _, want := range [][]string{{shoot.WorkerPool, "batch"}, {shoot.WorkerPool}} {
		var got []string
		for _, worker := range b.get().Spec.Provider.Workers {
			got = append(got, worker.Name)
		}

		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("pools, -want +got:\n%s", diff)
		}

		b.change(b.get(), b.order(runtimeID))
	}
}

// TestChangeOfMachineImage orders another machine image without a version: Gardener must choose the newest version of that image, whatever
// the owner of the former version is.
func TestChangeOfMachineImage(t *testing.T) {
	for name, first := range map[string]func(config *spec.Cluster){
		"NoImage":   func(*spec.Cluster) {},
		"NoVersion": func(config *spec.Cluster) { config.MachineImage = new("gardenlinux") },
		"Version": func(config *spec.Cluster) {
			config.MachineImage, config.MachineImageVersion = new("gardenlinux"), new("1592.14.0")
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newFixture(t)

			profile := &gardencorev1beta1.CloudProfile{}
			if err := b.garden.Client().Get(t.Context(), client.ObjectKey{Name: "aws"}, profile); err != nil {
				t.Fatal(err)
			}

			other := *profile.Spec.MachineImages[0].DeepCopy()
			other.Name, other.Versions = "suse-chost", other.Versions[:2]
			other.Versions[0].Version, other.Versions[1].Version = "15.5.1", "15.6.2"
			profile.Spec.MachineImages = append(profile.Spec.MachineImages, other)

			if err := b.garden.Client().Update(t.Context(), profile); err != nil {
				t.Fatal(err)
			}

			if err := b.shoots.Apply(t.Context(), b.orderWith(runtimeID, first)); err != nil {
				t.Fatal(err)
			}

			maintained := b.get() // Gardener's maintenance raises the version
			maintained.Spec.Provider.Workers[0].Machine.Image.Version = new("1877.2.0")

			if err := b.garden.Client().Update(t.Context(), maintained, client.FieldOwner("gardener-controller-manager")); err != nil {
				t.Fatal(err)
			}

			for range 2 { // the second change keeps the chosen version
				read := b.get()
				objects := b.orderWith(runtimeID, func(config *spec.Cluster) { config.MachineImage = new("suse-chost") })
				objects.Keep(read)
				b.change(read, objects)

				image := b.get().Spec.Provider.Workers[0].Machine.Image
				if diff := cmp.Diff(&gardencorev1beta1.ShootMachineImage{Name: "suse-chost", Version: new("15.6.2")}, image); diff != "" {
					t.Errorf("image, -want +got:\n%s", diff)
				}
			}
		})
	}
}

// TestRepeatedCreationKeepsKubernetesVersion upgrades the cluster between two attempts to create it, as Gardener might. The
// second attempt must keep the new version.
func TestRepeatedCreationKeepsKubernetesVersion(t *testing.T) {
	b := newFixture(t)
	b.apply(runtimeID)

	maintained := b.get()
	maintained.Spec.Kubernetes.Version = "1.36.1"

	if err := b.garden.Client().Update(t.Context(), maintained); err != nil {
		t.Fatal(err)
	}

	b.apply(runtimeID)

	if got := b.get().Spec.Kubernetes.Version; got != "1.36.1" {
		t.Errorf("Kubernetes %s, want the version that Gardener upgraded the cluster to", got)
	}
}

// TestStaleChangeIsRejected simulates a replica that pauses between reading and writing the Shoot. It must not overwrite a
// change that was made in the meantime.
func TestStaleChangeIsRejected(t *testing.T) {
	b := newFixture(t)
	b.apply(runtimeID)
	read := b.get()

	newer := b.order(runtimeID)
	newer.Shoot.Spec.Provider.Workers[0].Maximum = 9
	b.change(read, newer)

	late := b.order(runtimeID)
	late.Shoot.Spec.Provider.Workers[0].Maximum = 5

	err := b.shoots.Change(t.Context(), read, late)
	if !failure.Is(err, failure.Transient) || !strings.Contains(failure.Of(err).Text, "changed in the meantime") {
		t.Errorf("a stale change returned %v", err)
	}

	if most := b.get().Spec.Provider.Workers[0].Maximum; most != 9 {
		t.Errorf("the pool has at most %d machines, want the 9 of the newer change", most)
	}
}

// pausing is a client of Gardener that calls paused after its first read.
type pausing struct {
	client.WithWatch

	paused func()
}

func (p pausing) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	defer p.paused()

	return p.WithWatch.Get(ctx, key, object, options...)
}

// TestStaleCreationIsRejected simulates a replica that pauses while it repeats a creation. It must not overwrite a change that was
// made in the meantime.
func TestStaleCreationIsRejected(t *testing.T) {
	b := newFixture(t)
	b.apply(runtimeID)

	newer := b.order(runtimeID)
	newer.Shoot.Spec.Provider.Workers[0].Maximum = 9
	change := sync.OnceFunc(func() { b.change(b.get(), newer) })

	late := gardener.New(pausing{b.garden.Client(), change}, b.garden.Namespace())
	if err := late.Apply(t.Context(), b.order(runtimeID)); !failure.Is(err, failure.Transient) {
		t.Errorf("a stale creation returned %v", err)
	}

	if most := b.get().Spec.Provider.Workers[0].Maximum; most != 9 {
		t.Errorf("the pool has at most %d machines, want the 9 of the newer change", most)
	}
}

// TestLateCreationIsRejected simulates a replica that pauses before it creates a Shoot. It must not take over the Shoot that another
// runtime has created under this name in the meantime.
func TestLateCreationIsRejected(t *testing.T) {
	b := newFixture(t)
	other := sync.OnceFunc(func() { b.apply("other-runtime") })

	late := gardener.New(pausing{b.garden.Client(), other}, b.garden.Namespace())
	if err := late.Apply(t.Context(), b.order(runtimeID)); !failure.Is(err, failure.Transient) {
		t.Errorf("a late creation returned %v", err)
	}

	if owner := b.get().Annotations[shoot.AnnotationRuntimeID]; owner != "other-runtime" {
		t.Errorf("the Shoot belongs to %s", owner)
	}
}

// TestLateDeletion simulates a replica that pauses before it deletes a Shoot. In the meantime, the Shoot is deleted, and
// another runtime creates a Shoot under this name, which must stay unchanged.
func TestLateDeletion(t *testing.T) {
	b := newFixture(t)
	b.apply(runtimeID)

	replace := sync.OnceFunc(func() {
		if err := b.shoots.Delete(t.Context(), name, runtimeID); err != nil {
			t.Error(err)
		}

		b.apply("other-runtime")
	})

	late := gardener.New(pausing{b.garden.Client(), replace}, b.garden.Namespace())
	if err := late.Delete(t.Context(), name, runtimeID); err != nil {
		t.Errorf("a late deletion returned %v", err)
	}

	left := b.get()
	if _, confirmed := left.Annotations["confirmation.gardener.cloud/deletion"]; confirmed || left.DeletionTimestamp != nil {
		t.Errorf("the Shoot of the other runtime has the annotations %v and the deletion time %v", left.Annotations, left.DeletionTimestamp)
	}
}

func TestChangeOfDeletedShoot(t *testing.T) {
	b := newFixture(t)
	b.apply(runtimeID)
	b.addFinalizer()

	if err := b.shoots.Delete(t.Context(), name, runtimeID); err != nil {
		t.Fatal(err)
	}

	if err := b.shoots.Change(t.Context(), b.get(), b.order(runtimeID)); !failure.Is(err, failure.Conflict) {
		t.Errorf("got %v", err)
	}
}

func TestTidy(t *testing.T) {
	b := newFixture(t)

	for _, issuer := range []string{"https://first.example.com", "https://second.example.com"} {
		if err := b.shoots.Apply(t.Context(), b.trusting(issuer)); err != nil {
			t.Fatal(err)
		}
	}

	if names := b.configMaps(); len(names) != 2 {
		t.Fatalf("the project has ConfigMaps %v, want those of both orders", names)
	}

	if owners, err := b.shoots.ConfigMapOwners(t.Context()); err != nil || !slices.Equal(owners, []string{runtimeID}) {
		t.Errorf("got owners %v, %v", owners, err)
	}

	for _, c := range []struct {
		reason    string
		runtimeID string
		present   *gardencorev1beta1.Shoot
		want      int
	}{
		{"ConfigMaps of another runtime are kept", "runtime-2", nil, 2},
		{"ConfigMaps that the Shoot refers to are kept", runtimeID, b.get(), 1},
		{"without a Shoot all are deleted", runtimeID, nil, 0},
		{"missing ConfigMaps are not an error", runtimeID, nil, 0},
	} {
		if err := b.shoots.Tidy(t.Context(), c.runtimeID, c.present); err != nil {
			t.Fatalf("%s: %v", c.reason, err)
		}

		if names := b.configMaps(); len(names) != c.want {
			t.Errorf("%s: remaining ConfigMaps: %v, want %d", c.reason, names, c.want)
		}
	}
}
