//go:build garden

package kyma_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/environment-broker/environment-broker/broker/kyma"
	"github.com/environment-broker/environment-broker/internal/clients/lifecyclemanager"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/test/apiserver"
)

// realPlane is a kube-apiserver that plays the control plane.
type realPlane struct {
	*testing.T
	client.Client

	environment *envtest.Environment
	tested      *lifecyclemanager.Client
}

// startPlane runs a kube-apiserver until the test ends.
func startPlane(t *testing.T) *realPlane {
	t.Helper()

	p := &realPlane{T: t, environment: apiserver.Run(t)}

	var err error
	p.Client, err = client.New(p.environment.Config, client.Options{})
	p.must(err)

	p.tested = p.clientOf(p.environment.KubeConfig)

	return p
}

func (p *realPlane) must(err error) {
	p.Helper()

	if err != nil {
		p.Fatal(err)
	}
}

// clientOf returns the tested client with a kubeconfig.
func (p *realPlane) clientOf(kubeconfig []byte) *lifecyclemanager.Client {
	p.Helper()

	path := filepath.Join(p.TempDir(), "kubeconfig")
	p.must(os.WriteFile(path, kubeconfig, 0o600))

	return lifecyclemanager.New(&kyma.ControlPlane{KubeconfigPath: path, Namespace: "kcp-system"}, kyma.CallTimeout)
}

// registered returns the instance whose runtime is registered.
func registered() environment.Instance {
	return environment.Instance{ID: "one", RuntimeID: "r-1", PlanName: "aws"}
}

// objects returns the objects of a runtime with a channel and modules.
func (p *realPlane) objects(channel string, modules ...string) lifecyclemanager.Objects {
	p.Helper()

	settings := lifecyclemanager.Settings{Channel: channel, Modules: []lifecyclemanager.Module{}}
	for _, name := range modules {
		settings.Modules = append(settings.Modules, lifecyclemanager.Module{Name: name})
	}

	objects, err := lifecyclemanager.ObjectsOf(registered(), settings, "kcp-system", "")
	p.must(err)

	return objects
}

// resource returns the Kyma resource.
func (p *realPlane) resource() *unstructured.Unstructured {
	p.Helper()

	found := &unstructured.Unstructured{}
	found.SetGroupVersionKind(schema.GroupVersionKind{Group: "operator.kyma-project.io", Version: "v1beta2", Kind: "Kyma"})
	p.must(p.Get(p.Context(), client.ObjectKey{Namespace: "kcp-system", Name: "r-1"}, found))

	return found
}

// report sets the state, as Lifecycle Manager does for the newest change.
func (p *realPlane) report(state string) {
	p.Helper()

	found := p.resource()
	found.Object["status"] = map[string]any{
		"state": state, "conditions": []any{map[string]any{"type": "Modules", "observedGeneration": found.GetGeneration()}},
	}
	p.must(p.Client.Status().Update(p.Context(), found))
}

// wantStatus fails the test unless the status reports Lifecycle Manager as done or not done, as wanted.
func (p *realPlane) wantStatus(reason string, done bool) {
	p.Helper()

	if status, err := p.tested.Status(p.Context(), p.objects("fast").Kyma); err != nil || status.Done() != done {
		p.Errorf("%s: got %+v, %v", reason, status, err)
	}
}

