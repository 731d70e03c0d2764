//go:build garden

package e2e

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/environment-broker/environment-broker/test/harness"
)

// TestGoldenShootsOnLocalGarden applies the golden files of package shoot to Gardener's API server. Shoots are applied in a dry
// run.
func TestGoldenShootsOnLocalGarden(t *testing.T) {
	t.Parallel()

	garden := sharedGarden(t, "simulated")
	recorded := &warnings{}
	member := recorded.member(t, garden.kubeconfig)

	createReferences(t, garden.asAdmin(t))

	files, err := filepath.Glob(filepath.Join(harness.Root, "provisioner", "shoot", "testdata", "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("found %d golden files, error %v", len(files), err)
	}

	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}

			text = bytes.ReplaceAll(text, []byte("garden-kyma"), []byte(garden.Namespace()))

			for document := range bytes.SplitSeq(text, []byte("---\n")) {
				object := &unstructured.Unstructured{}
				if err := yaml.Unmarshal(document, &object.Object); err != nil {
					t.Fatal(err)
				}

				wantAccepted(t, member, object)
			}

			if texts := recorded.take(); len(texts) > 0 && !bytes.Contains(text, []byte("\n    providers:\n")) {
				t.Errorf("Gardener warns: %q", texts)
			}
		})
	}
}

// warnings records the warnings of Gardener's API server about deprecated fields.
type warnings struct {
	texts []string
}

// HandleWarningHeaderWithContext implements rest.WarningHandlerWithContext.
func (w *warnings) HandleWarningHeaderWithContext(_ context.Context, _ int, _, text string) {
	w.texts = append(w.texts, text)
}

func (w *warnings) take() []string {
	texts := w.texts
	w.texts = nil

	return texts
}

// member returns a garden client that has the Provisioner's permissions.
func (w *warnings) member(t *testing.T, kubeconfig string) client.Client {
	t.Helper()

	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}

	config.WarningHandlerWithContext = w

	member, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}

	return member
}

// wantAccepted applies an object as the Provisioner does, except that it applies Shoots in a dry run. It retries, because
// Gardener reads referenced objects from a cache.
func wantAccepted(t *testing.T, member client.Client, object *unstructured.Unstructured) {
	t.Helper()

	options := []client.ApplyOption{client.FieldOwner("environment-broker-provisioner"), client.ForceOwnership}
	if object.GetKind() == "Shoot" {
		options = append(options, client.DryRunAll)
	}

	var err error

	if !harness.Within(harness.Patience, func() bool {
		err = member.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(object), options...)

		return err == nil
	}) {
		t.Fatalf("%s %s: %v", object.GetKind(), object.GetName(), err)
	}
}

// createReferences creates the objects that the golden Shoots refer to and that a new garden lacks.
func createReferences(t *testing.T, admin localProject) {
	t.Helper()

	profile := &gardencorev1beta1.CloudProfile{}
	if err := admin.Get(t.Context(), client.ObjectKey{Name: "converged-cloud-cp"}, profile); err != nil {
		t.Fatal(err)
	}

	namespaced := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: admin.Namespace(), Name: name}
	}

	const policy = `{"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": [{"level": "Metadata"}]}`

	for _, object := range []client.Object{
		&gardencorev1beta1.CloudProfile{ObjectMeta: metav1.ObjectMeta{Name: "converged-cloud-kyma"}, Spec: profile.Spec},
		&gardencorev1beta1.ExposureClass{ObjectMeta: metav1.ObjectMeta{Name: "internet"}, Handler: "internet"},
		&gardencorev1beta1.ControllerRegistration{
			ObjectMeta: metav1.ObjectMeta{Name: "own"},
			Spec: gardencorev1beta1.ControllerRegistrationSpec{
				Resources: []gardencorev1beta1.ControllerResource{{Kind: "Extension", Type: "own", Primary: new(true)}},
			},
		},
		&corev1.ConfigMap{ObjectMeta: namespaced("audit-policy"), Data: map[string]string{"policy": policy}},
		&corev1.Secret{ObjectMeta: namespaced("audit-credentials")},
		&corev1.Secret{ObjectMeta: namespaced("dns")},
		&corev1.Secret{ObjectMeta: namespaced("other")},
	} {
		if err := client.IgnoreAlreadyExists(admin.Create(t.Context(), object)); err != nil {
			t.Fatalf("%T %s: %v", object, object.GetName(), err)
		}
	}
}
