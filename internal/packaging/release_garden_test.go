//go:build garden

package main

import (
	"bytes"
	"context"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/registry"
	appsv1 "k8s.io/api/apps/v1"

	"github.com/environment-broker/environment-broker/test/apiserver"
)

// releasedChart is the address of the chart on the page.
const releasedChart = "oci://ghcr.io/environment-broker/charts"

// TestReleasedChart packages the chart, pushes it to a registry, pulls it, and installs it with the command of the page on a
// real API server. A release uses the same targets of the Makefile.
func TestReleasedChart(t *testing.T) {
	connection := restricted(t)
	folder := t.TempDir()

	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}

	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)

	repository := "oci://" + server.Listener.Addr().String() + "/charts"

	run := func(command string) string {
		t.Helper()

		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), helmLimit)
		defer cancel()

		shell := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", command)
		shell.Dir = folder
		shell.Env = append(os.Environ(), "HOME="+folder, "KUBECONFIG="+filepath.Join(folder, "kubeconfig"),
			"PATH="+filepath.Join(root, ".bin")+":"+os.Getenv("PATH"))

		output, err := shell.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", command, err, output)
		}

		return string(output)
	}

	page, err := os.ReadFile(installationPage)
	if err != nil {
		t.Fatal(err)
	}

	commands := regexp.MustCompile("(?s)TestReleasedChart of internal/packaging runs it [^\n]*-->\n```sh\n(.*?)```").FindSubmatch(page)
	values := regexp.MustCompile("(?s)```yaml\n(# values.yaml\n.*?)```").FindSubmatch(page)

	if commands == nil || values == nil || !bytes.Contains(commands[1], []byte(releasedChart)) {
		t.Fatal("the page does not install the chart of a release")
	}

	for name, content := range map[string][]byte{"kubeconfig": apiserver.Kubeconfig(t, cluster), "values.yaml": values[1]} {
		if err := os.WriteFile(filepath.Join(folder, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}

	target := "make --no-print-directory -C '" + root + "' CHART_DIR='" + filepath.Join(folder, "chart") + "' "
	run(target + "chart VERSION=1.2.3")

	if pushed := run(target + "chart-push HELM_FLAGS=--plain-http CHART_REPOSITORY=" + repository); !strings.Contains(pushed, "Digest: sha256:") {
		t.Errorf("the release workflow reads the digest from the output of the push: %s", pushed)
	}

	run("helm pull --plain-http " + repository + "/environment-broker --version 1.2.3 --untar --untardir pulled")

	if diff := cmp.Diff(contents(t, filepath.Join(folder, "chart", "environment-broker")), contents(t, filepath.Join(folder, "pulled", "environment-broker"))); diff != "" {
		t.Errorf("the chart in the registry differs: -packaged +pulled\n%s", diff)
	}

	run(strings.ReplaceAll(string(commands[1]), releasedChart, "--plain-http "+repository))
	t.Cleanup(func() { run("helm uninstall environment-broker --namespace " + namespace) })

	var deployment appsv1.Deployment
	if err := connection.Get(t.Context(), brokerKey(), &deployment); err != nil {
		t.Fatal(err)
	}

	if image := deployment.Spec.Template.Spec.Containers[0].Image; image != "ghcr.io/environment-broker/environment-broker:1.2.3" {
		t.Errorf("the chart of release 1.2.3 uses the image %s", image)
	}
}

// contents returns the files of a folder by their paths.
func contents(t *testing.T, folder string) map[string]string {
	t.Helper()

	files := map[string]string{}

	err := filepath.WalkDir(folder, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}

		content, err := os.ReadFile(path)
		files[strings.TrimPrefix(path, folder)] = string(content)

		return err
	})
	if err != nil || len(files) < 10 {
		t.Fatalf("the folder %s has %d files: %v", folder, len(files), err)
	}

	return files
}
