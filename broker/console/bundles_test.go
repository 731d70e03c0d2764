package console_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/environment-broker/environment-broker/broker/console"
	"github.com/environment-broker/environment-broker/bundle/api/v1alpha1"
	"github.com/environment-broker/environment-broker/internal/clients/bundleclient"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakehub"
	"github.com/environment-broker/environment-broker/process"
)

// lazyHub starts the API server of the bundle provisioner at the first request.
type lazyHub struct {
	f      *fixture
	reader *bundleclient.Client
}

// hub returns Bundles for the console that read from a simulated API server.
func (f *fixture) hub() console.Bundles { return &lazyHub{f: f} }

func (h *lazyHub) start() *bundleclient.Client {
	h.f.Helper()

	if h.reader != nil {
		return h.reader
	}

	f := h.f

	opened, err := fakehub.Open(f.Context(), f.TempDir(), logging.Discard())
	if err != nil {
		f.Fatal(err)
	}

	ctx, cancel := context.WithCancel(context.WithoutCancel(f.Context()))
	ended := make(chan error, 1)

	go func() { ended <- opened.Run(ctx) }()

	f.Cleanup(func() {
		cancel()

		if err := <-ended; err != nil {
			f.Error(err)
		}
	})

	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		f.Fatal(err)
	}

	kubeconfig, err := opened.Kubeconfig()
	if err != nil {
		f.Fatal(err)
	}

	path := filepath.Join(f.TempDir(), "kubeconfig")
	if err := os.WriteFile(path, kubeconfig, 0o600); err != nil {
		f.Fatal(err)
	}

	if f.bundles, err = client.New(opened.Config(), client.Options{Scheme: scheme}); err != nil {
		f.Fatal(err)
	}

	h.reader = &bundleclient.Client{KubeconfigPath: path}

	return h.reader
}

func (h *lazyHub) Deployments(ctx context.Context, query bundleclient.Query) (bundleclient.Page, error) {
	return h.start().Deployments(ctx, query)
}

func (h *lazyHub) Deployment(ctx context.Context, name string) (v1alpha1.BundleDeployment, []v1alpha1.Bundle, error) {
	return h.start().Deployment(ctx, name)
}

// deploy creates a BundleDeployment with the given runtime and conditions.
func (f *fixture) deploy(name, runtimeID string, conditions ...metav1.Condition) {
	f.Helper()

	deployment := &v1alpha1.BundleDeployment{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{bundleclient.LabelRuntime: runtimeID}},
		Spec: v1alpha1.BundleDeploymentSpec{ProvisionerClassName: "plain", Template: v1alpha1.BundleTemplate{Spec: v1alpha1.TemplateSpec{
			ProvisionerClassName: "plain", Source: v1alpha1.BundleSource{Type: v1alpha1.SourceTypeGit, Git: &v1alpha1.GitSource{
				Repository: "https://user:hush-hush@git.example.com/repo?token=hush-hush", Ref: v1alpha1.GitRef{Tag: "v1"},
			}},
		}}},
	}
	deployment.Spec.Config.Raw = []byte(`{"password":"hush-hush"}`)

	if err := f.bundles.Create(f.Context(), deployment); err != nil {
		f.Fatal(err)
	}

	for i := range conditions {
		conditions[i].LastTransitionTime = metav1.NewTime(f.clock.Now())
	}

	deployment.Status.Conditions, deployment.Status.ActiveBundle, deployment.Status.ObservedGeneration = conditions, name+"-1", deployment.Generation
	deployment.Status.History = []v1alpha1.Version{{
		Number: 3, Bundle: name + "-0", Digest: "sha256:00", InstalledAt: metav1.NewTime(f.clock.Now().Add(-time.Hour)), Template: deployment.Spec.Template,
	}}

	if err := f.bundles.Status().Update(f.Context(), deployment); err != nil {
		f.Fatal(err)
	}
}

