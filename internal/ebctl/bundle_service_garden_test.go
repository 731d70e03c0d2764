//go:build garden

package ebctl_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/environment-broker/environment-broker/bundle/api/v1alpha1"
	"github.com/environment-broker/environment-broker/bundle/bundletest"
	"github.com/environment-broker/environment-broker/bundle/service"
	"github.com/environment-broker/environment-broker/internal/ebctl"
	"github.com/environment-broker/environment-broker/internal/logging"
)

// realProvisioner is a bundle provisioner with its own class.
type realProvisioner struct {
	namespace, class, address string
	// access contains the flags for the content server.
	access []string
}

// startProvisioner starts a bundle provisioner until the test ends.
func startProvisioner(t *testing.T) realProvisioner {
	t.Helper()

	namespace, cluster := bundletest.Namespace(t, bundleAPI), bundletest.Client(t, bundleAPI)

	if err := cluster.Create(t.Context(), &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: namespace},
		Rules: []rbacv1.PolicyRule{
			{NonResourceURLs: []string{"/bundles/*"}, Verbs: []string{"get"}}, {NonResourceURLs: []string{"/uploads/*"}, Verbs: []string{"put"}},
		},
	}); err != nil {
		t.Fatal(err)
	}

	token, tokenFile := bundletest.Token(t, bundleAPI, namespace, "client", namespace), filepath.Join(t.TempDir(), "token")
	writeFile(t, tokenFile, token)

	config := service.DefaultConfig()
	config.Address, config.StatusAddress, config.ShutdownDelay = "127.0.0.1:0", "127.0.0.1:0", 0
	config.Namespace, config.StoreDir, config.TLS.SelfSigned = namespace, t.TempDir(), true
	config.Bundles.PlainClass, config.Deployments.PlainClass = "class-"+namespace, "class-"+namespace
	config.Deployments.TokenFile = tokenFile

	replica, err := service.New(t.Context(), config, bundleAPI, logging.Discard())
	if err != nil {
		t.Fatal(err)
	}

	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)

	go func() { ended <- replica.Run(ctx) }()

	t.Cleanup(func() {
		stop()

		if err := <-ended; err != nil {
			t.Error(err)
		}
	})

	return realProvisioner{
		namespace, config.Bundles.PlainClass, replica.Address(), []string{"--token", token, "--ca-file", filepath.Join(config.StoreDir, "tls.crt")},
	}
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()

	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}

	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// folder writes a bundle that contains a ConfigMap with the given value, and returns its folder.
func (p realProvisioner) folder(t *testing.T, value string) string {
	t.Helper()

	folder := t.TempDir()
	writeFile(t, filepath.Join(folder, "manifests", "a.yaml"),
		"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: installed, namespace: "+p.namespace+"}\ndata: {value: \""+value+"\"}\n")

	return folder
}

// TestBundleWithTheProvisioner uploads, installs and reads content with the real provisioner.
func TestBundleWithTheProvisioner(t *testing.T) {
	kubeconfig, cluster, running := bundleKubeconfig(t), bundletest.Client(t, bundleAPI), startProvisioner(t)
	folder := running.folder(t, "1")

	wait := started(t, kubeconfig, ebctl.ExitOK, "create", "uploaded", "--upload", "--class", running.class, "--wait")
	provisioner := newProvisioner(t)
	deployment := provisioner.deployment("uploaded")
	bundle := ""

	bundletest.Eventually(t, func() string {
		made, problems, code := bundleRun(t, kubeconfig, "get", deployment.Name, "-o", "jsonpath={.bundles[0].metadata.name}")
		if code != ebctl.ExitOK || strings.TrimSpace(made) == "" {
			return "no Bundle yet: " + problems
		}

		bundle = strings.TrimSpace(made)

		return ""
	})

	// The API server of the tests has no garbage collector.
	t.Cleanup(func() { bundletest.Delete(t, cluster, &v1alpha1.Bundle{ObjectMeta: metav1.ObjectMeta{Name: bundle}}) })

	bundletest.Eventually(t, func() string {
		_, problems, code := bundleRun(t, kubeconfig, append([]string{"push", bundle, folder}, running.access...)...)
		if code != ebctl.ExitOK {
			return problems // the address is not reported yet
		}

		return ""
	})

	bundleCommand(t, kubeconfig, ebctl.ExitOK, append([]string{"push", bundle, folder, "--server", running.address}, running.access...)...)

	out, _ := wait()
	wantTexts(t, out, bundle, "Unpacked", "InstallationSucceeded")

	out, _ = bundleCommand(t, kubeconfig, ebctl.ExitOK, append([]string{"content", bundle}, running.access...)...)
	wantTexts(t, out, "manifests/a.yaml")
}

