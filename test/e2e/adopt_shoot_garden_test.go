//go:build garden

package e2e

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
	"github.com/environment-broker/environment-broker/internal/sandbox/kymarows"
	"github.com/environment-broker/environment-broker/provisioner/shoot"
	"github.com/environment-broker/environment-broker/test/harness"
)

// foreign returns a Shoot for an example cluster as another program would create it: with two worker pools that have names of
// their own, with fields that no order can set, and, on Azure, with a SecretBinding.
func (a adoption) foreign(number int) *gardencorev1beta1.Shoot {
	a.Helper()

	cluster := a.example(number)
	cluster.DNSSecret = ""

	created, err := cluster.Shoot(a.garden.Namespace())
	if err != nil {
		a.Fatal(err)
	}

	created.ObjectMeta = metav1.ObjectMeta{
		Name: "theirs-" + cluster.Provider, Namespace: created.Namespace, Labels: map[string]string{"team": "blue"},
		Annotations: map[string]string{"example.com/note": "theirs"},
	}
	spec := &created.Spec
	spec.Maintenance.TimeWindow = &gardencorev1beta1.MaintenanceTimeWindow{Begin: "020000+0100", End: "030000+0100"}
	spec.Kubernetes.Kubelet = &gardencorev1beta1.KubeletConfig{MaxPods: new(int32(99))}

	if cluster.Provider != "azure" {
		spec.CredentialsBindingName, spec.SecretBindingName = spec.SecretBindingName, nil //nolint:staticcheck // Old Shoots have it.
	}

	first := &spec.Provider.Workers[0]
	first.Name, first.Minimum = "machines", 1
	second := *first.DeepCopy()
	second.Name, second.Zones, second.Maximum, second.MaxSurge = "batch", second.Zones[:1], 4, new(intstr.FromInt32(2))
	spec.Provider.Workers = append(spec.Provider.Workers, second)

	return created
}

// adoptShoot sends the request of `ebctl adopt shoot`.
func adoptShoot(platform harness.Client, name string, order operatorapi.ShootAdoption, status int) (operatorapi.AdoptedShoot, string) {
	platform.Helper()

	reply := platform.Send(http.MethodPost, "/shoots/"+name+"/adopt", order, status)

	var found operatorapi.AdoptedShoot
	if status == http.StatusOK {
		if err := json.Unmarshal([]byte(reply.Raw), &found); err != nil {
			platform.Fatal(err)
		}
	}

	return found, reply.Raw
}

// TestAdoptShootOnLocalGarden turns another program's Shoots into instances. The first update must change exactly what the dry run
// has shown, and no update may lose a part of a Shoot's spec.
func TestAdoptShootOnLocalGarden(t *testing.T) {
	t.Parallel()

	a := newAdoption(t, 0)
	for number := range 4 {
		created := a.foreign(number)
		harness.Until(a, "the creation of a Shoot", func() bool { return a.garden.Create(t.Context(), created) == nil })
		a.await(created.Name)
	}

	shoots := func() map[string]*gardencorev1beta1.Shoot {
		found := map[string]*gardencorev1beta1.Shoot{}
		for _, each := range harness.Shoots(t, a.garden) {
			found[each.Spec.Provider.Type] = &each
		}

		return found
	}

	provisioner, _ := harness.StartProvisioner(t, a.garden, a.settings, logging.Discard())
	settings := harness.BrokerSettings(harness.Postgres(t, "broker"))
	settings.Provisioner.URL = provisioner
	settings.ExpirationPeriods = map[string]time.Duration{"aws": 0, "azure": 0, "gcp": 0, "sap-converged-cloud": 0}
	platform := harness.Client{TB: t, Endpoint: harness.StartBroker(t, settings, logging.Discard()).Endpoint}

	before := shoots()
	instances := map[string]operatorapi.AdoptedShoot{}
	plans := map[string]string{"aws": kymarows.PlanAWS, "azure": kymarows.PlanAzure, "gcp": kymarows.PlanGCP, "openstack": kymarows.PlanOpenStack}

	for provider, each := range before {
		order := operatorapi.ShootAdoption{Account: "ga-1", Subaccount: "sa-1", Plan: plans[provider], User: "anna@example.com", DryRun: true}
		found, _ := adoptShoot(platform, each.Name, order, http.StatusOK)

		if changed := shoots()[provider]; changed.Generation != each.Generation || len(changed.Annotations) != len(each.Annotations) {
			t.Errorf("%s: the dry run has changed the Shoot", provider)
		}

		order.DryRun, order.Generation = false, found.Generation
		order.Generation++
		adoptShoot(platform, each.Name, order, http.StatusConflict)

		order.Generation--

		instances[provider], _ = adoptShoot(platform, each.Name, order, http.StatusOK)
		if repeated, _ := adoptShoot(platform, each.Name, order, http.StatusOK); !repeated.Earlier || repeated.InstanceID != found.InstanceID {
			t.Errorf("%s: repeated: got %+v", provider, repeated)
		}

		order.Account = "ga-2"
		adoptShoot(platform, each.Name, order, http.StatusConflict)
	}

	adopted := shoots()

	for provider, each := range instances {
		if missing := lost(before[provider], adopted[provider]); len(missing) > 0 {
			t.Errorf("%s lost by the adoption:\n%s", provider, strings.Join(missing, "\n"))
		}

		platform.Update(each.InstanceID, map[string]any{"parameters": map[string]any{"autoScalerMax": 12}})
	}

	for provider, each := range instances {
		platform.WantSucceeded(each.InstanceID)

		after := shoots()[provider]
		if missing := lost(before[provider], after, "spec.provider.workers.machines.maximum", "spec.provider.workers.machines.minimum"); len(missing) > 0 {
			t.Errorf("%s lost by an update:\n%s", provider, strings.Join(missing, "\n"))
		}

		if pools := after.Spec.Provider.Workers; len(pools) != 2 || pools[0].Maximum != 12 || pools[0].Minimum != 3 || pools[1].Maximum != 4 {
			t.Errorf("%s has the worker pools %+v", provider, pools)
		}

		if len(each.OrderChanges) != 1 || each.OrderChanges[0].Path != "gardenerConfig.autoScalerMin" {
			t.Errorf("%s: the plan raises the minimum: got %+v", provider, each.OrderChanges)
		}

		wantPredicted(t, each.ShootChanges, before[provider], after, "spec.provider.workers[machines].maximum", "spec.provider.workers[machines].minimum",
			"metadata.annotations["+shoot.AnnotationInstanceID+"]")
	}

	for _, each := range instances {
		platform.Update(each.InstanceID, map[string]any{"context": map[string]any{"active": false}})
	}

	for _, each := range instances {
		platform.WantSucceeded(each.InstanceID)
		platform.Update(each.InstanceID, map[string]any{"context": map[string]any{"active": true}})
	}

	for provider, each := range instances {
		platform.WantSucceeded(each.InstanceID)

		resumed := shoots()[provider]
		if resumed.Spec.Provider.Workers[0].Maximum != 12 || !slices.Equal(resumed.Spec.Provider.Workers[0].Zones, before[provider].Spec.Provider.Workers[0].Zones) {
			t.Errorf("%s: the resumed Shoot has the pool %+v", provider, resumed.Spec.Provider.Workers[0])
		}

		platform.Delete(each.InstanceID, plans[provider])
	}

	for _, id := range slices.Sorted(maps.Keys(instances)) {
		platform.WantGone(instances[id].InstanceID)
	}

	if remaining := shoots(); len(remaining) != 0 {
		t.Errorf("%d Shoots remain", len(remaining))
	}
}

