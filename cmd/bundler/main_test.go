package main

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/environment-broker/environment-broker/test/sources"
)

// TestEngines verifies that only the bundler program contains Helm, Kustomize and Sigstore, and that no program contains their clients for
// clusters, registries, databases and key services.
func TestEngines(t *testing.T) {
	for _, program := range []string{"broker", "provisioner", "ebctl", "sandbox", "bundler"} {
		if err := sources.Open(".", "../"+program); err != nil {
			t.Fatal(err)
		}

		output, err := exec.CommandContext(t.Context(), "go", "list", "-buildvcs=false", "-deps", "../"+program).Output()
		if err != nil {
			t.Fatal(err)
		}

		packages := strings.Fields(string(output))
		for _, engine := range []string{"helm.sh/helm/v3/pkg/engine", "sigs.k8s.io/kustomize/api/krusty", "github.com/sigstore/sigstore/pkg/signature"} {
			if slices.Contains(packages, engine) != (program == "bundler") {
				t.Errorf("%s contains %s: %t", program, engine, program != "bundler")
			}
		}

		if program == "sandbox" {
			checkSandbox(t, packages)
		}

		for _, name := range packages {
			for _, unwanted := range []string{
				"helm.sh/helm/v3/pkg/action", "helm.sh/helm/v3/pkg/kube", "helm.sh/helm/v3/pkg/registry", "helm.sh/helm/v3/pkg/storage",
				"k8s.io/kubectl", "k8s.io/cli-runtime", "k8s.io/apiserver", "github.com/docker/", "github.com/containerd/", "github.com/rubenv/sql-migrate",
				"github.com/sigstore/sigstore/pkg/signature/kms", "github.com/sigstore/rekor", "github.com/sigstore/fulcio", "github.com/sigstore/cosign",
			} {
				if strings.HasPrefix(name+"/", unwanted) {
					t.Errorf("%s contains %s", program, name)
				}
			}
		}
	}
}

// checkSandbox verifies that bundle/api/v1alpha1 and bundle/archive are the only packages of the bundle provisioner in the sandbox. The
// first start compiles the sandbox, so every further package would delay it.
func checkSandbox(t *testing.T, packages []string) {
	t.Helper()

	const module = "github.com/environment-broker/environment-broker/"

	for _, name := range packages {
		if strings.HasPrefix(name, module+"bundle/") && name != module+"bundle/api/v1alpha1" && name != module+"bundle/archive" {
			t.Errorf("the sandbox contains %s", name)
		}
	}

	if !slices.Contains(packages, module+"internal/sandbox/fakehub") {
		t.Error("the sandbox has no API server for Bundles")
	}
}