// TestBundleRun installs a folder, another version of it, and the first one again.
func TestBundleRun(t *testing.T) {
	kubeconfig, cluster, running := bundleKubeconfig(t), bundletest.Client(t, bundleAPI), startProvisioner(t)
	run := func(wantCode int, args ...string) (out, problems string) {
		t.Helper()

		return bundleCommand(t, kubeconfig, wantCode, args...)
	}
	install := func(folder string, more ...string) string {
		t.Helper()

		out, _ := run(ebctl.ExitOK, slices.Concat([]string{"run", "folder", folder}, more, running.access)...)

		return out
	}
	value := func(want string) {
		t.Helper()

		found := &corev1.ConfigMap{}
		err := cluster.Get(t.Context(), client.ObjectKey{Namespace: running.namespace, Name: "installed"}, found)

		if want == "" && !apierrors.IsNotFound(err) || want != "" && (err != nil || found.Data["value"] != want) {
			t.Errorf("got %v, %v instead of %q", found.Data, err, want)
		}
	}

	t.Cleanup(func() {
		bundletest.Delete(t, cluster, &v1alpha1.BundleDeployment{ObjectMeta: metav1.ObjectMeta{Name: "folder"}})
	})

	first, second := running.folder(t, "1"), running.folder(t, "2")
	out := install(first, "--class", running.class, "--target-kubeconfig", kubeconfig, "--namespace", running.namespace, "--wait")
	wantTexts(t, out, "InstallationSucceeded", "upload", "Unpacked", "the Secret folder-kubeconfig")
	value("1")

	_, problems := run(ebctl.ExitError, "rollback", "folder")
	wantTexts(t, problems, "has no earlier version")

	install(first, "--wait")                                                                      // changes nothing
	install(first, "--target-kubeconfig", kubeconfig, "--namespace", running.namespace, "--wait") // stores the Secret again
	install(second, "--wait")
	value("2")

	out, _ = run(ebctl.ExitOK, "history", "folder", "-o", "name")
	if out != "2\n1\n" {
		t.Errorf("got versions %q", out)
	}

	_, problems = run(ebctl.ExitUsage, "rollback", "folder", "--to", "7")
	wantTexts(t, problems, "has no version 7")

	// The content of the first version was uploaded once.
	_, problems = run(ebctl.ExitOK, "rollback", "folder", "--wait")
	wantTexts(t, problems, "rolling back to version 1")
	value("1")

	out, _ = run(ebctl.ExitOK, "history", "folder", "-o", "wide")
	wantTexts(t, out, "VERSION", "DIGEST", "3 ", "2 ", "1 ", "upload", "sha256:")

	run(ebctl.ExitOK, "suspend", "folder")
	out = install(second)
	wantTexts(t, out, "folder")
	value("1")

	// The template is not installed, so a rollback leads to the installed version.
	_, problems = run(ebctl.ExitOK, "rollback", "folder")
	wantTexts(t, problems, "rolling back to version 3")
	install(second)
	run(ebctl.ExitOK, "resume", "folder", "--wait")
	value("2")

	_, problems = run(ebctl.ExitUsage, slices.Concat([]string{"run", "folder", first, "--target-secret", "other"}, running.access)...)
	wantTexts(t, problems, "has another target")

	out, _ = run(ebctl.ExitOK, "delete", "folder", "--wait", "-o", "json")
	wantTexts(t, out, `"gone": true`)
	value("")
	run(ebctl.ExitNotFound, "delete", "folder")
}

