//go:build garden

package deployments_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/uuid"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/yaml"

	"github.com/environment-broker/environment-broker/bundle/api/v1alpha1"
	"github.com/environment-broker/environment-broker/bundle/controller/deployments"
	"github.com/environment-broker/environment-broker/test/apiserver"
)

// hub and target are the configurations of two API servers. They share an etcd, in which each has its own prefix.
var hub, target *rest.Config

// targetKubeconfig is a kubeconfig for the target's administrator.
var targetKubeconfig []byte

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	ctrl.SetLogger(logr.Discard())

	environment, err := apiserver.New(apiserver.CRDs)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)

		return 1
	}

	started, err := environment.Start()
	if err != nil {
		fmt.Fprintf(os.Stderr, "starting the kube-apiserver in .bin, which `make garden` builds: %v\n", err)

		return 1
	}
	defer environment.Stop()

	second, err := apiserver.Server()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)

		return 1
	}

	second.EtcdURL = environment.ControlPlane.Etcd.URL
	second.Configure().Set("etcd-prefix", "/target")

	if err := second.Start(); err != nil {
		fmt.Fprintf(os.Stderr, "starting the kube-apiserver of the target: %v\n", err)

		return 1
	}
	defer second.Stop()

	plane := &envtest.ControlPlane{APIServer: second}

	user, err := plane.AddUser(envtest.User{Name: "admin", Groups: []string{"system:masters"}}, &rest.Config{QPS: -1})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)

		return 1
	}

	if targetKubeconfig, err = user.KubeConfig(); err != nil {
		fmt.Fprintln(os.Stderr, err)

		return 1
	}

	hub, target = started, user.Config()
	hub.QPS = -1

	return m.Run()
}

const class = "core-rukpak-io-plain"

// fixture is one test's BundleDeployment with its controller.
type fixture struct {
	*testing.T
	client.Client

	name    string
	options deployments.Options
	under   *deployments.Reconciler
	events  *events.FakeRecorder

	mu     sync.Mutex
	now    time.Time
	writes int
	order  []string
	// calls are all calls of the controller except watches.
	calls []string
	// lists is the client of a running controller.
	lists *lists
	// contents maps the address of a source to manifests.
	contents map[string]string
	// unreadable makes Load fail.
	unreadable bool
}

func newFixture(t *testing.T) *fixture {
	t.Helper()

	scheme := runtime.NewScheme()
	if err := clientscheme.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}

	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}

	f := &fixture{
		T: t, name: "bd-" + uuid.NewString()[:8], events: events.NewFakeRecorder(1000), now: time.Now().Truncate(time.Second),
		contents: map[string]string{},
	}
	plain := f.connect(hub, scheme)
	f.Client = plain

	counted := rest.CopyConfig(hub)
	counted.Wrap(f.count)

	connection := f.connect(counted, scheme)
	f.options = deployments.Options{
		Class: class, Client: connection, Reader: connection, Namespace: "default", Hub: counted, Content: f, Events: f.events,
		Now: func() time.Time {
			f.mu.Lock()
			defer f.mu.Unlock()

			return f.now
		},
	}
	f.restart()

	return f
}

func (f *fixture) connect(config *rest.Config, scheme *runtime.Scheme) client.Client {
	f.Helper()

	made, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		f.Fatal(err)
	}

	return made
}

// restart replaces the controller by a new one.
func (f *fixture) restart() {
	f.Helper()

	made, err := deployments.New(f.options)
	if err != nil {
		f.Fatal(err)
	}

	f.under = made
}

type roundTripper func(*http.Request) (*http.Response, error)

func (r roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return r(request) }

// count counts and records the writes of the controller, without dry runs.
func (f *fixture) count(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		if !request.URL.Query().Has("watch") {
			f.mu.Lock()
			f.calls = append(f.calls, request.Method+" "+request.URL.Path)
			f.mu.Unlock()
		}

		if request.Method != http.MethodGet && !request.URL.Query().Has("dryRun") {
			f.mu.Lock()
			f.writes++
			f.order = append(f.order, request.Method+" "+request.URL.Path)
			f.mu.Unlock()
		}

		return next.RoundTrip(request)
	})
}

// written returns the writes since the last call.
func (f *fixture) written() []string {
	f.mu.Lock()
	defer f.mu.Unlock()

	order := f.order
	f.order, f.writes = nil, 0

	return order
}

func (f *fixture) advance(by time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()

	f.now = f.now.Add(by)
}

