//go:build garden

package ebctl_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/environment-broker/environment-broker/bundle/api/v1alpha1"
	"github.com/environment-broker/environment-broker/bundle/bundletest"
	"github.com/environment-broker/environment-broker/internal/ebctl"
	"github.com/environment-broker/environment-broker/internal/ebctl/follow"
)

// bundleKubeconfig writes a kubeconfig with two contexts: the API server of the tests, and one that does not exist.
func bundleKubeconfig(t *testing.T) string {
	t.Helper()

	config := clientcmdapi.NewConfig()
	config.Clusters["tests"] = &clientcmdapi.Cluster{Server: bundleAPI.Host, CertificateAuthorityData: bundleAPI.CAData}
	config.Clusters["gone"] = &clientcmdapi.Cluster{Server: "https://127.0.0.1:1"}
	config.AuthInfos["tests"] = &clientcmdapi.AuthInfo{ClientCertificateData: bundleAPI.CertData, ClientKeyData: bundleAPI.KeyData}
	config.AuthInfos["nobody"] = &clientcmdapi.AuthInfo{Token: "wrong"}
	config.Contexts["tests"] = &clientcmdapi.Context{Cluster: "tests", AuthInfo: "tests"}
	config.Contexts["gone"] = &clientcmdapi.Context{Cluster: "gone", AuthInfo: "tests"}
	config.Contexts["nobody"] = &clientcmdapi.Context{Cluster: "tests", AuthInfo: "nobody"}
	config.CurrentContext = "tests"

	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		t.Fatal(err)
	}

	return path
}

// bundleCommand runs 'ebctl bundle' with the kubeconfig in KUBECONFIG.
func bundleCommand(t *testing.T, kubeconfig string, wantCode int, args ...string) (out, problems string) {
	t.Helper()

	out, problems, code := bundleRun(t, kubeconfig, args...)
	if code != wantCode {
		t.Errorf("%q: exit code %d, want %d\n%s%s", args, code, wantCode, out, problems)
	}

	return out, problems
}

// bundleRun runs 'ebctl bundle' and returns its exit code.
func bundleRun(t *testing.T, kubeconfig string, args ...string) (out, problems string, code int) {
	t.Helper()

	var stdout, stderr strings.Builder

	code = ebctl.App{
		In: strings.NewReader(""), Out: &stdout, Err: &stderr,
		Environment: func(name string) string {
			return map[string]string{"KUBECONFIG": kubeconfig}[name]
		},
		Terminal:     func() (follow.Size, bool) { return follow.Size{}, false },
		Interactive:  func() bool { return false },
		Clock:        clock.RealClock{},
		PollInterval: 20 * time.Millisecond,
	}.RunChecked(t.Context(), append([]string{"bundle"}, args...))

	return stdout.String(), stderr.String(), code
}

// provisioner acts as the controllers of the bundle provisioner.
type provisioner struct {
	client.Client

	t *testing.T
}

func newProvisioner(t *testing.T) provisioner {
	t.Helper()

	return provisioner{bundletest.Client(t, bundleAPI), t}
}

// deployment waits until ebctl has created the BundleDeployment. The test removes it at its end.
func (p provisioner) deployment(name string) *v1alpha1.BundleDeployment {
	p.t.Helper()

	found := &v1alpha1.BundleDeployment{}

	bundletest.Eventually(p.t, func() string {
		if err := p.Get(p.t.Context(), client.ObjectKey{Name: name}, found); err != nil {
			return err.Error()
		}

		return ""
	})
	p.t.Cleanup(func() { bundletest.Delete(p.t, p, found.DeepCopy()) })

	return found
}

