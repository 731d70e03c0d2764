package gardenlet_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	"github.com/google/go-cmp/cmp"
	"github.com/sirupsen/logrus/hooks/test"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/environment-broker/environment-broker/internal/sandbox/fakegarden"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakegarden/conformance"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakegarden/gardenlet"
)

const (
	creation = 10 * time.Second
	deletion = 4 * time.Second
	// rounding is how much earlier than expected an operation can end, because its start is stored in whole seconds.
	rounding = time.Second
)

// fakeRuntimes records which runtimes are running.
type fakeRuntimes struct {
	mu      sync.Mutex
	address string
	running map[string]bool
	// broken is the runtime that fails to start; slow is the runtime that takes a long time to start.
	broken, slow string
}

func (r *fakeRuntimes) Start(ctx context.Context, technicalID string, clientCA []byte) (gardenlet.Endpoint, error) {
	switch {
	case len(clientCA) == 0:
		return gardenlet.Endpoint{}, errors.New("no client authority")
	case technicalID == r.broken:
		return gardenlet.Endpoint{}, errors.New("broken")
	case technicalID == r.slow:
		select {
		case <-ctx.Done():
			return gardenlet.Endpoint{}, ctx.Err()
		case <-time.After(time.Hour):
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.running[technicalID] = true
	return gardenlet.Endpoint{URL: r.address + "/" + technicalID, CA: []byte("authority of " + r.address)}, nil
}

func (r *fakeRuntimes) Stop(_ context.Context, technicalID string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.running, technicalID)
	return nil
}

func (r *fakeRuntimes) runs(technicalID string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.running[technicalID]
}

// fixture is a garden with a gardenlet that runs in fake time.
type fixture struct {
	*testing.T

	client    client.WithWatch
	namespace string
	runtimes  *fakeRuntimes
	stop      func()
}

func withGardenlet(t *testing.T, run func(fixture *fixture)) {
	t.Helper()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		log, _ := test.NewNullLogger()
		memory, err := fakegarden.Open(t.Context(), fakegarden.Options{Dir: dir, Log: log})
		if err != nil {
			t.Fatal(err)
		}
		fixture := &fixture{T: t, client: memory.Client(), namespace: memory.Namespace()}
		fixture.restart("https://first")
		defer func() { fixture.stop() }()
		run(fixture)
	})
}

// restart replaces the gardenlet and the runtimes with new ones that have no state.
func (s *fixture) restart(address string) {
	s.Helper()
	if s.stop != nil {
		s.stop()
	}
	s.runtimes = &fakeRuntimes{address: address, running: map[string]bool{}}
	s.run()
}

func (s *fixture) run() {
	s.Helper()
	log, _ := test.NewNullLogger()
	worker, err := gardenlet.New(gardenlet.Options{
		Client:    s.client,
		Project:   fakegarden.DefaultProject,
		Runtimes:  s.runtimes,
		Creation:  creation,
		Deletion:  deletion,
		DNSDomain: fakegarden.Domain,
		Log:       log,
	})
	if err != nil {
		s.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(s.Context()))
	done := make(chan error, 1)
	go func() { done <- worker.Run(ctx) }()
	s.stop = func() {
		cancel()
		if err := <-done; err != nil {
			s.Errorf("running the gardenlet: %v", err)
		}
	}
}

// pass advances the time and waits until all due work is complete.
func (s *fixture) pass(duration time.Duration) {
	time.Sleep(duration)
	synctest.Wait()
}

func (s *fixture) create(name string) {
	s.Helper()
	if err := s.client.Create(s.Context(), conformance.Shoot(s.namespace, name)); err != nil {
		s.Fatal(err)
	}
	synctest.Wait()
}

func (s *fixture) get(name string) *gardencorev1beta1.Shoot {
	s.Helper()
	shoot := &gardencorev1beta1.Shoot{}
	if err := s.client.Get(s.Context(), client.ObjectKey{Namespace: s.namespace, Name: name}, shoot); err != nil {
		s.Fatal(err)
	}
	return shoot
}

