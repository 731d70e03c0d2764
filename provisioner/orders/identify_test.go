package orders_test

import (
	"strings"
	"testing"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/provisioner/orders"
	"github.com/environment-broker/environment-broker/provisioner/shoot"
	"github.com/environment-broker/environment-broker/provisioner/spec"
)

// lostShoot returns a Shoot of the tenant's instance i-1, modified by change.
func lostShoot(change func(*metav1.ObjectMeta)) *gardencorev1beta1.Shoot {
	meta := metav1.ObjectMeta{
		Name:   "c-lost",
		Labels: map[string]string{shoot.LabelAccount: "tenant"},
		Annotations: map[string]string{
			shoot.AnnotationRuntimeID: "lost-runtime", shoot.AnnotationInstanceID: "i-1", shoot.AnnotationAccount: "original",
		},
	}
	change(&meta)

	return &gardencorev1beta1.Shoot{ObjectMeta: meta}
}

// orderOf returns an order for the lost Shoot. An empty instance omits the label.
func orderOf(instance string) spec.Runtime {
	wanted := order("c-lost")
	if instance != "" {
		wanted.Metadata.Labels = map[string]any{spec.LabelInstance: instance}
	}

	return wanted
}

// TestLostRuntime repeats orders whose Shoot exists and whose rows the database has lost.
func TestLostRuntime(t *testing.T) {
	owner := orders.Caller{Tenant: "tenant", OriginalTenant: "original"}
	same := func(*metav1.ObjectMeta) {}

	cases := map[string]struct {
		reason   string
		change   func(*metav1.ObjectMeta)
		caller   orders.Caller
		instance string
		refused  string
	}{
		"same instance":     {"the order takes over the Shoot", same, owner, "i-1", ""},
		"another instance":  {"one Shoot has one instance", same, owner, "i-2", "does not belong to this tenant and instance"},
		"no instance":       {"a name alone proves nothing", same, owner, "", "does not belong to this tenant and instance"},
		"another tenant":    {"tenants cannot take over clusters", same, orders.Caller{Tenant: "thief", OriginalTenant: "original"}, "i-1", "does not belong"},
		"similar tenant":    {"labels of tenants may collide", same, orders.Caller{Tenant: "tenant", OriginalTenant: "thief"}, "i-1", "does not belong"},
		"unknown instance":  {"earlier versions have not recorded the instance", func(m *metav1.ObjectMeta) { delete(m.Annotations, shoot.AnnotationInstanceID) }, owner, "", "does not belong"},
		"foreign Shoot":     {"other clients create Shoots, too", func(m *metav1.ObjectMeta) { delete(m.Annotations, shoot.AnnotationRuntimeID) }, owner, "i-1", "does not belong"},
		"deleted by others": {"a deletion cannot be undone", func(m *metav1.ObjectMeta) { m.DeletionTimestamp = &metav1.Time{Time: time.Now()} }, owner, "i-1", "is being deleted"},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			onBothDatabases(t, func(f *fixture) {
				f.lost = lostShoot(c.change)

				status, err := f.service.Provision(f.Context(), c.caller, orderOf(c.instance))
				if c.refused == "" {
					if err != nil || status.RuntimeID != "lost-runtime" {
						f.Errorf("%s: got runtime %q, %v", c.reason, status.RuntimeID, err)
					}

					return
				}

				got := failure.Of(err)
				if got.Kind != failure.Conflict || got.Reason != failure.ReasonAlreadyExists || !strings.Contains(got.Text, c.refused) {
					f.Errorf("%s: got %v", c.reason, err)
				}

				if f.count("runtimes") != 0 || f.count("operations") != 0 {
					f.Errorf("%s: the rejected order has left rows", c.reason)
				}
			})
		})
	}
}

func TestLostRuntimeIsKnownOnce(t *testing.T) {
	onBothDatabases(t, func(f *fixture) {
		f.lost = lostShoot(func(m *metav1.ObjectMeta) { delete(m.Annotations, shoot.AnnotationAccount) })

		first, err := f.service.Provision(f.Context(), caller("tenant", "first"), orderOf("i-1"))
		if err != nil {
			f.Fatal(err)
		}

		second, err := f.service.Provision(f.Context(), caller("tenant", "second"), orderOf("i-1"))
		if err != nil || second.ID != first.ID || second.RuntimeID != "lost-runtime" || f.count("runtimes") != 1 {
			f.Errorf("the repeated order is %+v, %v, want %+v", second, err, first)
		}

		if err := f.store.MarkDeleted(f.Context(), "lost-runtime", time.Now()); err != nil {
			f.Fatal(err)
		}

		if _, err := f.service.Provision(f.Context(), caller("tenant", "third"), orderOf("i-1")); !failure.Is(err, failure.Conflict) ||
			!strings.Contains(err.Error(), "recorded as deleted") {
			f.Errorf("a deleted runtime is taken over: %v", err)
		}
	})
}

func TestUnreadableShootIsNotOrderedAgain(t *testing.T) {
	onBothDatabases(t, func(f *fixture) {
		f.getError = failure.New(failure.Transient, "Gardener is unavailable")

		if _, err := f.service.Provision(f.Context(), caller("tenant", "key"), orderOf("i-1")); !failure.Is(err, failure.Transient) {
			f.Errorf("it is unknown whether the cluster exists, but the order returns %v", err)
		}
	})
}