// bundle creates a Bundle of a BundleDeployment in the given phase.
func (p provisioner) bundle(owner *v1alpha1.BundleDeployment, name string, phase v1alpha1.Phase) *v1alpha1.Bundle {
	p.t.Helper()

	made := &v1alpha1.Bundle{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
			v1alpha1.LabelOwnerKind: v1alpha1.KindBundleDeployment, v1alpha1.LabelOwnerName: owner.Name, v1alpha1.LabelTemplateHash: "abc",
		}},
		Spec: v1alpha1.BundleSpec{
			ProvisionerClassName: owner.Spec.Template.Spec.ProvisionerClassName, Source: owner.Spec.Template.Spec.Source,
		},
	}
	if err := controllerutil.SetControllerReference(owner, made, p.Scheme()); err != nil {
		p.t.Fatal(err)
	}

	if err := p.Create(p.t.Context(), made); err != nil {
		p.t.Fatal(err)
	}

	p.t.Cleanup(func() { bundletest.Delete(p.t, p, made.DeepCopy()) })

	made.Status = v1alpha1.BundleStatus{Phase: phase, ObservedGeneration: made.Generation, Conditions: []metav1.Condition{{
		Type: v1alpha1.TypeUnpacked, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonUnpacking, Message: "fetching the content",
		LastTransitionTime: metav1.Now(),
	}}}
	if err := p.Status().Update(p.t.Context(), made); err != nil {
		p.t.Fatal(err)
	}

	return made
}

// report writes the status of a BundleDeployment: the active Bundle, and conditions as type, status, reason and message.
func (p provisioner) report(deployment *v1alpha1.BundleDeployment, active string, conditions ...[4]string) {
	p.t.Helper()

	deployment.Status = v1alpha1.BundleDeploymentStatus{ActiveBundle: active, ObservedGeneration: deployment.Generation}
	for _, each := range conditions {
		deployment.Status.Conditions = append(deployment.Status.Conditions, metav1.Condition{
			Type: each[0], Status: metav1.ConditionStatus(each[1]), Reason: each[2], Message: each[3],
			ObservedGeneration: deployment.Generation, LastTransitionTime: metav1.Now(),
		})
	}

	if err := p.Status().Update(p.t.Context(), deployment); err != nil {
		p.t.Fatal(err)
	}
}

// started starts 'ebctl bundle' in the background, while the test acts as the provisioner. wait returns its output once it has ended.
func started(t *testing.T, kubeconfig string, wantCode int, args ...string) (wait func() (out, problems string)) {
	t.Helper()

	var out, problems string

	ended := make(chan struct{})

	go func() {
		defer close(ended)

		out, problems = bundleCommand(t, kubeconfig, wantCode, args...)
	}()

	return func() (string, string) {
		t.Helper()

		select {
		case <-ended:
		case <-time.After(4 * time.Minute): // the machine may be busy
			t.Fatal("the command does not end")
		}

		return out, problems
	}
}

func wantTexts(t *testing.T, text string, wanted ...string) {
	t.Helper()

	for _, want := range wanted {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in:\n%s", want, text)
		}
	}
}

func TestBundleCreateGetAndList(t *testing.T) {
	kubeconfig, provisioner := bundleKubeconfig(t), newProvisioner(t)

	out, _ := bundleCommand(t, kubeconfig, ebctl.ExitOK, "list")
	wantTexts(t, out, "No BundleDeployments found.")

	bundleCommand(t, kubeconfig, ebctl.ExitOK, "create", "addon", "--git", "https://git.example.com/addon.git", "--tag", "v1", "--directory", "deploy",
		"--target-secret", "runtime")

	deployment := provisioner.deployment("addon")
	if git := deployment.Spec.Template.Spec.Source.Git; git == nil || git.Repository != "https://git.example.com/addon.git" ||
		git.Ref != (v1alpha1.GitRef{Tag: "v1"}) || git.Directory != "deploy" || deployment.Spec.Target.KubeconfigSecretRef.Name != "runtime" ||
		deployment.Spec.ProvisionerClassName != "core-rukpak-io-plain" {
		t.Errorf("got %+v", deployment.Spec)
	}

	out, _ = bundleCommand(t, kubeconfig, ebctl.ExitOK, "get", "addon")
	wantTexts(t, out, "No provisioner has processed the BundleDeployment yet.", "There is no Bundle yet.")

	provisioner.bundle(deployment, "addon-1", v1alpha1.PhaseUnpacking)
	provisioner.report(deployment, "", [4]string{v1alpha1.TypeInstalled, "False", v1alpha1.ReasonInstallPending, "waiting for the Bundle"})

	out, _ = bundleCommand(t, kubeconfig, ebctl.ExitOK, "get", "addon")
	wantTexts(t, out, "addon-1", "Unpacking", "fetching the content", "InstallPending", "waiting for the Bundle", "the Secret runtime",
		"git https://git.example.com/addon.git v1")

	out, _ = bundleCommand(t, kubeconfig, ebctl.ExitOK, "list", "-o", "wide")
	wantTexts(t, out, "addon", "git", "Unpacking", "InstallPending", "core-rukpak-io-plain", "waiting for the Bundle")

	out, _ = bundleCommand(t, kubeconfig, ebctl.ExitOK, "list", "-o", "name")
	if out != "addon\n" {
		t.Errorf("got names %q", out)
	}

	var listed struct {
		BundleDeployments []v1alpha1.BundleDeployment `json:"bundleDeployments"`
		Bundles           []v1alpha1.Bundle           `json:"bundles"`
	}

	out, _ = bundleCommand(t, kubeconfig, ebctl.ExitOK, "list", "-o", "json")
	if err := json.Unmarshal([]byte(out), &listed); err != nil || len(listed.BundleDeployments) != 1 || len(listed.Bundles) != 1 ||
		listed.Bundles[0].Kind != v1alpha1.KindBundle || listed.BundleDeployments[0].ManagedFields != nil {
		t.Errorf("got %v\n%s", err, out)
	}
}