// TestAdoptShootRefusals checks each reason for which an adoption is rejected. A rejected adoption must change neither a Shoot nor
// a row.
func TestAdoptShootRefusals(t *testing.T) {
	t.Parallel()

	a := newAdoption(t, 0)

	alter := map[string]func(created *gardencorev1beta1.Shoot){
		"owned": func(created *gardencorev1beta1.Shoot) { created.Annotations[shoot.AnnotationRuntimeID] = "other" },
		"percent": func(created *gardencorev1beta1.Shoot) {
			created.Spec.Provider.Workers[0].MaxSurge = new(intstr.FromString("10%"))
		},
		"asleep": func(created *gardencorev1beta1.Shoot) {
			created.Spec.Hibernation = &gardencorev1beta1.Hibernation{Enabled: new(true)}
		},
		"nobinding": func(created *gardencorev1beta1.Shoot) { created.Spec.SecretBindingName = new("alone") }, //nolint:staticcheck // Old Shoots have it.
		"fine":      func(*gardencorev1beta1.Shoot) {},
	}
	reasons := map[string]string{
		"owned": "the Shoot \\\"owned\\\" belongs to the runtime other, which", "percent": "maxSurge of the worker pool machines is 10%", "asleep": "hibernated",
		"nobinding": "there is no CredentialsBinding", "fine": "several plans cover provider azure",
	}

	a.secretBinding("alone", "azure")

	for name, change := range alter {
		created := a.foreign(1)
		created.Name = name
		change(created)
		harness.Until(a, "the creation of a Shoot", func() bool { return a.garden.Create(t.Context(), created) == nil })
		a.await(name)
	}

	provisioner, _ := harness.StartProvisioner(t, a.garden, a.settings, logging.Discard())
	settings := harness.BrokerSettings(harness.Postgres(t, "broker"))
	settings.Provisioner.URL = provisioner
	platform := harness.Client{TB: t, Endpoint: harness.StartBroker(t, settings, logging.Discard()).Endpoint}

	versions := func() map[string]int64 {
		found := map[string]int64{}
		for _, each := range harness.Shoots(t, a.garden, client.MatchingLabels{"team": "blue"}) {
			found[each.Name] = each.Generation
		}

		return found
	}
	before := versions()

	for name, reason := range reasons {
		if _, text := adoptShoot(platform, name, operatorapi.ShootAdoption{Account: "ga-1"}, http.StatusConflict); !strings.Contains(text, reason) {
			t.Errorf("%s: want %q in %s", name, reason, text)
		}
	}

	adoptShoot(platform, "missing", operatorapi.ShootAdoption{Account: "ga-1"}, http.StatusNotFound)
	adoptShoot(platform, "fine", operatorapi.ShootAdoption{}, http.StatusBadRequest)

	if after := versions(); !maps.Equal(before, after) {
		t.Errorf("a refusal must change nothing: had %v, have %v", before, after)
	}
}
