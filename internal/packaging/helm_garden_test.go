//go:build garden

package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/environment-broker/environment-broker/bundle/bundletest"
	"github.com/environment-broker/environment-broker/internal/secret"
	"github.com/environment-broker/environment-broker/test/apiserver"
)

const (
	installationPage = "../../docs/operator/install.md"
	// clusterMark matches the comment before the blocks of the page that TestInstallation runs.
	clusterMark = `<!-- not run: needs [^\n]*; TestInstallation of internal/packaging runs it -->`
	// helmLimit is the time limit of a block. Helm takes seconds.
	helmLimit = 5 * time.Minute
)

// TestInstallation runs the commands of the page for Helm and Kustomize, in the order of the page, on a real API server of its own: namespace and Secrets,
// evaluation, upgrade to production, removal, and the kustomization.
func TestInstallation(t *testing.T) {
	target := apiserver.Run(t).Config
	connection := bundletest.Client(t, target)
	folder := t.TempDir()

	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}

	for _, program := range []string{"helm", "kubectl"} {
		if _, err := os.Stat(filepath.Join(root, ".bin", program)); err != nil {
			t.Fatalf("%v: `make %s` builds it", err, program)
		}
	}

	page, err := os.ReadFile(installationPage)
	if err != nil {
		t.Fatal(err)
	}

	values := regexp.MustCompile("(?s)```yaml\n(# values.yaml\n.*?)```").FindSubmatch(page)
	if values == nil {
		t.Fatal("the page has no values.yaml")
	}

	for name, content := range map[string][]byte{
		"kubeconfig": apiserver.Kubeconfig(t, target), "values.yaml": values[1],
		"gardener.kubeconfig": []byte("a kubeconfig"), "postgres-ca.crt": []byte("a certificate"),
	} {
		if err := os.WriteFile(filepath.Join(folder, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}

	if err := os.Symlink(filepath.Join(root, "resources"), filepath.Join(folder, "resources")); err != nil {
		t.Fatal(err)
	}

	blocks := regexp.MustCompile("(?s)"+clusterMark+"\n```sh\n(.*?)```").FindAllSubmatch(page, -1)
	if len(blocks) != len(effects()) {
		t.Fatalf("the page has %d blocks for a cluster, want %d", len(blocks), len(effects()))
	}

	for i, block := range blocks {
		ctx, cancel := context.WithTimeout(t.Context(), helmLimit)
		command := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", string(block[1]))
		command.Dir = folder
		command.Env = append(os.Environ(), "HOME="+folder, "KUBECONFIG="+filepath.Join(folder, "kubeconfig"),
			"PATH="+filepath.Join(root, ".bin")+":"+os.Getenv("PATH"))

		output, err := command.CombinedOutput()

		cancel()

		if err != nil {
			t.Fatalf("%s: %v\n%s", block[1], err, output)
		}

		effects()[i](t, connection, string(output))
	}
}

// effects returns the checks after each block.
func effects() []func(*testing.T, client.Client, string) {
	return []func(*testing.T, client.Client, string){
		func(t *testing.T, connection client.Client, _ string) {
			t.Helper()
			checkSecrets(t, connection)
		},
		func(t *testing.T, connection client.Client, output string) {
			t.Helper()

			if driver := installed(t, connection)["APP_DATABASE_DRIVER"]; driver != "sqlite" || !strings.Contains(output, "for evaluation only") {
				t.Errorf("the evaluation has the database %s:\n%s", driver, output)
			}
		},
		func(t *testing.T, connection client.Client, _ string) {
			t.Helper()

			var certificate corev1.ConfigMap
			if err := connection.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "postgres-ca"}, &certificate); err != nil ||
				certificate.Data["ca.crt"] != "a certificate" {
				t.Errorf("the certificate of PostgreSQL is %v: %v", certificate.Data, err)
			}
		},
		func(t *testing.T, connection client.Client, _ string) {
			t.Helper()

			if host := installed(t, connection)["APP_DATABASE_HOST"]; host != "postgres.databases.svc" {
				t.Errorf("the upgrade has the database host %q", host)
			}
		},
		func(t *testing.T, connection client.Client, _ string) {
			t.Helper()

			var deployment appsv1.Deployment
			if err := connection.Get(t.Context(), brokerKey(), &deployment); !apierrors.IsNotFound(err) {
				t.Errorf("after the removal, the Deployment is there: %v", err)
			}
		},
		func(t *testing.T, connection client.Client, _ string) {
			t.Helper()

			var deployment appsv1.Deployment
			if err := connection.Get(t.Context(), brokerKey(), &deployment); err != nil {
				t.Fatal(err)
			}

			if image := deployment.Spec.Template.Spec.Containers[0].Image; image != "ghcr.io/environment-broker/environment-broker:1.2.3" || *deployment.Spec.Replicas != 3 {
				t.Errorf("the kustomization has %d replicas of %s", *deployment.Spec.Replicas, image)
			}
		},
	}
}

// checkSecrets checks that the services accept the users and keys of the Secrets, and that the broker has the password of a user of the Provisioner.
func checkSecrets(t *testing.T, connection client.Client) {
	t.Helper()

	var space corev1.Namespace
	if err := connection.Get(t.Context(), client.ObjectKey{Name: namespace}, &space); err != nil || space.Labels["pod-security.kubernetes.io/enforce"] != "restricted" {
		t.Errorf("the namespace has the labels %v: %v", space.Labels, err)
	}

	data := map[string]map[string][]byte{}

	for _, name := range []string{"broker", "provisioner", "gardener"} {
		var stored corev1.Secret
		if err := connection.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, &stored); err != nil {
			t.Fatal(err)
		}

		data[name] = stored.Data
	}

	for _, service := range []string{"broker", "provisioner"} {
		if _, err := secret.ParseKeyring(secret.String(data[service]["APP_DATABASE_SECRET_KEYS"])); err != nil {
			t.Errorf("the keys of the %s: %v", service, err)
		}
	}

	login := string(data["broker"]["APP_PROVISIONER_USER"]) + ":" + string(data["broker"]["APP_PROVISIONER_PASSWORD"]) + ":osb+operator,"
	if users := string(data["provisioner"]["APP_AUTH_BASIC_USERS"]); !strings.HasPrefix(users, login) || len(login) < 40 {
		t.Errorf("the broker is not one of the %d users of the Provisioner", strings.Count(users, ",")+1)
	}
}

func brokerKey() client.ObjectKey {
	return client.ObjectKey{Namespace: namespace, Name: kustomizeRelease + "-broker"}
}

// installed returns the variables of the installed broker.
func installed(t *testing.T, connection client.Client) map[string]string {
	t.Helper()

	var (
		deployment appsv1.Deployment
		variables  corev1.ConfigMap
	)

	if err := connection.Get(t.Context(), brokerKey(), &deployment); err != nil {
		t.Fatal(err)
	}

	if err := connection.Get(t.Context(), brokerKey(), &variables); err != nil {
		t.Fatal(err)
	}

	return variables.Data
}
