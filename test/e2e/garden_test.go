//go:build garden

package e2e

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// TestStoryOnTheRealGarden has the administrator of a runtime make a namespace in it: a real API server, ordered over the Open
// Service Broker API.
func TestStoryOnTheRealGarden(t *testing.T) {
	t.Parallel()

	w := newWorld(t, realGarden(t, "--cluster-creation=1s"))

	w.create("real", planTrial)
	w.succeeded("real")

	config, err := clientcmd.RESTConfigFromKubeConfig(w.kubeconfig("real"))
	if err != nil {
		t.Fatal(err)
	}

	runtime, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}

	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "first-steps"}}
	if _, err := runtime.CoreV1().Namespaces().Create(t.Context(), namespace, metav1.CreateOptions{}); err != nil {
		t.Errorf("the administrator cannot make a namespace: %v", err)
	}

	w.remove("real", planTrial)
	w.gone("real")

	if shoots := w.shoots(); len(shoots) != 0 {
		t.Errorf("%d Shoots are left", len(shoots))
	}
}