func (s *fixture) change(name string, change func(*gardencorev1beta1.Shoot)) {
	s.Helper()
	shoot := s.get(name)
	before := shoot.DeepCopy()
	change(shoot)
	if err := s.client.Patch(s.Context(), shoot, client.MergeFrom(before)); err != nil {
		s.Fatal(err)
	}
	synctest.Wait()
}

func (s *fixture) delete(name string) {
	s.Helper()
	s.change(name, func(shoot *gardencorev1beta1.Shoot) {
		metav1.SetMetaDataAnnotation(&shoot.ObjectMeta, v1beta1constants.ConfirmationDeletion, "true")
	})
	if err := s.client.Delete(s.Context(), s.get(name)); err != nil {
		s.Fatal(err)
	}
	synctest.Wait()
}

func (s *fixture) gone(object client.Object, name string) bool {
	s.Helper()
	return apierrors.IsNotFound(s.client.Get(s.Context(), client.ObjectKey{Namespace: s.namespace, Name: name}, object))
}

// inject injects faults and removes all earlier ones.
func (s *fixture) inject(faults map[string]string) {
	s.Helper()
	orders := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: gardenlet.FaultsConfigMap}, Data: faults,
	}
	err := s.client.Create(s.Context(), orders)
	if apierrors.IsAlreadyExists(err) {
		orders.ResourceVersion = ""
		err = s.client.Update(s.Context(), orders)
	}
	if err != nil {
		s.Fatal(err)
	}
}

// expect checks the last operation of a Shoot, formatted like "Create Processing 40".
func (s *fixture) expect(name, want string) {
	s.Helper()
	last := s.get(name).Status.LastOperation
	if last == nil {
		s.Fatalf("%s has no last operation, want %q", name, want)
	}
	if got := fmt.Sprint(last.Type, " ", last.State, " ", last.Progress); got != want {
		s.Fatalf("%s: got %q, want %q (%s)", name, got, want, last.Description)
	}
}

func TestCreationTakesItsTime(t *testing.T) {
	withGardenlet(t, func(s *fixture) {
		s.create("c-1")
		s.expect("c-1", "Create Processing 0")
		s.pass(creation/2 + rounding/2)
		s.expect("c-1", "Create Processing 40")
		if len(s.get("c-1").Status.AdvertisedAddresses) > 0 {
			t.Error("a runtime has an address before it is created")
		}
		s.pass(creation / 2)
		s.expect("c-1", "Create Succeeded 100")
		shoot := s.get("c-1")
		want := []gardencorev1beta1.ShootAdvertisedAddress{{Name: "external", URL: "https://first/shoot--local--c-1"}}
		if diff := cmp.Diff(want, shoot.Status.AdvertisedAddresses); diff != "" {
			t.Errorf("addresses -want +got:\n%s", diff)
		}
		if *shoot.Spec.DNS.Domain != "c-1.local.runtimes.test" {
			t.Errorf("unexpected domain %s", *shoot.Spec.DNS.Domain)
		}
		if shoot.Status.ObservedGeneration != shoot.Generation {
			t.Errorf("generation %d, observed %d", shoot.Generation, shoot.Status.ObservedGeneration)
		}
	})
}

func TestChangeIsReconciled(t *testing.T) {
	withGardenlet(t, func(s *fixture) {
		s.create("c-1")
		s.pass(creation)
		s.change("c-1", func(shoot *gardencorev1beta1.Shoot) { shoot.Spec.Provider.Workers[0].Maximum++ })
		s.expect("c-1", "Reconcile Processing 0")
		s.pass(creation)
		s.expect("c-1", "Reconcile Succeeded 100")
		versionBefore := s.get("c-1").ResourceVersion
		s.change("c-1", func(shoot *gardencorev1beta1.Shoot) { metav1.SetMetaDataLabel(&shoot.ObjectMeta, "color", "blue") })
		s.pass(time.Hour)
		s.expect("c-1", "Reconcile Succeeded 100")
		if before, after := s.get("c-1").Generation, s.get("c-1").Status.ObservedGeneration; before != after || versionBefore == "" {
			t.Errorf("a change of labels changed the observed generation from %d to %d", before, after)
		}
	})
}

