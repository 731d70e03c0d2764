package deployments

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/environment-broker/environment-broker/bundle/api/v1alpha1"
)

// secrets is a reader that returns a Secret with the data for every name.
type secrets struct {
	client.Reader

	data map[string][]byte
}

// Get implements client.Reader.
func (s secrets) Get(_ context.Context, key client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	if found, ok := object.(*corev1.Secret); ok {
		*found = corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}, Data: s.data}
	}

	return nil
}

// TestUnusableKubeconfigs checks that the error names the key or the problem of the kubeconfig.
func TestUnusableKubeconfigs(t *testing.T) {
	for name, test := range map[string]struct {
		data map[string][]byte
		key  string
		want string
	}{
		"other key":   {map[string][]byte{"value": []byte("x")}, "", "the Secret system/target has no key kubeconfig: set spec.target.kubeconfigSecretRef.key"},
		"named key":   {map[string][]byte{"kubeconfig": []byte("x")}, "value", "the Secret system/target has no key value: set"},
		"empty":       {map[string][]byte{"kubeconfig": {}}, "", "has no key kubeconfig"},
		"no text":     {map[string][]byte{"kubeconfig": []byte("[")}, "", "is not a usable kubeconfig: it cannot be parsed"},
		"no contexts": {map[string][]byte{"kubeconfig": []byte("{}")}, "", "its current context is missing or incomplete"},
	} {
		under := &clusters{reader: secrets{data: test.data}, namespace: "system"}
		deployment := &v1alpha1.BundleDeployment{Spec: v1alpha1.BundleDeploymentSpec{Target: &v1alpha1.Target{
			KubeconfigSecretRef: v1alpha1.SecretKeyReference{Name: "target", Key: test.key},
		}}}

		if _, err := under.of(t.Context(), deployment); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v, want %q", name, err, test.want)
		}
	}
}
