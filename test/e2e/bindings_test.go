package e2e

import (
	"net/http"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/environment-broker/environment-broker/test/harness"
)

// revokedWithin is the maximum time for which revoked credentials may still work. An API server caches the result of a token
// check for ten seconds, so the limit is somewhat longer.
const revokedWithin = 15 * time.Second

func bindingOf(planID, role string) map[string]any {
	return map[string]any{"service_id": harness.ServiceID, "plan_id": planID, "parameters": map[string]any{"role": role}}
}

// sendSynchronous sends a request for a synchronous operation, which must return the status want. If the operation takes too
// long, the broker returns 503. sendSynchronous then repeats the request and also accepts wantRepeated, the status of an
// operation that has already succeeded.
func (p platform) sendSynchronous(method, path string, body any, want, wantRepeated int) harness.Reply {
	p.Helper()

	var (
		got      harness.Reply
		repeated bool
	)

	p.Until(method+" "+path, func() bool {
		var err error
		if got, err = p.Try(method, path, body); err != nil {
			p.Fatal(err)
		}

		repeated = repeated || got.Status == http.StatusServiceUnavailable

		return got.Status != http.StatusServiceUnavailable
	})

	if got.Status != want && (!repeated || got.Status != wantRepeated) {
		p.Fatalf("%s %s returned %d %v, want %d", method, path, got.Status, got.Body, want)
	}

	return got
}

// bindingClient returns a client for the runtime that uses the credentials from the reply to a bind request.
func bindingClient(t *testing.T, bound harness.Reply) *kubernetes.Clientset {
	t.Helper()

	credentials, _ := bound.Body["credentials"].(map[string]any)
	kubeconfig, _ := credentials["kubeconfig"].(string)

	return harness.RuntimeClient(t, []byte(kubeconfig))
}

func createConfigMap(t *testing.T, client *kubernetes.Clientset, name string) error {
	t.Helper()

	_, err := client.CoreV1().ConfigMaps("default").Create(t.Context(),
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})

	return err
}

func listConfigMaps(t *testing.T, client *kubernetes.Clientset) error {
	t.Helper()

	_, err := client.CoreV1().ConfigMaps("default").List(t.Context(), metav1.ListOptions{})

	return err
}

// testBindings creates two bindings for a ready instance, with the roles edit and view. It checks the permissions of both
// bindings and removes one of them.
func testBindings(t *testing.T, p platform, instance, planID string) {
	t.Helper()

	editor := bindingClient(t, p.sendSynchronous(http.MethodPut, harness.BindingPath(instance, "editor"), bindingOf(planID, "edit"), http.StatusCreated, http.StatusOK))

	p.Send(http.MethodPut, harness.BindingPath(instance, "viewer")+harness.Incomplete, bindingOf(planID, "view"), http.StatusAccepted)
	p.Until("the binding", func() bool {
		got, err := p.Try(http.MethodGet, harness.BindingPath(instance, "viewer")+"/last_operation", nil)

		return err == nil && got.Text("state") == "succeeded"
	})

	viewer := bindingClient(t, p.Send(http.MethodGet, harness.BindingPath(instance, "viewer"), nil, http.StatusOK))

	// New role bindings take effect after a delay, because API servers cache role bindings.
	p.Until("the permissions of the editor", func() bool { return listConfigMaps(t, editor) == nil })
	p.Until("the permissions of the viewer", func() bool { return listConfigMaps(t, viewer) == nil })

	if err := createConfigMap(t, editor, "by-editor"); err != nil {
		t.Errorf("the editor must be able to write: %v", err)
	}

	if err := createConfigMap(t, viewer, "by-viewer"); !apierrors.IsForbidden(err) {
		t.Errorf("the viewer must not be able to write: %v", err)
	}

	if _, err := editor.RbacV1().ClusterRoleBindings().List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("the editor must not be able to read role bindings: %v", err)
	}

	p.sendSynchronous(http.MethodDelete, harness.BindingPath(instance, "editor")+"?service_id="+harness.ServiceID+"&plan_id="+planID, nil, http.StatusOK, http.StatusGone)

	removed, lastGood := time.Now(), time.Time{}

	p.Until("revoked credentials to be rejected", func() bool {
		asked := time.Now()

		err := listConfigMaps(t, editor)
		if err == nil {
			lastGood = asked
		}

		return apierrors.IsUnauthorized(err)
	})

	if took := lastGood.Sub(removed); took > revokedWithin {
		t.Errorf("revoked credentials worked for %s after the revocation", took)
	}

	p.Send(http.MethodGet, harness.BindingPath(instance, "editor"), nil, http.StatusNotFound)

	if err := listConfigMaps(t, viewer); err != nil {
		t.Errorf("the credentials of the remaining binding do not work: %v", err)
	}
}

func TestBindings(t *testing.T) {
	t.Parallel()

	harness.EachDatabase(t, func(t *testing.T, database harness.Database) {
		e := start(t, database, 200*time.Millisecond)

		e.Create("bound", harness.PlanTrial)
		e.WantSucceeded("bound")
		testBindings(t, e.platform, "bound", harness.PlanTrial)

		// An instance can be deleted even if it has a binding.
		e.Delete("bound", harness.PlanTrial)
		e.WantGone("bound")
		e.Send(http.MethodGet, harness.BindingPath("bound", "viewer"), nil, http.StatusNotFound)
	})
}