// TestBundleRunChangesNothing verifies that invalid orders end before a BundleDeployment is stored.
func TestBundleRunChangesNothing(t *testing.T) {
	kubeconfig, provisioner := bundleKubeconfig(t), newProvisioner(t)

	program := filepath.Join(t.TempDir(), "kubeconfig")
	writeFile(t, program, "{contexts: [{name: a, context: {user: a}}], current-context: a, users: [{name: a, user: {exec: {command: sh, apiVersion: "+
		"client.authentication.k8s.io/v1, interactiveMode: Never}}}]}")

	file := filepath.Join(t.TempDir(), "kubeconfig")
	writeFile(t, file, "{clusters: [{name: a, cluster: {server: 'https://example.com', certificate-authority: ca.crt}}], users: [{name: a, user: {token: t}}], "+
		"contexts: [{name: a, context: {cluster: a, user: a}}], current-context: a}")

	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"no folder":      {[]string{"run", "nothing", filepath.Join(t.TempDir(), "none"), "--token", "t"}, "reading the folder"},
		"no credentials": {[]string{"run", "nothing", t.TempDir()}, "the kubeconfig has no token"},
		"a program": {
			[]string{"run", "nothing", t.TempDir(), "--token", "t", "--target-kubeconfig", program}, "exec plugins, auth providers and file references are not allowed",
		},
		"a file": {
			[]string{"run", "nothing", t.TempDir(), "--token", "t", "--wait-timeout", "2s", "--target-kubeconfig", file}, "must embed its CA certificate",
		},
		"no kubeconfig": {[]string{"run", "nothing", t.TempDir(), "--token", "t", "--target-kubeconfig", t.TempDir()}, "reading the kubeconfig"},
	} {
		_, problems := bundleCommand(t, kubeconfig, ebctl.ExitUsage, c.args...)
		if !strings.Contains(problems, c.want) {
			t.Errorf("%s: no %q in:\n%s", name, c.want, problems)
		}
	}

	bundleCommand(t, kubeconfig, ebctl.ExitNotFound, "get", "nothing")
	testForeignSecret(t, kubeconfig)

	bundleCommand(t, kubeconfig, ebctl.ExitOK, "create", "tagged", "--git", "https://git.example.com/a.git", "--tag", "v1")
	provisioner.deployment("tagged")

	_, problems := bundleCommand(t, kubeconfig, ebctl.ExitUsage, "run", "tagged", t.TempDir(), "--token", "t")
	wantTexts(t, problems, "git https://git.example.com/a.git v1", "use another name")
}

// testForeignSecret verifies that 'run' does not replace a Secret with the kubeconfig of another installation.
func testForeignSecret(t *testing.T, kubeconfig string) {
	t.Helper()

	cluster := bundletest.Client(t, bundleAPI)
	foreign := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: bundletest.Namespace(t, bundleAPI), Name: "taken-kubeconfig"},
		Data:       map[string][]byte{"kubeconfig": []byte("of somebody else")},
	}

	if err := cluster.Create(t.Context(), foreign); err != nil {
		t.Fatal(err)
	}

	_, problems := bundleCommand(t, kubeconfig, ebctl.ExitUsage, "run", "taken", t.TempDir(), "--token", "t", "--wait-timeout", "2s", "--target-kubeconfig", kubeconfig,
		"--namespace", foreign.Namespace)
	wantTexts(t, problems, "the Secret "+foreign.Namespace+"/taken-kubeconfig exists and does not belong to the BundleDeployment taken")

	bundleCommand(t, kubeconfig, ebctl.ExitNotFound, "get", "taken")

	if err := cluster.Get(t.Context(), client.ObjectKeyFromObject(foreign), foreign); err != nil || string(foreign.Data["kubeconfig"]) != "of somebody else" {
		t.Errorf("the Secret has %q, %v", foreign.Data["kubeconfig"], err)
	}
}
