//nolint:staticcheck // These tests are about fields that are deprecated.
package fakegarden_test

import (
	"strings"
	"testing"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/environment-broker/environment-broker/internal/sandbox/fakegarden"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakegarden/conformance"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakegarden/gardenlet"
)

// Package conformance tests most rules of the API server. The tests in this file cover rare changes, and fields of Shoots that
// Gardener accepts only up to Kubernetes 1.33.

// deprecatedShoot returns a Shoot with Kubernetes 1.33 and fields that Gardener rejects for later versions.
func deprecatedShoot(t *testing.T, c client.Client, namespace string) *gardencorev1beta1.Shoot {
	t.Helper()
	binding := &gardencorev1beta1.SecretBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "old"},
		Provider:   &gardencorev1beta1.SecretBindingProvider{Type: "aws"},
		SecretRef:  corev1.SecretReference{Namespace: namespace, Name: "aws"},
	}
	if err := c.Create(t.Context(), binding); err != nil {
		t.Fatal(err)
	}
	shoot := conformance.Shoot(namespace, "c-1")
	shoot.Spec.Kubernetes.Version = "1.33.11"
	shoot.Spec.CloudProfile, shoot.Spec.CloudProfileName = nil, new("aws")
	shoot.Spec.CredentialsBindingName, shoot.Spec.SecretBindingName = nil, new(binding.Name)
	return shoot
}

func TestDeprecatedFieldsOfOlderVersionsAreAccepted(t *testing.T) {
	c, namespace := open(t, t.TempDir()), gardenlet.Namespace(fakegarden.DefaultProject)
	shoot := deprecatedShoot(t, c, namespace)
	if err := c.Create(t.Context(), shoot); err != nil {
		t.Fatal(err)
	}
	if profile := shoot.Spec.CloudProfile; profile == nil || profile.Name != "aws" {
		t.Errorf("the name of the cloud profile was not converted: %v", profile)
	}
	shoot.Spec.CredentialsBindingName, shoot.Spec.SecretBindingName = new("aws"), nil
	if err := c.Update(t.Context(), shoot); err != nil {
		t.Errorf("replacing a SecretBinding with a CredentialsBinding must be allowed: %v", err)
	}
}

func TestInvalidChangesAreRejected(t *testing.T) {
	tests := []struct {
		reason string
		spoil  func(*gardencorev1beta1.Shoot)
		text   string
	}{
		{"minor versions of Kubernetes cannot be skipped", func(shoot *gardencorev1beta1.Shoot) {
			shoot.Spec.Kubernetes.Version = "1.35.4"
		}, "kubernetes version upgrade cannot skip a minor version"},
		{"the credentials cannot change", func(shoot *gardencorev1beta1.Shoot) {
			shoot.Spec.SecretBindingName = new("other")
		}, "spec.secretBindingName: Invalid value"},
		{"only one kind of credentials can be set", func(shoot *gardencorev1beta1.Shoot) {
			shoot.Spec.CredentialsBindingName = new("aws")
		}, "is incompatible with credentialsBindingName"},
		{"a cluster cannot lose its network", func(shoot *gardencorev1beta1.Shoot) {
			shoot.Spec.Networking.Type = nil
		}, "spec.networking.type"},
		{"the purpose must be one of four values", func(shoot *gardencorev1beta1.Shoot) {
			shoot.Spec.Purpose = new(gardencorev1beta1.ShootPurpose("fun"))
		}, `spec.purpose: Unsupported value: "fun"`},
		{"zones must be unique", func(shoot *gardencorev1beta1.Shoot) {
			shoot.Spec.Provider.Workers[0].Zones = []string{"eu-central-1a", "eu-central-1a"}
		}, "Duplicate value"},
		{"Kubernetes 1.33 replaced an option of the autoscaler", func(shoot *gardencorev1beta1.Shoot) {
			shoot.Spec.Kubernetes.ClusterAutoscaler = &gardencorev1beta1.ClusterAutoscaler{MaxEmptyBulkDelete: new(int32(1))}
		}, "maxEmptyBulkDelete field is no longer supported"},
		{"resources of extensions must exist", func(shoot *gardencorev1beta1.Shoot) {
			shoot.Spec.Resources = []gardencorev1beta1.NamedResourceReference{{Name: "audit"}}
			shoot.Spec.Resources[0].ResourceRef.Kind, shoot.Spec.Resources[0].ResourceRef.Name = "Secret", "nothing"
		}, `secrets "nothing" not found`},
	}
	c, namespace := open(t, t.TempDir()), gardenlet.Namespace(fakegarden.DefaultProject)
	stored := deprecatedShoot(t, c, namespace)
	if err := c.Create(t.Context(), stored); err != nil {
		t.Fatal(err)
	}
	for _, test := range tests {
		t.Run(test.reason, func(t *testing.T) {
			shoot := stored.DeepCopy()
			test.spoil(shoot)
			if err := c.Update(t.Context(), shoot); err == nil || !strings.Contains(err.Error(), test.text) {
				t.Errorf("got %v, want an error that contains %s", err, test.text)
			}
		})
	}
}

func TestDeletedShootCannotChange(t *testing.T) {
	c, namespace := open(t, t.TempDir()), gardenlet.Namespace(fakegarden.DefaultProject)
	shoot := conformance.Shoot(namespace, "c-1")
	shoot.Finalizers = []string{"test/waits"}
	shoot.Annotations = map[string]string{"confirmation.gardener.cloud/deletion": "true"}
	if err := c.Create(t.Context(), shoot); err != nil {
		t.Fatal(err)
	}
	if err := c.Delete(t.Context(), shoot); err != nil {
		t.Fatal(err)
	}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(shoot), shoot); err != nil {
		t.Fatal(err)
	}
	shoot.Spec.Provider.Workers[0].Maximum++
	if err := c.Update(t.Context(), shoot); !apierrors.IsInvalid(err) {
		t.Errorf("a change of a deleted shoot must be rejected, got: %v", err)
	}
}

func TestNamespaceWithoutProject(t *testing.T) {
	c := open(t, t.TempDir())
	shoot := conformance.Shoot("elsewhere", "c-1")
	shoot.Spec.CredentialsBindingName = nil
	shoot.Spec.Provider.Workers = nil
	if err := c.Create(t.Context(), shoot); !apierrors.IsInternalError(err) || !strings.Contains(err.Error(), "could not find referenced project") {
		t.Errorf("a shoot in a namespace without a project must be an internal error, got: %v", err)
	}
}
