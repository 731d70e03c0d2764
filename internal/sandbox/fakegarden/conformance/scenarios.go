package conformance

import (
	"context"
	"testing"
	"time"

	authenticationv1alpha1 "github.com/gardener/gardener/pkg/apis/authentication/v1alpha1"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/environment-broker/environment-broker/internal/sandbox/fakegarden/gardenlet"
)

// Lifecycle creates a runtime, uses it, changes it and deletes it. It checks the Shoot after each step. Applying an unchanged
// Shoot must change nothing, and the deletion must leave no objects behind. An admin kubeconfig that was issued before the change
// must still work afterwards, because clients use a kubeconfig for several minutes.
func Lifecycle(t *testing.T, g Garden) {
	ctx := t.Context()
	shoot := Shoot(g.Namespace, "lifecycle")
	g.apply(ctx, t, shoot)
	created := g.checkCreation(ctx, t, shoot.Name)
	access := g.adminAccess(ctx, t, shoot.Name)
	checkAccess(t, access)

	g.apply(ctx, t, shoot)
	if again := g.get(ctx, t, shoot.Name); again.Generation != created.Generation {
		t.Errorf("applying an unchanged shoot raised its generation from %d to %d", created.Generation, again.Generation)
	}

	shoot.Spec.Provider.Workers[0].Maximum = 5
	g.apply(ctx, t, shoot)
	g.checkChange(ctx, t, shoot.Name, created)
	g.checkConfinement(ctx, t, shoot)
	checkAccess(t, access)

	if err := g.Client.Delete(ctx, shoot.DeepCopy()); !apierrors.IsForbidden(err) {
		t.Fatalf("an unconfirmed deletion must be forbidden, got: %v", err)
	}
	g.checkDeletion(ctx, t, shoot.Name)
}

// Faults makes the creation of a runtime fail with an injected fault, and retries it with Gardener's annotation. As in Gardener,
// the retry of a creation is reported as a creation, and its success clears the errors.
func Faults(t *testing.T, g Garden) {
	ctx := t.Context()
	const name = "faulty"
	g.injectFault(ctx, t, name, gardenlet.FaultFailOnce)
	g.apply(ctx, t, Shoot(g.Namespace, name))
	failed := g.await(ctx, t, name, "its creation has failed", nil, func(shoot *gardencorev1beta1.Shoot) bool {
		return shoot.Status.LastOperation != nil && shoot.Status.LastOperation.State == gardencorev1beta1.LastOperationStateFailed
	})
	if len(failed.Status.LastErrors) == 0 {
		t.Errorf("a failed creation reports no error")
	}
	before := failed.DeepCopy()
	metav1.SetMetaDataAnnotation(&failed.ObjectMeta, v1beta1constants.GardenerOperation, v1beta1constants.ShootOperationRetry)
	if err := g.Client.Patch(ctx, failed, client.MergeFrom(before)); err != nil {
		t.Fatalf("requesting a retry: %v", err)
	}
	recovered := g.await(ctx, t, name, "its second creation has succeeded", nil, succeeded(gardencorev1beta1.LastOperationTypeCreate))
	if len(recovered.Status.LastErrors) > 0 {
		t.Errorf("a successful creation still reports errors: %+v", recovered.Status.LastErrors)
	}
	g.remove(ctx, t, name, nil)
}

// checkCreation waits for the creation of the runtime and returns its Shoot. It checks that the progress never decreases and that
// the Shoot has all fields that the Provisioner reads: the technical ID, the domain, the conditions and the machine defaults. The
// Shoot must also have the finalizer; without it, a deletion would leave the runtime behind.
func (g Garden) checkCreation(ctx context.Context, t *testing.T, name string) *gardencorev1beta1.Shoot {
	t.Helper()
	var progress int32
	shoot := g.await(ctx, t, name, "its creation has succeeded", func(shoot *gardencorev1beta1.Shoot) {
		last := shoot.Status.LastOperation
		if last == nil {
			return
		}
		if last.Type != gardencorev1beta1.LastOperationTypeCreate || last.Progress < progress {
			t.Errorf("the progress of the creation changed from %d%% to %+v", progress, last)
		}
		progress = last.Progress
	}, succeeded(gardencorev1beta1.LastOperationTypeCreate))
	if progress != 100 {
		t.Errorf("a successful creation reports a progress of %d%%", progress)
	}
	if wanted := gardenlet.TechnicalID(g.Project, name); shoot.Status.TechnicalID != wanted || shoot.Status.UID == "" {
		t.Errorf("got technical ID %q and UID %q, want %q and any UID", shoot.Status.TechnicalID, shoot.Status.UID, wanted)
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
		t.Errorf("the machine image has no default: %v", image)
	}
	return shoot
}