// TestLifecycleManagerOnAPIServer runs the calls of the steps on a kube-apiserver with the custom resource of Lifecycle Manager.
func TestLifecycleManagerOnAPIServer(t *testing.T) {
	p := startPlane(t)
	first := p.objects("fast", "eventing", "serverless")

	if err := p.tested.ApplyKyma(t.Context(), first); !failure.Is(err, failure.Transient) || !strings.Contains(err.Error(), "must install Lifecycle Manager") {
		t.Errorf("without the custom resource: %v", err)
	}

	_, err := envtest.InstallCRDs(p.environment.Config, envtest.CRDInstallOptions{Paths: []string{filepath.Join("testdata", "crds")}, ErrorIfPathMissing: true})
	p.must(err)

	if err := p.tested.ApplyKyma(t.Context(), first); !failure.Is(err, failure.Transient) {
		t.Errorf("without the namespace: %v", err)
	}

	p.must(p.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kcp-system"}}))

	for range 2 {
		p.must(p.tested.ApplySecret(t.Context(), first, "a kubeconfig"))
		p.must(p.tested.ApplyKyma(t.Context(), first))
	}

	if generation := p.resource().GetGeneration(); generation != 1 {
		t.Errorf("a repeated call changes the resource: generation %d", generation)
	}

	p.testStates()
	p.testSecret(first)
	p.testErrors()
	p.testRemoval(first)
}

func (p *realPlane) testStates() {
	p.wantStatus("a new resource", false)
	p.report("Ready")
	p.wantStatus("Ready", true)

	labelled := p.resource()
	labelled.SetAnnotations(map[string]string{"operator": "note"})
	p.must(p.Update(p.Context(), labelled))

	p.must(p.tested.ApplyKyma(p.Context(), p.objects("fast", "serverless")))
	p.wantStatus("Ready of the former change", false)
	p.report("Warning")
	p.wantStatus("Warning", true)

	changed := p.resource()
	if modules, _, _ := unstructured.NestedSlice(changed.Object, "spec", "modules"); len(modules) != 1 || changed.GetAnnotations()["operator"] != "note" {
		p.Errorf("after a module was removed: %v with annotations %v", modules, changed.GetAnnotations())
	}
}

func (p *realPlane) testSecret(objects lifecyclemanager.Objects) {
	const account = "kyma-project.io/global-account-id"

	moved, before := registered(), p.resource()
	moved.GlobalAccountID = "second"
	p.must(p.tested.RenewSecret(p.Context(), objects.Secret, moved, "another kubeconfig"))
	p.must(p.tested.LabelKyma(p.Context(), objects.Kyma, moved))

	after := p.resource()
	if after.GetLabels()[account] != "second" || after.GetGeneration() != before.GetGeneration() || after.GetAnnotations()["operator"] != "note" {
		p.Errorf("the labelled resource is %v", after.Object)
	}

	stored := &corev1.Secret{}
	p.must(p.Get(p.Context(), client.ObjectKey{Namespace: "kcp-system", Name: "kubeconfig-r-1"}, stored))

	if string(stored.Data["config"]) != "another kubeconfig" || stored.Labels["operator.kyma-project.io/managed-by"] != "lifecycle-manager" ||
		stored.Labels[account] != "second" {
		p.Errorf("the Secret has the keys and labels %v", stored.Labels)
	}

	p.must(p.tested.ApplySecret(p.Context(), objects, "a third kubeconfig")) // takes the field back
	p.must(p.tested.ApplyKyma(p.Context(), p.objects("fast", "serverless")))

	if owner := p.resource().GetLabels()[account]; owner != "" {
		p.Errorf("an operation of the first account leaves the label %q", owner)
	}

	p.must(p.tested.Delete(p.Context(), objects.Secret))
	p.must(p.tested.Delete(p.Context(), objects.Secret))

	if err := p.tested.RenewSecret(p.Context(), objects.Secret, moved, "a kubeconfig"); !failure.Is(err, failure.NotFound) {
		p.Errorf("a renewal of a deleted Secret: %v", err)
	}
}

func (p *realPlane) testErrors() {
	if err := p.tested.ApplyKyma(p.Context(), p.objects("Fast")); !failure.Is(err, failure.Permanent) {
		p.Errorf("an invalid channel: %v", err)
	}

	user, err := p.environment.AddUser(envtest.User{Name: "nobody"}, nil)
	p.must(err)

	kubeconfig, err := user.KubeConfig()
	p.must(err)

	if err := p.clientOf(kubeconfig).ApplyKyma(p.Context(), p.objects("fast")); !failure.Is(err, failure.Transient) ||
		!strings.Contains(err.Error(), "the permissions of its user") {
		p.Errorf("a user without rights: %v", err)
	}
}

func (p *realPlane) testRemoval(objects lifecyclemanager.Objects) {
	held := p.resource()
	held.SetFinalizers([]string{"operator.kyma-project.io/kyma"})
	p.must(p.Update(p.Context(), held))
	p.must(p.tested.Delete(p.Context(), objects.Kyma))
	p.must(p.tested.Delete(p.Context(), objects.Kyma))
	p.wantStatus("Lifecycle Manager still removes its modules", false)

	held = p.resource()
	held.SetFinalizers(nil)
	p.must(p.Update(p.Context(), held))

	if _, err := p.tested.Status(p.Context(), objects.Kyma); !failure.Is(err, failure.NotFound) {
		p.Errorf("after the removal: %v", err)
	}

	p.must(p.tested.Delete(p.Context(), objects.Kyma))
	p.must(p.tested.LabelKyma(p.Context(), objects.Kyma, registered()))

	if _, err := p.tested.Status(p.Context(), objects.Kyma); !failure.Is(err, failure.NotFound) {
		p.Errorf("a label creates the resource: %v", err)
	}
}