func TestIdleShootIsNotWritten(t *testing.T) {
	withGardenlet(t, func(s *fixture) {
		s.create("c-1")
		s.pass(creation)
		before := s.get("c-1").ResourceVersion
		s.pass(time.Hour)
		if after := s.get("c-1").ResourceVersion; after != before {
			t.Errorf("an idle shoot was written: resource version %s, then %s", before, after)
		}
	})
}

func TestDeletionLeavesNothing(t *testing.T) {
	withGardenlet(t, func(s *fixture) {
		s.create("c-1")
		s.pass(creation)
		s.delete("c-1")
		s.expect("c-1", "Delete Processing 0")
		s.pass(deletion)
		for name, object := range map[string]client.Object{
			"c-1":            &gardencorev1beta1.Shoot{},
			"c-1.ca-cluster": &corev1.ConfigMap{},
			"c-1.ca-client":  &gardencorev1beta1.InternalSecret{},
		} {
			if !s.gone(object, name) {
				t.Errorf("%T %s still exists", object, name)
			}
		}
		if s.runtimes.runs("shoot--local--c-1") {
			t.Error("the runtime is still running")
		}
	})
}

func TestDeletionDuringCreation(t *testing.T) {
	withGardenlet(t, func(s *fixture) {
		s.create("c-1")
		s.pass(creation / 2)
		s.delete("c-1")
		s.pass(deletion)
		if !s.gone(&gardencorev1beta1.Shoot{}, "c-1") {
			t.Error("the shoot still exists")
		}
	})
}

func TestRestartResumes(t *testing.T) {
	withGardenlet(t, func(s *fixture) {
		s.create("ready")
		s.pass(creation)
		s.create("underway")
		s.pass(creation/2 + rounding/2)

		s.restart("https://second")
		synctest.Wait()

		if !s.runtimes.runs("shoot--local--ready") {
			t.Error("a ready runtime is not running after the restart")
		}
		if url := s.get("ready").Status.AdvertisedAddresses[0].URL; url != "https://second/shoot--local--ready" {
			t.Errorf("the advertised address is still %s", url)
		}
		authority := &corev1.ConfigMap{}
		if err := s.client.Get(s.Context(), client.ObjectKey{Namespace: s.namespace, Name: "ready.ca-cluster"}, authority); err != nil {
			t.Fatal(err)
		}
		if authority.Data["ca.crt"] != "authority of https://second" {
			t.Errorf("the authority is still %q", authority.Data["ca.crt"])
		}
		s.expect("underway", "Create Processing 40")
		s.pass(creation / 2)
		s.expect("underway", "Create Succeeded 100")
		s.expect("ready", "Create Succeeded 100")
	})
}

func TestDowntimeCounts(t *testing.T) {
	withGardenlet(t, func(s *fixture) {
		s.create("creating")
		s.create("deleting")
		s.pass(creation / 2)
		s.delete("deleting")
		s.stop()
		time.Sleep(time.Hour)
		s.run()
		synctest.Wait()
		s.expect("creating", "Create Succeeded 100")
		if !s.gone(&gardencorev1beta1.Shoot{}, "deleting") {
			t.Error("the deleted shoot still exists")
		}
	})
}

func TestHundredsAtOnceDoNotWaitForOne(t *testing.T) {
	withGardenlet(t, func(s *fixture) {
		s.runtimes.slow = "shoot--local--slow"
		s.runtimes.broken = "shoot--local--broken"
		s.create("slow")
		s.create("broken")
		const many = 60
		for i := range many {
			if err := s.client.Create(s.Context(), conformance.Shoot(s.namespace, fmt.Sprintf("c-%d", i))); err != nil {
				t.Fatal(err)
			}
		}
		s.pass(creation)
		for i := range many {
			s.expect(fmt.Sprintf("c-%d", i), "Create Succeeded 100")
		}
		s.expect("slow", "Create Processing 80")
		s.expect("broken", "Create Processing 80")
	})
}