func TestBundleExitCodes(t *testing.T) {
	kubeconfig, provisioner := bundleKubeconfig(t), newProvisioner(t)

	_, problems := bundleCommand(t, kubeconfig, ebctl.ExitNotFound, "get", "missing")
	wantTexts(t, problems, `"missing" not found`, "ebctl bundle list")

	bundleCommand(t, kubeconfig, ebctl.ExitOK, "create", "twice", "--upload")
	provisioner.deployment("twice")

	_, problems = bundleCommand(t, kubeconfig, ebctl.ExitConflict, "create", "twice", "--upload")
	wantTexts(t, problems, `"twice" already exists`)

	// The API server checks values with the CEL rules of the definitions.
	_, problems = bundleCommand(t, kubeconfig, ebctl.ExitError, "create", "invalid", "--upload", "--class", "a.b")
	wantTexts(t, problems, "provisionerClassName")

	_, problems = bundleCommand(t, kubeconfig, ebctl.ExitError, "list", "--kube-context", "nobody")
	wantTexts(t, problems, "rejects the credentials")

	bundleCommand(t, kubeconfig, ebctl.ExitError, "list", "--kube-context", "gone")
	bundleCommand(t, kubeconfig, ebctl.ExitUsage, "list", "--kube-context", "unknown")
	bundleCommand(t, filepath.Join(t.TempDir(), "none"), ebctl.ExitUsage, "list")

	broken := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(broken, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}

	bundleCommand(t, kubeconfig, ebctl.ExitUsage, "list", "--kubeconfig", broken)
}

func TestBundleWait(t *testing.T) {
	kubeconfig, provisioner := bundleKubeconfig(t), newProvisioner(t)
	wait := started(t, kubeconfig, ebctl.ExitOK, "create", "awaited", "--image", "registry.example.com/addon:v1", "--wait")

	deployment := provisioner.deployment("awaited")
	valid := [4]string{v1alpha1.TypeHasValidBundle, "True", v1alpha1.ReasonUnpackSuccessful, "unpacked"}
	installed := [4]string{v1alpha1.TypeInstalled, "True", v1alpha1.ReasonInstallationSucceeded, "installed"}

	provisioner.bundle(deployment, "awaited-1", v1alpha1.PhaseUnpacked)
	provisioner.report(deployment, "", valid, [4]string{v1alpha1.TypeInstalled, "False", v1alpha1.ReasonInstallPending, "waiting for CRDs"})
	provisioner.report(deployment, "awaited-1", valid, installed)

	out, _ := wait()
	wantTexts(t, out, "awaited-1", "InstallationSucceeded")
}

