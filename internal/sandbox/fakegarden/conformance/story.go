package conformance

import (
	"context"
	"testing"
	"time"

	authenticationv1alpha1 "github.com/gardener/gardener/pkg/apis/authentication/v1alpha1"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

// Story follows one runtime through its life: it is created, used, changed and deleted.
func Story(t *testing.T, g Garden) {
	ctx := t.Context()
	shoot := Shoot(g.Namespace, "story")

	g.apply(ctx, t, shoot)
	created := g.created(ctx, t, shoot.Name)

	access := g.adminAccess(ctx, t, shoot.Name)
	checkAccess(t, access)

	g.apply(ctx, t, shoot)
	if again := g.get(ctx, t, shoot.Name); again.Generation != created.Generation {
		t.Errorf("applying the same shoot again raised its generation from %d to %d", created.Generation, again.Generation)
	}

	shoot.Spec.Provider.Workers[0].Maximum = 5
	g.apply(ctx, t, shoot)
	g.changed(ctx, t, shoot.Name, created)
	checkAccess(t, access)

	if err := g.Client.Delete(ctx, shoot.DeepCopy()); !apierrors.IsForbidden(err) {
		t.Fatalf("a deletion that is not confirmed must be forbidden, got: %v", err)
	}
	g.deleted(ctx, t, shoot.Name)
}

// created waits until the runtime is there and checks what the garden says about it.
func (g Garden) created(ctx context.Context, t *testing.T, name string) *gardencorev1beta1.Shoot {
	t.Helper()
	var progress int32
	shoot := g.await(ctx, t, name, "its creation succeeded", func(shoot *gardencorev1beta1.Shoot) {
		last := shoot.Status.LastOperation
		if last == nil {
			return
		}
		if last.Type != gardencorev1beta1.LastOperationTypeCreate || last.Progress < progress {
			t.Errorf("the creation went from %d%% to %+v", progress, last)
		}
		progress = last.Progress
	}, succeeded(gardencorev1beta1.LastOperationTypeCreate))
	if progress != 100 {
		t.Errorf("a creation that succeeded is at %d%%", progress)
	}
	if wanted := "shoot--" + g.Project + "--" + name; shoot.Status.TechnicalID != wanted || shoot.Status.UID == "" {
		t.Errorf("technical ID %q and UID %q, want %q and any", shoot.Status.TechnicalID, shoot.Status.UID, wanted)
	}
	if !controllerutil.ContainsFinalizer(shoot, gardencorev1beta1.GardenerName) {
		t.Errorf("the finalizer of the gardenlet is missing: %v", shoot.Finalizers)
	}
	if shoot.Spec.DNS == nil || shoot.Spec.DNS.Domain == nil {
		t.Errorf("the runtime has no domain")
	}
	if len(shoot.Status.Conditions) == 0 || len(shoot.Status.Constraints) == 0 {
		t.Errorf("conditions %v or constraints %v are missing", shoot.Status.Conditions, shoot.Status.Constraints)
	}
	if image := shoot.Spec.Provider.Workers[0].Machine.Image; image == nil || image.Version == nil {
		t.Errorf("the machine image was not defaulted: %v", image)
	}
	return shoot
}

// adminAccess gets the admin kubeconfig of a runtime.
func (g Garden) adminAccess(ctx context.Context, t *testing.T, name string) *rest.Config {
	t.Helper()
	request := &authenticationv1alpha1.AdminKubeconfigRequest{
		Spec: authenticationv1alpha1.AdminKubeconfigRequestSpec{ExpirationSeconds: new(int64(600))},
	}
	if err := g.Client.SubResource("adminkubeconfig").Create(ctx, g.get(ctx, t, name), request); err != nil {
		t.Fatalf("get the admin kubeconfig: %v", err)
	}
	if left := time.Until(request.Status.ExpirationTimestamp.Time); left < 9*time.Minute || left > 11*time.Minute {
		t.Errorf("the admin kubeconfig was asked for 10 minutes and expires in %s", left)
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(request.Status.Kubeconfig)
	if err != nil {
		t.Fatalf("read the admin kubeconfig: %v", err)
	}
	return config
}

// checkAccess uses an admin kubeconfig, with its client certificate and without.
func checkAccess(t *testing.T, config *rest.Config) {
	t.Helper()
	admin := discoverer(t, config)
	version, err := admin.ServerVersion()
	if err != nil {
		t.Fatalf("ask the runtime for its version: %v", err)
	}
	if wanted := "v" + kubernetesVersion; version.GitVersion != wanted {
		t.Errorf("the runtime says it is Kubernetes %s, want %s", version.GitVersion, wanted)
	}
	if _, err := admin.ServerGroups(); err != nil {
		t.Errorf("ask the runtime what it serves: %v", err)
	}
	stranger := rest.AnonymousClientConfig(config)
	if err := discoverer(t, stranger).RESTClient().Get().AbsPath("/api").Do(t.Context()).Error(); !refused(err) {
		t.Errorf("without a client certificate the runtime must refuse, got: %v", err)
	}
}

func discoverer(t *testing.T, config *rest.Config) *discovery.DiscoveryClient {
	t.Helper()
	discoverer, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		t.Fatalf("make a client of the runtime: %v", err)
	}
	return discoverer
}

func refused(err error) bool {
	return apierrors.IsUnauthorized(err) || apierrors.IsForbidden(err)
}

// changed waits until the change of the workers has come through.
func (g Garden) changed(ctx context.Context, t *testing.T, name string, before *gardencorev1beta1.Shoot) {
	t.Helper()
	shoot := g.await(ctx, t, name, "its change succeeded", unobserved, succeeded(gardencorev1beta1.LastOperationTypeReconcile))
	if shoot.Generation != before.Generation+1 {
		t.Errorf("one change of the spec took the generation from %d to %d", before.Generation, shoot.Generation)
	}
	if workers := shoot.Spec.Provider.Workers; len(workers) != 1 || workers[0].Maximum != 5 {
		t.Errorf("the change is not in the shoot: %+v", workers)
	}
	if now, was := shoot.Spec.Provider.Workers[0].Machine.Image, before.Spec.Provider.Workers[0].Machine.Image; *now.Version != *was.Version {
		t.Errorf("the machine image went from %s to %s, though nobody asked for it", *was.Version, *now.Version)
	}
}

// deleted deletes the runtime and checks that nothing of it is left.
func (g Garden) deleted(ctx context.Context, t *testing.T, name string) {
	t.Helper()
	var last *gardencorev1beta1.LastOperation
	g.remove(ctx, t, name, func(shoot *gardencorev1beta1.Shoot) { last = shoot.Status.LastOperation })
	if last == nil || last.Type != gardencorev1beta1.LastOperationTypeDelete {
		t.Errorf("the last that was seen of the shoot is %+v, want its deletion", last)
	}
	for _, object := range []client.Object{
		&gardencorev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Name: name}},
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name + ".ca-cluster"}},
		&gardencorev1beta1.InternalSecret{ObjectMeta: metav1.ObjectMeta{Name: name + ".ca-client"}},
	} {
		key := client.ObjectKey{Namespace: g.Namespace, Name: object.GetName()}
		if err := g.Client.Get(ctx, key, object); !apierrors.IsNotFound(err) {
			t.Errorf("%T %s must be gone with the shoot, got: %v", object, key, err)
		}
	}
}
