//go:build garden

package deployments_test

import (
	"encoding/json"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/environment-broker/environment-broker/bundle/api/v1alpha1"
)

// secretManifest returns a Secret with a value, and a ConfigMap with the same value.
func (f *fixture) secretManifest(value string) string {
	return "apiVersion: v1\nkind: Secret\nmetadata: {name: " + f.name + "-s, namespace: default}\nstringData: {password: " + value + ", user: admin}\n---\n" +
		f.configMap("copy", "password="+value)
}

// deploymentManifest returns a Deployment, which gets many defaults.
func (f *fixture) deploymentManifest(image string) string {
	return "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: " + f.name + ", namespace: default}\nspec:\n  selector: {matchLabels: {app: a}}\n" +
		"  template:\n    metadata: {labels: {app: a}}\n    spec: {containers: [{name: a, image: " + image + "}]}\n---\n"
}

// TestComparison compares another version with the installed one.
func TestComparison(t *testing.T) {
	f, other := newFixture(t), newFixture(t)
	definition := "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: things." + f.name + ".example.com}\nspec:\n  group: " + f.name +
		".example.com\n  scope: Cluster\n  names: {kind: Thing, plural: things}\n  versions:\n  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}\n---\n"
	thing := "apiVersion: " + f.name + ".example.com/v1\nkind: Thing\nmetadata: {name: one}\n---\n"

	f.create(f.content("1", f.configMap("one", "1")+f.configMap("two", "1")+f.secretManifest("swordfish-1")+f.deploymentManifest("a:1")))
	f.settle()
	f.wantInstalled()
	installed := f.deployment()

	other.create(other.content("1", f.configMap("one", "2")+f.configMap("three", "new")+f.secretManifest("swordfish-2")+f.deploymentManifest("a:1")+definition+thing+
		"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: elsewhere, namespace: "+f.name+"}\n---\napiVersion: v1\nkind: Namespace\nmetadata: {name: "+f.name+"}\n"),
		func(made *v1alpha1.BundleDeployment) { made.Spec.DryRun, made.Spec.DryRunOf = true, f.name })
	other.settle()

	found := other.deployment().Status.Comparison
	if found == nil {
		t.Fatalf("no comparison: %+v", other.deployment().Status)
	}

	want := map[string]string{
		"ConfigMap default/" + f.name + "-one":                       "change\n-  key: \"1\"\n+  key: \"2\"",
		"ConfigMap default/" + f.name + "-three":                     "create\n+  key: new",
		"ConfigMap default/" + f.name + "-two":                       "delete",
		"ConfigMap default/" + f.name + "-copy":                      "change\nonly masked values differ",
		"Secret default/" + f.name + "-s":                            "change\n-  password: '*** (before)'\n+  password: '*** (after)'\n   user: '***'",
		"CustomResourceDefinition things." + f.name + ".example.com": "create\n+  scope: Cluster",
		"Thing one":                          "create\n+kind: Thing",
		"Namespace " + f.name:                "create\n+kind: Namespace",
		"ConfigMap " + f.name + "/elsewhere": "create\n+kind: ConfigMap",
	}

	for _, difference := range found.Differences {
		action, text, _ := strings.Cut(want[difference.Object], "\n")
		if difference.Action != action || !strings.Contains(difference.Diff, text) {
			t.Errorf("%s %s:\n%s\nwant %s with %q", difference.Action, difference.Object, difference.Diff, action, text)
		}

		delete(want, difference.Object)
	}

	if len(want) > 0 {
		t.Errorf("missing: %v", want)
	}

	text, err := json.Marshal(other.deployment().Status)
	if err != nil || strings.Contains(string(text), "swordfish") || strings.Contains(string(text), "c3dvcmRmaXNo") {
		t.Errorf("the status has the secret value: %s, %v", text, err)
	}

	f.want(v1alpha1.TypeInstalled, metav1.ConditionTrue, v1alpha1.ReasonInstallationSucceeded, "")
	other.remove()

	if f.value(f, "one") != "1" || f.value(f, "two") != "1" || f.deployment().ResourceVersion != installed.ResourceVersion {
		t.Error("the comparison has changed something")
	}

	if err := f.Get(t.Context(), client.ObjectKey{Name: f.name}, &corev1.Namespace{}); !apierrors.IsNotFound(err) {
		t.Errorf("the namespace: %v", err)
	}
}

// TestComparisonWithoutDifference compares the installed version, and one that cannot be installed.
func TestComparisonWithoutDifference(t *testing.T) {
	f, same, invalid, foreign := newFixture(t), newFixture(t), newFixture(t), newFixture(t)
	f.create(f.content("1", f.configMap("one", "1")+f.secretManifest("swordfish-1")+f.deploymentManifest("a:1")))
	f.settle()
	f.wantInstalled()

	dryRun := func(made *v1alpha1.BundleDeployment) { made.Spec.DryRun, made.Spec.DryRunOf = true, f.name }
	same.create(same.content("1", f.configMap("one", "1")+f.secretManifest("swordfish-1")+f.deploymentManifest("a:1")), dryRun)
	same.settle()

	if found := same.deployment().Status.Comparison; found == nil || len(found.Differences) > 0 {
		t.Errorf("got %+v", found)
	}

	invalid.create(invalid.content("1", "apiVersion: v1\nkind: Service\nmetadata: {name: "+f.name+", namespace: default}\nspec: {ports: [{port: 99999}]}\n"), dryRun)
	invalid.settle()
	invalid.want(v1alpha1.TypeInstalled, metav1.ConditionFalse, v1alpha1.ReasonDryRun, "rejects Service default/"+f.name)

	// Without dryRunOf, the objects belong to somebody else.
	foreign.create(foreign.content("1", f.configMap("one", "1")), func(made *v1alpha1.BundleDeployment) { made.Spec.DryRun = true })
	foreign.settle()
	foreign.want(v1alpha1.TypeInstalled, metav1.ConditionFalse, v1alpha1.ReasonDryRun, "belongs to BundleDeployment "+f.name)

	for _, each := range []*fixture{invalid, foreign} {
		if found := each.deployment().Status.Comparison; found != nil {
			t.Errorf("got %+v", found)
		}
	}

	same.change(func(made *v1alpha1.BundleDeployment) { made.Spec.Suspend = true })
	same.settle()

	if found := same.deployment().Status.Comparison; found != nil {
		t.Errorf("the comparison remains: %+v", found)
	}
}