// adminAccess requests an admin kubeconfig with the shortest validity that Gardener allows. It checks the expiry with a tolerance
// of one minute for slow machines.
func (g Garden) adminAccess(ctx context.Context, t *testing.T, name string) *rest.Config {
	t.Helper()
	request := &authenticationv1alpha1.AdminKubeconfigRequest{
		Spec: authenticationv1alpha1.AdminKubeconfigRequestSpec{ExpirationSeconds: new(int64(600))},
	}
	if err := g.Client.SubResource("adminkubeconfig").Create(ctx, g.get(ctx, t, name), request); err != nil {
		t.Fatalf("requesting the admin kubeconfig: %v", err)
	}
	if left := time.Until(request.Status.ExpirationTimestamp.Time); left < 9*time.Minute || left > 11*time.Minute {
		t.Errorf("an admin kubeconfig for 10 minutes expires in %s", left)
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(request.Status.Kubeconfig)
	if err != nil {
		t.Fatalf("loading the admin kubeconfig: %v", err)
	}
	return config
}

// checkAccess calls the API server with the client certificate of an admin kubeconfig and then without it. The second call must
// fail with 401 or 403: a real API server returns 403 if it accepts anonymous requests.
func checkAccess(t *testing.T, config *rest.Config) {
	t.Helper()
	admin := discoverer(t, config)
	version, err := admin.ServerVersion()
	if err != nil {
		t.Fatalf("reading the version of the runtime: %v", err)
	}
	if wanted := "v" + kubernetesVersion; version.GitVersion != wanted {
		t.Errorf("the runtime reports Kubernetes %s, want %s", version.GitVersion, wanted)
	}
	if _, err := admin.ServerGroups(); err != nil {
		t.Errorf("discovering the API of the runtime: %v", err)
	}
	err = discoverer(t, rest.AnonymousClientConfig(config)).RESTClient().Get().AbsPath("/api").Do(t.Context()).Error()
	if !apierrors.IsUnauthorized(err) && !apierrors.IsForbidden(err) {
		t.Errorf("the runtime must reject requests without a client certificate, got: %v", err)
	}
}

// discoverer returns a discovery client. It works with every runtime, because even a runtime that serves no kinds answers version
// and discovery requests.
func discoverer(t *testing.T, config *rest.Config) *discovery.DiscoveryClient {
	t.Helper()
	discoverer, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		t.Fatalf("creating a client of the runtime: %v", err)
	}
	return discoverer
}

// checkChange waits until the change of the worker pool is complete. The change must increment the generation once and must not
// change the machine image of the nodes. The applied Shoot names no image: a garden that set the image default again would
// replace the nodes as soon as the cloud profile offered a newer image.
func (g Garden) checkChange(ctx context.Context, t *testing.T, name string, before *gardencorev1beta1.Shoot) {
	t.Helper()
	shoot := g.await(ctx, t, name, "its change has succeeded", nil, succeeded(gardencorev1beta1.LastOperationTypeReconcile))
	if shoot.Generation != before.Generation+1 {
		t.Errorf("one change of the spec raised the generation from %d to %d", before.Generation, shoot.Generation)
	}
	if workers := shoot.Spec.Provider.Workers; len(workers) != 1 || workers[0].Maximum != 5 {
		t.Errorf("the shoot does not contain the change: %+v", workers)
	}
	if now, was := shoot.Spec.Provider.Workers[0].Machine.Image, before.Spec.Provider.Workers[0].Machine.Image; *now.Version != *was.Version {
		t.Errorf("the machine image changed from %s to %s without a request", *was.Version, *now.Version)
	}
}

// checkConfinement makes the Shoot confine changes to its maintenance window, and changes it. This must not increment the generation. A
// request to reconcile the Shoot must roll out the change.
func (g Garden) checkConfinement(ctx context.Context, t *testing.T, shoot *gardencorev1beta1.Shoot) {
	t.Helper()
	before := g.get(ctx, t, shoot.Name)
	shoot.Spec.Maintenance = &gardencorev1beta1.Maintenance{ConfineSpecUpdateRollout: new(true)}
	shoot.Spec.Provider.Workers[0].Maximum = 6
	g.apply(ctx, t, shoot)
	confined := g.get(ctx, t, shoot.Name)
	if confined.Generation != before.Generation || confined.Spec.Provider.Workers[0].Maximum != 6 {
		t.Errorf("a confined change raised the generation from %d to %d: %+v", before.Generation, confined.Generation, confined.Spec.Provider.Workers)
	}
	read := confined.DeepCopy()
	metav1.SetMetaDataAnnotation(&confined.ObjectMeta, v1beta1constants.GardenerOperation, v1beta1constants.GardenerOperationReconcile)
	if err := g.Client.Patch(ctx, confined, client.MergeFrom(read)); err != nil {
		t.Fatalf("requesting a reconciliation: %v", err)
	}
	after := g.await(ctx, t, shoot.Name, "its confined change has succeeded", nil, succeeded(gardencorev1beta1.LastOperationTypeReconcile))
	if after.Generation != before.Generation+1 {
		t.Errorf("a requested reconciliation raised the generation from %d to %d", before.Generation, after.Generation)
	}
}

// checkDeletion deletes the runtime and checks that the Shoot and its CA certificates are gone. A later runtime with the same
// name must have a new client CA, so that it rejects old kubeconfigs.
func (g Garden) checkDeletion(ctx context.Context, t *testing.T, name string) {
	t.Helper()
	var last *gardencorev1beta1.LastOperation
	g.remove(ctx, t, name, func(shoot *gardencorev1beta1.Shoot) { last = shoot.Status.LastOperation })
	if last == nil || last.Type != gardencorev1beta1.LastOperationTypeDelete {
		t.Errorf("the shoot's last operation is %+v, want its deletion", last)
	}
	for _, object := range []client.Object{
		&gardencorev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Name: name}},
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name + ".ca-cluster"}},
		&gardencorev1beta1.InternalSecret{ObjectMeta: metav1.ObjectMeta{Name: name + ".ca-client"}},
	} {
		key := client.ObjectKey{Namespace: g.Namespace, Name: object.GetName()}
		if err := g.Client.Get(ctx, key, object); !apierrors.IsNotFound(err) {
			t.Errorf("%T %s must be deleted together with the shoot, got: %v", object, key, err)
		}
	}
}
