//go:build garden

package ebctl_test

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/environment-broker/environment-broker/bundle/api/v1alpha1"
	"github.com/environment-broker/environment-broker/bundle/bundletest"
	"github.com/environment-broker/environment-broker/internal/ebctl"
)

// TestBundleDiff compares folders, ConfigMaps and manifests with what a BundleDeployment has installed.
func TestBundleDiff(t *testing.T) {
	kubeconfig, cluster, running := bundleKubeconfig(t), bundletest.Client(t, bundleAPI), startProvisioner(t)
	name := "diff-" + running.namespace
	diff := func(wantCode int, args ...string) (out, problems string) {
		t.Helper()

		return bundleCommand(t, kubeconfig, wantCode, slices.Concat([]string{"diff", name}, args, running.access)...)
	}

	t.Cleanup(func() {
		bundletest.Delete(t, cluster, &v1alpha1.BundleDeployment{ObjectMeta: metav1.ObjectMeta{Name: name}})
	})

	first, second := running.folder(t, "1"), running.folder(t, "2")
	writeFile(t, filepath.Join(first, "manifests", "secret.yaml"), "apiVersion: v1\nkind: Secret\nmetadata: {name: s, namespace: "+running.namespace+"}\nstringData: {key: swordfish-1}\n")
	writeFile(t, filepath.Join(second, "manifests", "secret.yaml"), "apiVersion: v1\nkind: Secret\nmetadata: {name: s, namespace: "+running.namespace+"}\nstringData: {key: swordfish-2}\n")

	// Nothing is installed yet.
	out, problems := diff(ebctl.ExitDifferent, first, "--class", running.class)
	wantTexts(t, out, "create ConfigMap "+running.namespace+"/installed", "--- /dev/null", "+  value: \"1\"", "+  key: '***'")
	wantTexts(t, problems, "2 objects would be created, 0 changed, 0 deleted")

	bundleCommand(t, kubeconfig, ebctl.ExitOK, slices.Concat([]string{"run", name, first, "--class", running.class, "--wait"}, running.access)...)

	out, _ = diff(ebctl.ExitOK, first)
	if out != "Nothing would change.\n" {
		t.Errorf("got %q", out)
	}

	out, problems = diff(ebctl.ExitDifferent, second)
	wantTexts(t, out, "change ConfigMap "+running.namespace+"/installed", "-  value: \"1\"", "+  value: \"2\"", "-  key: '*** (before)'", "+  key: '*** (after)'")
	wantTexts(t, problems, "0 objects would be created, 2 changed, 0 deleted")

	if strings.Contains(out+problems, "swordfish") {
		t.Errorf("the output has a value of a Secret:\n%s", out)
	}

	// Another source, as flags and as manifests.
	if err := cluster.Create(t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: running.namespace, Name: "content"},
		Data:       map[string]string{"a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: other, namespace: " + running.namespace + "}\n"},
	}); err != nil {
		t.Fatal(err)
	}

	source := "{type: configMaps, configMaps: [{configMap: {name: content}, path: manifests}]}"
	bundle, deployment := filepath.Join(t.TempDir(), "bundle.yaml"), filepath.Join(t.TempDir(), "deployment.yaml")
	template := "provisionerClassName: " + running.class + ", source: " + source
	writeFile(t, bundle, "apiVersion: core.rukpak.io/v1alpha1\nkind: Bundle\nmetadata: {name: a}\nspec: {"+template+"}\n")
	writeFile(t, deployment, "apiVersion: core.rukpak.io/v1alpha1\nkind: BundleDeployment\nmetadata: {name: a}\nspec: {provisionerClassName: "+running.class+
		", template: {spec: {"+template+"}}}\n")

	for _, file := range []string{bundle, deployment} {
		out, _ = diff(ebctl.ExitDifferent, "--file", file, "-o", "json")

		var result struct{ Differences []v1alpha1.ObjectDifference }
		if err := json.Unmarshal([]byte(out), &result); err != nil || len(result.Differences) != 3 {
			t.Fatalf("%v: %s", err, out)
		}

		for index, want := range []string{"create ConfigMap", "delete Secret", "delete ConfigMap"} {
			if got := result.Differences[index]; !strings.HasPrefix(got.Action+" "+got.Object, want) || (got.Diff == "") != (got.Action == "delete") {
				t.Errorf("got %+v instead of %s", got, want)
			}
		}
	}

	out, _ = diff(ebctl.ExitDifferent, "-f", bundle, "-o", "name")
	wantTexts(t, out, "ConfigMap "+running.namespace+"/other\n")

	out, _ = diff(ebctl.ExitDifferent, "--config-map", "content:manifests", "-o", "name")
	wantTexts(t, out, "ConfigMap "+running.namespace+"/other\n")

	// The file of the ConfigMap is not in the manifests folder.
	_, problems = diff(ebctl.ExitOperationFailed, "--config-map", "content")
	wantTexts(t, problems, name+" failed (UnpackFailed)", "manifests")

	_, problems = diff(ebctl.ExitOperationFailed, "--config-map", "content", "--config-map", "missing")
	wantTexts(t, problems, "failed (UnpackFailed)")

	_, problems = diff(ebctl.ExitUsage, first, "--class", "other")
	wantTexts(t, problems, "has the class "+running.class)

	// Only the limit ends the comparison, so the limit is short, unless the provisioner needs longer.
	want := "reading the Secret " + running.namespace + "/missing"
	for _, limit := range []string{"2s", "20s", "4m"} {
		if _, problems = diff(ebctl.ExitTimedOut, "-f", bundle, "--target-secret", "missing", "--wait-timeout", limit); strings.Contains(problems, want) {
			break
		}
	}

	wantTexts(t, problems, want)

	// Nothing has changed, and nothing remains.
	found := &corev1.ConfigMap{}
	if err := cluster.Get(t.Context(), client.ObjectKey{Namespace: running.namespace, Name: "installed"}, found); err != nil || found.Data["value"] != "1" {
		t.Errorf("got %v, %v", found.Data, err)
	}

	bundletest.Eventually(t, func() string {
		var left []string

		out, _ = bundleCommand(t, kubeconfig, ebctl.ExitOK, "list", "-o", "name")
		for each := range strings.Lines(out) {
			if strings.Contains(each, name+"-diff-") {
				left = append(left, each)
			}
		}

		return strings.Join(left, " ")
	})
}