// TestBundles lists the BundleDeployments of an API server page by page, and shows one.
func TestBundles(t *testing.T) {
	f := newFixture(t)

	if html := f.page("/console/bundles", http.StatusOK); !strings.Contains(html, "No BundleDeployment matches.") {
		t.Errorf("without objects: %s", html)
	}

	installed := metav1.Condition{Type: v1alpha1.TypeInstalled, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonInstallationSucceeded}
	failed := metav1.Condition{
		Type: v1alpha1.TypeInstalled, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonInstallFailed, Message: "the <webhook> denied it",
	}
	waiting := metav1.Condition{Type: v1alpha1.TypeInstalled, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonDependencyPending}
	unhealthy := metav1.Condition{Type: v1alpha1.TypeHealthy, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonUnhealthy, Message: "1 of 2 replicas"}

	f.deploy("a-failed", "runtime-1", failed)
	f.deploy("b-unhealthy", "runtime-1", installed, unhealthy)
	f.deploy("c-waiting", "runtime-2", waiting)

	for i := range 49 {
		f.deploy(fmt.Sprintf("d-%02d", i), "runtime-2", installed)
	}

	first := f.page("/console/bundles", http.StatusOK)
	for _, want := range []string{
		`<span class="badge bad">failed</span>`, "the &lt;webhook&gt; denied it", `<span class="badge bad">unhealthy</span>`, "1 of 2 replicas",
		`<span class="badge idle">pending</span>`, `<span class="badge ok">installed</span>`, "git https://git.example.com/repo v1", "d-46", "50 BundleDeployments on this page",
	} {
		if !strings.Contains(first, want) {
			t.Errorf("the first page lacks %s", want)
		}
	}

	_, after, _ := strings.Cut(first, `rel="next" href="`)
	next, _, _ := strings.Cut(after, `"`)

	if second := f.page(strings.ReplaceAll(next, "&amp;", "&"), http.StatusOK); !strings.Contains(second, "d-48") || strings.Contains(second, "d-46") {
		t.Errorf("the second page %s has other objects", next)
	}

	if html := f.page("/console/bundles?runtime=runtime-1", http.StatusOK); strings.Count(html, "<tr data-href") != 2 {
		t.Errorf("of a runtime: %s", html)
	}

	one := f.page("/console/bundles/a-failed", http.StatusOK)
	for _, want := range []string{"InstallFailed", "3: a-failed-0", "sha256:00", "There are no Bundles.", "/console/instances?search=runtime-1"} {
		if !strings.Contains(one, want) {
			t.Errorf("the page lacks %s", want)
		}
	}

	for name, html := range map[string]string{"the list": first, "an object": one} {
		if strings.Contains(html, "hush-hush") {
			t.Errorf("%s shows a secret", name)
		}
	}

	f.page("/console/bundles/none", http.StatusNotFound)
	f.page("/console/bundles/a%2Fb", http.StatusNotFound)
	f.page("/console/bundles?cursor=none", http.StatusBadRequest)
	f.page("/console/bundles?runtime=a%2Cb", http.StatusBadRequest)

	f.instance("one", process.Succeeded, func(i *environment.Instance) { i.RuntimeID = "runtime-1" })

	if html := f.page("/console/instances/one", http.StatusOK); !strings.Contains(html, "/console/bundles?runtime=runtime-1") {
		t.Error("the page of the instance has no link to its Bundles")
	}
}

// TestBundlesDuringUpgrades shows BundleDeployments whose former Bundle is installed, while another one failed or waits.
func TestBundlesDuringUpgrades(t *testing.T) {
	f := newFixture(t)
	f.page("/console/bundles", http.StatusOK) // starts the API server

	for reason, badge := range map[string]string{
		v1alpha1.ReasonUpgradeFailed:         `<span class="badge bad">failed</span>`,
		v1alpha1.ReasonInstallPending:        `<span class="badge ok">installed</span>`,
		v1alpha1.ReasonInstallationSucceeded: `<span class="badge ok">installed</span>`,
	} {
		id, message := strings.ToLower(reason), "the message of "+reason
		f.deploy("upgrade-"+id, id,
			metav1.Condition{Type: v1alpha1.TypeInstalled, Status: metav1.ConditionTrue, Reason: reason, Message: message},
			metav1.Condition{Type: v1alpha1.TypeHealthy, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonHealthy})

		html := f.page("/console/bundles?runtime="+id, http.StatusOK)
		if !strings.Contains(html, badge) {
			t.Errorf("%s: the page lacks %s: %s", reason, badge, html)
		}

		if shown := strings.Contains(html, message); shown != (reason != v1alpha1.ReasonInstallationSucceeded) {
			t.Errorf("%s: the message is shown: %t", reason, shown)
		}
	}
}
