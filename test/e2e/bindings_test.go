package e2e

import (
	"net/http"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// revokedWithin is how long removed credentials may still be good: an API server remembers a good token for ten seconds.
const revokedWithin = 15 * time.Second

func bindingPath(instance, binding string) string {
	return instancePath(instance) + "/service_bindings/" + binding
}

func bindingOf(planID, role string) map[string]any {
	return map[string]any{"service_id": serviceID, "plan_id": planID, "parameters": map[string]any{"role": role}}
}

// atOnce sends a request that is carried out before it is answered. Where that takes long it is sent again, as the broker asks for, and
// may then find it done.
func (p platform) atOnce(method, path string, body any, want, done int) answer {
	p.Helper()

	var (
		got   answer
		again bool
	)

	p.until(method+" "+path, func() bool {
		var err error
		if got, err = p.try(method, path, body); err != nil {
			p.Fatal(err)
		}

		again = again || got.Status == http.StatusServiceUnavailable

		return got.Status != http.StatusServiceUnavailable
	})

	if got.Status != want && (!again || got.Status != done) {
		p.Fatalf("%s %s answered %d %v, want %d", method, path, got.Status, got.Body, want)
	}

	return got
}

// holder returns a client with the credentials of a binding.
func holder(t *testing.T, bound answer) *kubernetes.Clientset {
	t.Helper()

	credentials, _ := bound.Body["credentials"].(map[string]any)
	kubeconfig, _ := credentials["kubeconfig"].(string)

	config, err := clientcmd.RESTConfigFromKubeConfig([]byte(kubeconfig))
	if err != nil {
		t.Fatal(err)
	}

	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}

	return client
}

func writes(t *testing.T, client *kubernetes.Clientset, name string) error {
	t.Helper()

	_, err := client.CoreV1().ConfigMaps("default").Create(t.Context(),
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})

	return err
}

func reads(t *testing.T, client *kubernetes.Clientset) error {
	t.Helper()

	_, err := client.CoreV1().ConfigMaps("default").List(t.Context(), metav1.ListOptions{})

	return err
}

// bindingStory gives two users access to a ready instance, each as far as its role allows, and takes it from one of them.
func bindingStory(t *testing.T, p platform, instance, planID string) {
	t.Helper()

	editor := holder(t, p.atOnce(http.MethodPut, bindingPath(instance, "editor"), bindingOf(planID, "edit"), http.StatusCreated, http.StatusOK))

	p.send(http.MethodPut, bindingPath(instance, "viewer")+"?accepts_incomplete=true", bindingOf(planID, "view"), http.StatusAccepted)
	p.until("the binding", func() bool {
		got, err := p.try(http.MethodGet, bindingPath(instance, "viewer")+"/last_operation", nil)

		return err == nil && got.text("state") == "succeeded"
	})

	viewer := holder(t, p.send(http.MethodGet, bindingPath(instance, "viewer"), nil, http.StatusOK))

	// An API server notices new rights within moments, not at once.
	p.until("the rights of the editor", func() bool { return reads(t, editor) == nil })
	p.until("the rights of the viewer", func() bool { return reads(t, viewer) == nil })

	if err := writes(t, editor, "by-editor"); err != nil {
		t.Errorf("the editor cannot write: %v", err)
	}

	if err := writes(t, viewer, "by-viewer"); !apierrors.IsForbidden(err) {
		t.Errorf("the viewer writes: %v", err)
	}

	if _, err := editor.RbacV1().ClusterRoleBindings().List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("the editor sees who may do what: %v", err)
	}

	p.atOnce(http.MethodDelete, bindingPath(instance, "editor")+"?service_id="+serviceID+"&plan_id="+planID, nil, http.StatusOK, http.StatusGone)

	removed, lastGood := time.Now(), time.Time{}

	p.until("the refusal of what was removed", func() bool {
		asked := time.Now()

		err := reads(t, editor)
		if err == nil {
			lastGood = asked
		}

		return apierrors.IsUnauthorized(err)
	})

	if took := lastGood.Sub(removed); took > revokedWithin {
		t.Errorf("removed credentials were good for another %s", took)
	}

	p.send(http.MethodGet, bindingPath(instance, "editor"), nil, http.StatusNotFound)

	if err := reads(t, viewer); err != nil {
		t.Errorf("the binding that is left does not work any more: %v", err)
	}
}

func TestBindings(t *testing.T) {
	t.Parallel()

	eachDatabase(t, func(t *testing.T, fresh database) {
		l := start(t, fresh, 200*time.Millisecond, nil)

		l.create("bound", planTrial)
		l.succeeded("bound")
		bindingStory(t, l.platform, "bound", planTrial)

		// What is left of bindings does not keep the instance.
		l.remove("bound", planTrial)
		l.gone("bound")
		l.send(http.MethodGet, bindingPath("bound", "viewer"), nil, http.StatusNotFound)
	})
}
