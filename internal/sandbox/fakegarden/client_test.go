package fakegarden_test

import (
	"testing"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/sirupsen/logrus/hooks/test"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/environment-broker/environment-broker/internal/sandbox/fakegarden"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakegarden/conformance"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakegarden/gardenlet"
)

// open opens a garden without running its gardenlet.
func open(t *testing.T, dir string) client.WithWatch {
	t.Helper()
	log, _ := test.NewNullLogger()
	memory, err := fakegarden.Open(t.Context(), fakegarden.Options{Dir: dir, ClusterCreation: time.Second, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	return memory.Client()
}

func TestOfferedConfigurationsAreAdmitted(t *testing.T) {
	c := open(t, t.TempDir())
	profiles := &gardencorev1beta1.CloudProfileList{}
	if err := c.List(t.Context(), profiles); err != nil {
		t.Fatal(err)
	}
	for _, profile := range profiles.Items {
		for _, region := range profile.Spec.Regions {
			shoot := conformance.Shoot(gardenlet.Namespace(fakegarden.DefaultProject), "c-1")
			shoot.Spec.CloudProfile.Name = profile.Name
			shoot.Spec.CredentialsBindingName = new(profile.Spec.Type)
			shoot.Spec.Provider.Type = profile.Spec.Type
			shoot.Spec.Region = region.Name
			like := shoot.Spec.Provider.Workers[0]
			shoot.Spec.Provider.Workers = nil
			for i, machine := range profile.Spec.MachineTypes {
				worker := like.DeepCopy()
				worker.Name = "worker-" + string(rune('a'+i))
				worker.Machine.Type = machine.Name
				if kinds := profile.Spec.VolumeTypes; len(kinds) > 0 {
					worker.Volume.Type = new(kinds[i%len(kinds)].Name)
				} else {
					worker.Volume = nil
				}
				worker.Zones = nil
				for _, zone := range region.Zones {
					worker.Zones = append(worker.Zones, zone.Name)
				}
				shoot.Spec.Provider.Workers = append(shoot.Spec.Provider.Workers, *worker)
			}
			if err := c.Create(t.Context(), shoot); err != nil {
				t.Errorf("creating a shoot of profile %s in region %s: %v", profile.Name, region.Name, err)
				continue
			}
			confirmAndDelete(t, c, shoot)
		}
	}
}

func confirmAndDelete(t *testing.T, c client.Client, shoot *gardencorev1beta1.Shoot) {
	t.Helper()
	metav1.SetMetaDataAnnotation(&shoot.ObjectMeta, "confirmation.gardener.cloud/deletion", "true")
	if err := c.Update(t.Context(), shoot); err != nil {
		t.Fatal(err)
	}
	if err := c.Delete(t.Context(), shoot); err != nil {
		t.Fatal(err)
	}
}

func TestDefaults(t *testing.T) {
	c := open(t, t.TempDir())
	shoot := conformance.Shoot(gardenlet.Namespace(fakegarden.DefaultProject), "c-1")
	shoot.Spec.Kubernetes.Version = "1.35"
	if err := c.Create(t.Context(), shoot); err != nil {
		t.Fatal(err)
	}
	worker := shoot.Spec.Provider.Workers[0]
	for what, right := range map[string]bool{
		"purpose evaluation":        *shoot.Spec.Purpose == gardencorev1beta1.ShootPurposeEvaluation,
		"newest patch of the minor": shoot.Spec.Kubernetes.Version == "1.35.4",
		"newest image":              worker.Machine.Image.Name == "gardenlinux" && *worker.Machine.Image.Version == "1877.2.0",
		"architecture":              *worker.Machine.Architecture == "amd64",
		"container runtime":         worker.CRI.Name == gardencorev1beta1.CRINameContainerD,
		"maintenance window":        shoot.Spec.Maintenance.TimeWindow != nil,
		"creator":                   shoot.Annotations["gardener.cloud/created-by"] == "garden",
		"generation":                shoot.Generation == 1,
	} {
		if !right {
			t.Errorf("%s differs from Gardener's default: %+v", what, shoot.Spec)
		}
	}
}

func TestGeneration(t *testing.T) {
	c := open(t, t.TempDir())
	shoot := conformance.Shoot(gardenlet.Namespace(fakegarden.DefaultProject), "c-1")
	shoot.Finalizers = []string{"test/holds"}
	if err := c.Create(t.Context(), shoot); err != nil {
		t.Fatal(err)
	}
	failed := func(shoot *gardencorev1beta1.Shoot) {
		shoot.Status.LastOperation = &gardencorev1beta1.LastOperation{State: gardencorev1beta1.LastOperationStateFailed}
	}
	tests := []struct {
		reason string
		status bool
		change func(*gardencorev1beta1.Shoot)
		raised bool
	}{
		{"a change of labels does not increment the generation", false, func(shoot *gardencorev1beta1.Shoot) { shoot.Labels = map[string]string{"a": "b"} }, false},
		{"a change of the spec increments the generation", false, func(shoot *gardencorev1beta1.Shoot) { shoot.Spec.Provider.Workers[0].Maximum++ }, true},
		{"a change of the status does not increment the generation", true, failed, false},
		{"a retry of a failed shoot increments the generation", false, func(shoot *gardencorev1beta1.Shoot) {
			metav1.SetMetaDataAnnotation(&shoot.ObjectMeta, "gardener.cloud/operation", "retry")
		}, true},
	}
	for _, test := range tests {
		before := shoot.Generation
		test.change(shoot)
		var err error
		if test.status {
			err = c.Status().Update(t.Context(), shoot)
		} else {
			err = c.Update(t.Context(), shoot)
		}
		if err != nil {
			t.Fatalf("%s: %v", test.reason, err)
		}
		if raised := shoot.Generation > before; raised != test.raised {
			t.Errorf("%s: the generation changed from %d to %d", test.reason, before, shoot.Generation)
		}
	}
	if operation, left := shoot.Annotations["gardener.cloud/operation"]; left {
		t.Errorf("the annotation %q was not removed", operation)
	}
	before := shoot.Generation
	confirmAndDelete(t, c, shoot)
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(shoot), shoot); err != nil {
		t.Fatal(err)
	}
	if shoot.Generation != before+1 {
		t.Errorf("a deletion must increment the generation by 1: got %d, then %d", before, shoot.Generation)
	}
	deleted := shoot.DeletionTimestamp
	if err := c.Delete(t.Context(), shoot); err != nil {
		t.Fatal(err)
	}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(shoot), shoot); err != nil || !shoot.DeletionTimestamp.Equal(deleted) {
		t.Errorf("a second deletion changed the deletion timestamp: %s, then %s (%v)", deleted, shoot.DeletionTimestamp, err)
	}
}

