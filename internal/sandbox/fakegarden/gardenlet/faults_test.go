package gardenlet_test

import (
	"testing"
	"testing/synctest"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/environment-broker/environment-broker/internal/sandbox/fakegarden/gardenlet"
)

func (s *fixture) retry(name string) {
	s.Helper()
	s.change(name, func(shoot *gardencorev1beta1.Shoot) {
		metav1.SetMetaDataAnnotation(&shoot.ObjectMeta, v1beta1constants.GardenerOperation, v1beta1constants.ShootOperationRetry)
	})
}

func TestFailOnceThenRetry(t *testing.T) {
	withGardenlet(t, func(s *fixture) {
		s.inject(map[string]string{gardenlet.FaultDefault: string(gardenlet.FaultFailOnce)})
		s.create("c-1")
		s.pass(time.Hour)
		s.expect("c-1", "Create Failed 50")
		if failed := s.get("c-1"); len(failed.Status.LastErrors) != 1 {
			t.Errorf("unexpected errors of a failed creation: %+v", failed.Status.LastErrors)
		}
		s.retry("c-1")
		s.expect("c-1", "Create Processing 0")
		s.pass(creation)
		s.expect("c-1", "Create Succeeded 100")
		orders := &corev1.ConfigMap{}
		if err := s.client.Get(s.Context(), client.ObjectKey{Namespace: s.namespace, Name: gardenlet.FaultsConfigMap}, orders); err != nil {
			t.Fatal(err)
		}
		want := map[string]string{"default": "fail-once", "c-1": "failed-once"}
		if diff := cmp.Diff(want, orders.Data); diff != "" {
			t.Errorf("faults -want +got:\n%s", diff)
		}
	})
}

func TestFailOnceThenChange(t *testing.T) {
	withGardenlet(t, func(s *fixture) {
		s.inject(map[string]string{"c-1": string(gardenlet.FaultFailOnce)})
		s.create("c-1")
		s.pass(creation)
		s.expect("c-1", "Create Failed 50")
		s.change("c-1", func(shoot *gardencorev1beta1.Shoot) { shoot.Spec.Provider.Workers[0].Maximum++ })
		s.pass(creation)
		s.expect("c-1", "Create Succeeded 100")
	})
}

func TestFailOnceThenRecreate(t *testing.T) {
	withGardenlet(t, func(s *fixture) {
		s.inject(map[string]string{"c-1": string(gardenlet.FaultFailOnce)})
		s.create("c-1")
		s.pass(creation)
		s.expect("c-1", "Create Failed 50")
		s.delete("c-1")
		s.pass(deletion)
		s.create("c-1")
		s.pass(creation)
		s.expect("c-1", "Create Succeeded 100")
	})
}

func TestStuckUntilTheFaultIsRemoved(t *testing.T) {
	withGardenlet(t, func(s *fixture) {
		s.inject(map[string]string{"c-1": string(gardenlet.FaultStuck)})
		s.create("c-1")
		s.create("other")
		s.pass(time.Hour)
		s.expect("c-1", "Create Processing 40")
		s.expect("other", "Create Succeeded 100")
		s.inject(nil)
		s.pass(creation)
		s.expect("c-1", "Create Succeeded 100")
	})
}

func TestRateLimitPasses(t *testing.T) {
	withGardenlet(t, func(s *fixture) {
		s.inject(map[string]string{"c-1": string(gardenlet.FaultRateLimit)})
		s.create("c-1")
		s.pass(creation)
		s.expect("c-1", "Create Error 0")
		s.hasCode("c-1", gardencorev1beta1.ErrorInfraRateLimitsExceeded)
		s.pass(2 * creation)
		s.expect("c-1", "Create Succeeded 100")
		if errors := s.get("c-1").Status.LastErrors; len(errors) > 0 {
			t.Errorf("a successful creation reports errors: %+v", errors)
		}
	})
}

func TestQuotaStaysExceeded(t *testing.T) {
	withGardenlet(t, func(s *fixture) {
		s.inject(map[string]string{"c-1": string(gardenlet.FaultQuota)})
		s.create("c-1")
		for range 2 {
			s.pass(creation)
			s.expect("c-1", "Create Failed 50")
			s.hasCode("c-1", gardencorev1beta1.ErrorInfraQuotaExceeded)
			s.retry("c-1")
		}
	})
}

func TestUnknownFaultIsIgnored(t *testing.T) {
	withGardenlet(t, func(s *fixture) {
		s.inject(map[string]string{"c-1": "explode"})
		s.create("c-1")
		s.pass(creation)
		s.expect("c-1", "Create Succeeded 100")
	})
}

func TestFaultsSpareDeletions(t *testing.T) {
	withGardenlet(t, func(s *fixture) {
		s.inject(map[string]string{gardenlet.FaultDefault: string(gardenlet.FaultStuck)})
		s.create("c-1")
		s.pass(creation)
		s.delete("c-1")
		s.pass(deletion)
		synctest.Wait()
		if !s.gone(&gardencorev1beta1.Shoot{}, "c-1") {
			t.Error("the shoot still exists")
		}
	})
}

func (s *fixture) hasCode(name string, code gardencorev1beta1.ErrorCode) {
	s.Helper()
	errors := s.get(name).Status.LastErrors
	if len(errors) != 1 || len(errors[0].Codes) != 1 || errors[0].Codes[0] != code {
		s.Errorf("got errors %+v, want one with code %s", errors, code)
	}
}
