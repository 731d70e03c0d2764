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
)

const (
	installationPage = "../../docs/operator/install.md"
	// helmMark is the comment before the blocks of the page that TestHelm runs.
	helmMark = "<!-- not run: needs Helm and a cluster; TestHelm of internal/packaging runs it -->"
	// helmLimit is the time limit of a block. Helm takes seconds.
	helmLimit = 5 * time.Minute
)

// TestHelm installs, upgrades and removes the release with the commands of the page, in the order of the page, on a real API server.
func TestHelm(t *testing.T) {
	connection := restricted(t)
	folder := t.TempDir()

	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}

	if _, err := os.Stat(filepath.Join(root, ".bin", "helm")); err != nil {
		t.Fatalf("%v: `make helm` builds it", err)
	}

	page, err := os.ReadFile(installationPage)
	if err != nil {
		t.Fatal(err)
	}

	values := regexp.MustCompile("(?s)```yaml\n(# values.yaml\n.*?)```").FindSubmatch(page)
	if values == nil {
		t.Fatal("the page has no values.yaml")
	}

	for name, content := range map[string][]byte{"kubeconfig": bundletest.Kubeconfig(t, cluster), "values.yaml": values[1]} {
		if err := os.WriteFile(filepath.Join(folder, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}

	if err := os.Symlink(filepath.Join(root, "resources"), filepath.Join(folder, "resources")); err != nil {
		t.Fatal(err)
	}

	blocks := regexp.MustCompile("(?s)"+regexp.QuoteMeta(helmMark)+"\n```sh\n(.*?)```").FindAllSubmatch(page, -1)
	if len(blocks) != len(helmEffects()) {
		t.Fatalf("the page has %d blocks with Helm, want %d", len(blocks), len(helmEffects()))
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

		helmEffects()[i](t, connection, string(output))
	}
}

// helmEffects returns the checks after each block: evaluation, production, removal.
func helmEffects() []func(*testing.T, client.Client, string) {
	return []func(*testing.T, client.Client, string){
		func(t *testing.T, connection client.Client, output string) {
			t.Helper()

			if driver := installed(t, connection)["APP_DATABASE_DRIVER"]; driver != "sqlite" || !strings.Contains(output, "for evaluation only") {
				t.Errorf("the evaluation has the database %s:\n%s", driver, output)
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
