package gardener_test

import (
	"slices"
	"strings"
	"testing"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/provisioner/shoot"
	"github.com/environment-broker/environment-broker/provisioner/spec"
)

// trusting is what the cluster of a runtime is made of that trusts an identity provider.
func (b bench) trusting(issuer string) *shoot.Objects {
	b.Helper()

	return b.orderWith(runtimeID, func(config *spec.Cluster) {
		config.OIDCConfig = &spec.OIDC{ClientID: "client", IssuerURL: issuer, UsernameClaim: "sub", UsernamePrefix: "-"}
	})
}

// beside are the names of the ConfigMaps that stand beside Shoots.
func (b bench) beside() []string {
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

func (b bench) change(read *gardencorev1beta1.Shoot, objects *shoot.Objects) {
	b.Helper()

	if err := b.shoots.Change(b.Context(), read, objects); err != nil {
		b.Fatal(err)
	}
}

func TestChange(t *testing.T) {
	b := newBench(t)
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

	if diff := cmp.Diff([]string{after.Spec.Kubernetes.KubeAPIServer.StructuredAuthentication.ConfigMapName}, b.beside()); diff != "" {
		t.Errorf("what the Shoot refers to is not what stands beside it, -want +got:\n%s", diff)
	}

	b.change(after, b.order(runtimeID))

	if server := b.get().Spec.Kubernetes.KubeAPIServer; server != nil && server.StructuredAuthentication != nil {
		t.Errorf("what is left out stays: %v", server)
	}
}

// TestPoolThatIsNotOrderedAnyMoreGoes: server-side apply removes only what it has written itself, so creation and change have to go the
// same way.
func TestPoolThatIsNotOrderedAnyMoreGoes(t *testing.T) {
	b := newBench(t)
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

// TestOrderThatIsCarriedOutAnew: between a creation that failed late, and the next one, Gardener may have maintained the cluster.
func TestOrderThatIsCarriedOutAnew(t *testing.T) {
	b := newBench(t)
	b.apply(runtimeID)

	maintained := b.get()
	maintained.Spec.Kubernetes.Version = "1.36.1"

	if err := b.garden.Client().Update(t.Context(), maintained); err != nil {
		t.Fatal(err)
	}

	b.apply(runtimeID)

	if got := b.get().Spec.Kubernetes.Version; got != "1.36.1" {
		t.Errorf("Kubernetes %s, want what Gardener has brought the cluster to", got)
	}
}

// TestLateChangeUndoesNothing: a replica that was frozen between reading and writing finds that others have gone on.
func TestLateChangeUndoesNothing(t *testing.T) {
	b := newBench(t)
	b.apply(runtimeID)
	read := b.get()

	newer := b.order(runtimeID)
	newer.Shoot.Spec.Provider.Workers[0].Maximum = 9
	b.change(read, newer)

	late := b.order(runtimeID)
	late.Shoot.Spec.Provider.Workers[0].Maximum = 5

	err := b.shoots.Change(t.Context(), read, late)
	if !failure.Is(err, failure.Transient) || !strings.Contains(failure.Of(err).Text, "changed in the meantime") {
		t.Errorf("the late change gives %v", err)
	}

	if most := b.get().Spec.Provider.Workers[0].Maximum; most != 9 {
		t.Errorf("there are at most %d machines, want the 9 of the newer change", most)
	}
}

func TestChangeOfWhatIsRemoved(t *testing.T) {
	b := newBench(t)
	b.apply(runtimeID)
	b.held()

	if err := b.shoots.Delete(t.Context(), name, runtimeID); err != nil {
		t.Fatal(err)
	}

	if err := b.shoots.Change(t.Context(), b.get(), b.order(runtimeID)); !failure.Is(err, failure.Conflict) {
		t.Errorf("got %v", err)
	}
}

func TestTidy(t *testing.T) {
	b := newBench(t)

	for _, issuer := range []string{"https://first.example.com", "https://second.example.com"} {
		if err := b.shoots.Apply(t.Context(), b.trusting(issuer)); err != nil {
			t.Fatal(err)
		}
	}

	if names := b.beside(); len(names) != 2 {
		t.Fatalf("beside the Shoot are %v, want what both orders refer to", names)
	}

	if owners, err := b.shoots.Beside(t.Context()); err != nil || !slices.Equal(owners, []string{runtimeID}) {
		t.Errorf("they are said to be of %v, %v", owners, err)
	}

	for _, c := range []struct {
		reason    string
		runtimeID string
		present   *gardencorev1beta1.Shoot
		want      int
	}{
		{"another runtime's are not touched", "runtime-2", nil, 2},
		{"what the Shoot refers to stays", runtimeID, b.get(), 1},
		{"without a Shoot nothing is needed", runtimeID, nil, 0},
		{"what is gone is no error", runtimeID, nil, 0},
	} {
		if err := b.shoots.Tidy(t.Context(), c.runtimeID, c.present); err != nil {
			t.Fatalf("%s: %v", c.reason, err)
		}

		if names := b.beside(); len(names) != c.want {
			t.Errorf("%s: left are %v, want %d", c.reason, names, c.want)
		}
	}
}