// TestBundleWaitForTheTemplate verifies that an active Bundle of another template does not end the wait, although it is installed.
func TestBundleWaitForTheTemplate(t *testing.T) {
	kubeconfig, provisioner := bundleKubeconfig(t), newProvisioner(t)
	bundleCommand(t, kubeconfig, ebctl.ExitOK, "create", "pivots", "--image", "registry.example.com/addon:v2")

	deployment := provisioner.deployment("pivots")
	former := deployment.DeepCopy()
	former.Spec.Template.Spec.Source.Image.Ref = "registry.example.com/addon:v1"
	provisioner.bundle(former, "pivots-1", v1alpha1.PhaseUnpacked)
	provisioner.report(deployment, "pivots-1",
		[4]string{v1alpha1.TypeHasValidBundle, "True", v1alpha1.ReasonUnpackPending, "fetching the next one"},
		[4]string{v1alpha1.TypeInstalled, "True", v1alpha1.ReasonInstallationSucceeded, "installed"})

	out, problems := bundleCommand(t, kubeconfig, ebctl.ExitTimedOut, "resume", "pivots", "--wait", "--wait-timeout", "50ms")
	wantTexts(t, problems, "timed out: Bundle pivots-1 is installed; UnpackPending: fetching the next one", "Only the wait has ended.")
	wantTexts(t, out, "pivots-1", "InstallationSucceeded")
}

// TestBundleWaitForTheConfig verifies that the wait continues while another config of the active Bundle is not installed. Such a rollback changes
// only the config.
func TestBundleWaitForTheConfig(t *testing.T) {
	kubeconfig, provisioner := bundleKubeconfig(t), newProvisioner(t)
	bundleCommand(t, kubeconfig, ebctl.ExitOK, "create", "configured", "--image", "registry.example.com/addon:v1")

	deployment := provisioner.deployment("configured")
	provisioner.bundle(deployment, "configured-1", v1alpha1.PhaseUnpacked)

	for reason, code := range map[string]int{
		v1alpha1.ReasonInstallPending:        ebctl.ExitTimedOut,
		v1alpha1.ReasonDependencyPending:     ebctl.ExitTimedOut,
		v1alpha1.ReasonSuspended:             ebctl.ExitTimedOut,
		v1alpha1.ReasonDryRun:                ebctl.ExitTimedOut,
		v1alpha1.ReasonInstallationSucceeded: ebctl.ExitOK,
	} {
		provisioner.report(deployment, "configured-1", [4]string{v1alpha1.TypeHasValidBundle, "True", v1alpha1.ReasonUnpackSuccessful, "unpacked"},
			[4]string{v1alpha1.TypeInstalled, "True", reason, "the state of the config"})

		_, problems := bundleCommand(t, kubeconfig, code, "resume", "configured", "--wait", "--wait-timeout", "50ms")
		if code == ebctl.ExitTimedOut {
			wantTexts(t, problems, "timed out: "+reason+": the state of the config")
		}
	}
}

func TestBundleWaitTimesOut(t *testing.T) {
	kubeconfig, provisioner := bundleKubeconfig(t), newProvisioner(t)
	_, problems := bundleCommand(t, kubeconfig, ebctl.ExitTimedOut, "create", "alone", "--upload", "--wait", "--wait-timeout", "50ms")
	provisioner.deployment("alone")
	wantTexts(t, problems, "alone: waiting for the provisioner of class core-rukpak-io-plain")
}

func TestBundleWaitReportsFailures(t *testing.T) {
	kubeconfig, provisioner := bundleKubeconfig(t), newProvisioner(t)

	for name, condition := range map[string][4]string{
		"unpack": {v1alpha1.TypeHasValidBundle, "False", v1alpha1.ReasonUnpackFailed, "the registry has no such image"},
		"load":   {v1alpha1.TypeHasValidBundle, "False", v1alpha1.ReasonBundleLoadFailed, "invalid manifest"},
		"apply":  {v1alpha1.TypeInstalled, "False", v1alpha1.ReasonInstallFailed, "the object belongs to another BundleDeployment"},
	} {
		wait := started(t, kubeconfig, ebctl.ExitOperationFailed, "create", name, "--config-map", "content", "--wait")
		provisioner.report(provisioner.deployment(name), "", condition)

		_, problems := wait()
		wantTexts(t, problems, condition[2], condition[3])
	}
}