func TestStatusCannotBeSetWithTheSpec(t *testing.T) {
	c := open(t, t.TempDir())
	shoot := conformance.Shoot(gardenlet.Namespace(fakegarden.DefaultProject), "c-1")
	shoot.Status.TechnicalID = "chosen"
	if err := c.Create(t.Context(), shoot); err != nil {
		t.Fatal(err)
	}
	shoot.Status.TechnicalID = "chosen"
	if err := c.Update(t.Context(), shoot); err != nil {
		t.Fatal(err)
	}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(shoot), shoot); err != nil || shoot.Status.TechnicalID != "" {
		t.Errorf("a change of the spec set the technical ID %q (%v)", shoot.Status.TechnicalID, err)
	}
}

func TestWatchContinuesAList(t *testing.T) {
	c := open(t, t.TempDir())
	namespace := gardenlet.Namespace(fakegarden.DefaultProject)
	list := &gardencorev1beta1.ShootList{}
	if err := c.List(t.Context(), list, client.InNamespace(namespace)); err != nil {
		t.Fatal(err)
	}
	if err := c.Create(t.Context(), conformance.Shoot(namespace, "between")); err != nil {
		t.Fatal(err)
	}
	watching, err := c.Watch(t.Context(), &gardencorev1beta1.ShootList{}, &client.ListOptions{
		Namespace: namespace, Raw: &metav1.ListOptions{ResourceVersion: list.ResourceVersion},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer watching.Stop()
	if event := <-watching.ResultChan(); event.Object.(client.Object).GetName() != "between" {
		t.Errorf("got %v, want the object created between list and watch", event)
	}
}

func TestReopenKeepsObjects(t *testing.T) {
	dir := t.TempDir()
	c := open(t, dir)
	namespace := gardenlet.Namespace(fakegarden.DefaultProject)
	faults := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "gardenlet-faults"}}
	if err := c.Create(t.Context(), faults); err != nil {
		t.Fatal(err)
	}
	profile := &gardencorev1beta1.CloudProfile{}
	if err := c.Get(t.Context(), client.ObjectKey{Name: "aws"}, profile); err != nil {
		t.Fatal(err)
	}
	before := profile.ResourceVersion

	c = open(t, dir)
	if err := c.Get(t.Context(), client.ObjectKey{Name: "aws"}, profile); err != nil || profile.ResourceVersion != before {
		t.Errorf("reopening the garden changed a profile: %s, then %s (%v)", before, profile.ResourceVersion, err)
	}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(faults), faults); err != nil {
		t.Errorf("reopening the garden lost an object: %v", err)
	}
}

func TestUnknownSubresources(t *testing.T) {
	c := open(t, t.TempDir())
	shoot := conformance.Shoot(gardenlet.Namespace(fakegarden.DefaultProject), "c-1")
	if err := c.Create(t.Context(), shoot); err != nil {
		t.Fatal(err)
	}
	for what, err := range map[string]error{
		"create": c.SubResource("viewerkubeconfig").Create(t.Context(), shoot, &corev1.Secret{}),
		"update": c.SubResource("binding").Update(t.Context(), shoot),
		"patch":  c.SubResource("binding").Patch(t.Context(), shoot, client.MergeFrom(shoot)),
	} {
		if !apierrors.IsNotFound(err) {
			t.Errorf("%s of an unknown subresource: %v", what, err)
		}
	}
}

func TestUpdateNeedsAResourceVersion(t *testing.T) {
	c := open(t, t.TempDir())
	shoot := conformance.Shoot(gardenlet.Namespace(fakegarden.DefaultProject), "c-1")
	if err := c.Create(t.Context(), shoot); err != nil {
		t.Fatal(err)
	}
	shoot.ResourceVersion = ""
	if err := c.Update(t.Context(), shoot); !apierrors.IsInvalid(err) {
		t.Errorf("an update of a shoot without a resource version must be invalid, got: %v", err)
	}
}