// advancePastDeletion advances the time until the given time has passed since the deletion of the BundleDeployment. The time of the deletion
// comes from the clock of the API server, which continues while the test's clock stands still.
func (f *fixture) advancePastDeletion(by time.Duration) {
	f.Helper()

	deleted := f.deployment().DeletionTimestamp

	f.mu.Lock()
	defer f.mu.Unlock()

	f.now = deleted.Add(by)
}

// Load implements deployments.Content. The text hunter2 is secret.
func (f *fixture) Load(_ context.Context, release deployments.Release) (deployments.Loaded, error) {
	loaded, bundle := deployments.Loaded{Masked: []string{"hunter2"}}, release.Bundle

	if f.unreadable {
		return loaded, errors.New("the content server is unreachable")
	}

	if bundle.Status.ContentURL == "" {
		return loaded, fmt.Errorf("the Bundle %s has no contentURL", bundle.Name)
	}

	for text := range strings.SplitSeq(f.contents[bundle.Spec.Source.HTTP.URL], "---\n") {
		if strings.TrimSpace(text) == "" {
			continue
		}

		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(text), &object.Object); err != nil {
			return loaded, err
		}

		loaded.Objects = append(loaded.Objects, object)
	}

	return loaded, nil
}

// content returns a source with the manifests.
func (f *fixture) content(key, manifests string) v1alpha1.BundleSource {
	address := "https://example.com/" + f.name + "/" + key
	f.contents[address] = manifests

	return v1alpha1.BundleSource{Type: v1alpha1.SourceTypeHTTP, HTTP: &v1alpha1.HTTPSource{URL: address}}
}

// create creates the BundleDeployment.
func (f *fixture) create(source v1alpha1.BundleSource, change ...func(*v1alpha1.BundleDeployment)) {
	f.Helper()

	made := &v1alpha1.BundleDeployment{
		ObjectMeta: metav1.ObjectMeta{Name: f.name},
		Spec: v1alpha1.BundleDeploymentSpec{
			ProvisionerClassName: f.options.Class, Template: v1alpha1.BundleTemplate{Spec: v1alpha1.TemplateSpec{ProvisionerClassName: "foreign", Source: source}},
		},
	}
	for _, each := range change {
		each(made)
	}

	if err := f.Create(f.Context(), made); err != nil {
		f.Fatal(err)
	}
}

// change changes the BundleDeployment.
func (f *fixture) change(change func(*v1alpha1.BundleDeployment)) {
	f.Helper()

	found := f.deployment()
	change(found)

	if err := f.Update(f.Context(), found); err != nil {
		f.Fatal(err)
	}
}

// upgrade gives the template another source.
func (f *fixture) upgrade(source v1alpha1.BundleSource) {
	f.Helper()
	f.change(func(found *v1alpha1.BundleDeployment) { found.Spec.Template.Spec.Source = source })
}

func (f *fixture) deployment() *v1alpha1.BundleDeployment {
	f.Helper()

	found := &v1alpha1.BundleDeployment{}
	if err := f.Get(f.Context(), client.ObjectKey{Name: f.name}, found); err != nil {
		f.Fatal(err)
	}

	return found
}

func (f *fixture) gone() bool {
	f.Helper()

	err := f.Get(f.Context(), client.ObjectKey{Name: f.name}, &v1alpha1.BundleDeployment{})
	if client.IgnoreNotFound(err) != nil {
		f.Fatal(err)
	}

	return err != nil
}

func (f *fixture) bundles() []v1alpha1.Bundle { return f.bundlesOf(f.name) }

func (f *fixture) bundlesOf(deployment string) []v1alpha1.Bundle {
	f.Helper()

	list := &v1alpha1.BundleList{}
	if err := f.List(f.Context(), list, client.MatchingLabels{v1alpha1.LabelOwnerName: deployment}); err != nil {
		f.Fatal(err)
	}

	return list.Items
}

// unpack unpacks all Bundles whose content is known, as a provisioner of class foreign would. It marks the others as failing.
func (f *fixture) unpack() { f.unpackOf(f.name) }

func (f *fixture) unpackOf(deployment string) {
	f.Helper()

	for _, bundle := range f.bundlesOf(deployment) {
		if bundle.Status.Phase != "" {
			continue
		}

		condition := metav1.Condition{Type: v1alpha1.TypeUnpacked, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonUnpackSuccessful, LastTransitionTime: metav1.Now()}
		bundle.Status.Phase, bundle.Status.ContentURL = v1alpha1.PhaseUnpacked, "https://content.example.com/"+bundle.Name
		bundle.Status.Digest = fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(f.contents[bundle.Spec.Source.HTTP.URL])))

		if f.contents[bundle.Spec.Source.HTTP.URL] == "" {
			bundle.Status.Phase, bundle.Status.ContentURL, bundle.Status.Digest = v1alpha1.PhaseFailing, "", ""
			condition.Status, condition.Reason, condition.Message = metav1.ConditionFalse, v1alpha1.ReasonUnpackFailed, "no such archive"
		}

		bundle.Status.Conditions = []metav1.Condition{condition}
		if err := f.Client.Status().Update(f.Context(), &bundle); err != nil {
			f.Fatal(err)
		}
	}
}

// pass makes the controller reconcile the BundleDeployment once. It verifies that all conditions are set for the current
// generation.
func (f *fixture) pass() (time.Duration, error) {
	f.Helper()

	result, err := f.under.Reconcile(f.Context(), reconcile.Request{NamespacedName: client.ObjectKey{Name: f.name}})
	if f.gone() {
		return result.RequeueAfter, err
	}

	found := f.deployment()
	if found.Spec.ProvisionerClassName != f.options.Class {
		return result.RequeueAfter, err
	}

	if found.Status.ObservedGeneration != found.Generation || len(found.Status.Conditions) != 3 {
		f.Errorf("the status describes generation %d of %d: %+v", found.Status.ObservedGeneration, found.Generation, found.Status.Conditions)
	}

	for _, condition := range found.Status.Conditions {
		if condition.ObservedGeneration != found.Generation || condition.Reason == "" {
			f.Errorf("a condition of generation %d: %+v", found.Generation, condition)
		}
	}

	return result.RequeueAfter, err
}

// settle unpacks Bundles, advances the time and repeats reconciliations, until the controller waits for longer than a few
// seconds.
func (f *fixture) settle() *v1alpha1.BundleDeployment {
	f.Helper()

	quiet := 0

	for range 60 {
		after, err := f.pass()
		f.unpack()

		switch {
		case f.gone():
			return nil
		case err == nil && (after == 0 || after > 5*time.Second):
			quiet++
		default:
			quiet = 0

			time.Sleep(20 * time.Millisecond)
			f.advance(after)
		}

		if quiet == 2 {
			return f.deployment()
		}
	}

	f.Fatalf("not settled: %+v", f.deployment().Status)

	return nil
}

// want verifies a condition.
func (f *fixture) want(name string, status metav1.ConditionStatus, reason, message string) {
	f.Helper()

	found := meta.FindStatusCondition(f.deployment().Status.Conditions, name)
	if found == nil || found.Status != status || found.Reason != reason || !strings.Contains(found.Message, message) {
		f.Errorf("%s is %+v, want %s, %s, %q", name, found, status, reason, message)
	}
}

// wantInstalled verifies that the Bundle of the current template is active, and that no other Bundle exists.
func (f *fixture) wantInstalled() {
	f.Helper()
	f.want(v1alpha1.TypeInstalled, metav1.ConditionTrue, v1alpha1.ReasonInstallationSucceeded, "")
	f.want(v1alpha1.TypeHasValidBundle, metav1.ConditionTrue, v1alpha1.ReasonUnpackSuccessful, "")

	active, all := f.deployment().Status.ActiveBundle, f.bundles()
	if len(all) != 1 || all[0].Name != active || all[0].Spec.Source.HTTP.URL != f.deployment().Spec.Template.Spec.Source.HTTP.URL {
		f.Errorf("the active Bundle is %q of %v", active, all)
	}
}

// configMap returns a manifest. Its name is unique to the test.
func (f *fixture) configMap(name, value string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s-%s, namespace: default}\ndata: {key: %q}\n---\n", f.name, name, value)
}

// value returns the value in a ConfigMap on a cluster, or "" if it does not exist.
func (f *fixture) value(on client.Client, name string) string {
	f.Helper()

	found := &corev1.ConfigMap{}

	err := on.Get(f.Context(), client.ObjectKey{Namespace: "default", Name: f.name + "-" + name}, found)
	if apierrors.IsNotFound(err) {
		return ""
	}

	if err != nil {
		f.Fatal(err)
	}

	return found.Data["key"]
}

// remove deletes the BundleDeployment and waits until it is gone.
func (f *fixture) remove() {
	f.Helper()

	if err := f.Delete(f.Context(), f.deployment()); err != nil {
		f.Fatal(err)
	}

	if f.settle() != nil {
		f.Errorf("not removed: %+v", f.deployment().Status)
	}
}
