//go:build garden

package v1alpha1_test

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/environment-broker/environment-broker/bundle/bundletest"
)

// bundleManifest returns a Bundle. deploymentManifest returns a BundleDeployment whose template is such a Bundle. The source is a
// YAML flow mapping.
func bundleManifest(name, class, source string) string {
	return fmt.Sprintf("apiVersion: core.rukpak.io/v1alpha1\nkind: Bundle\nmetadata: {name: %s}\nspec:\n  provisionerClassName: %q\n  source: %s\n",
		name, class, source)
}

func deploymentManifest(name, class, templateClass, source string) string {
	return fmt.Sprintf("apiVersion: core.rukpak.io/v1alpha1\nkind: BundleDeployment\nmetadata: {name: %s}\nspec:\n  provisionerClassName: %q\n"+
		"  template:\n    spec:\n      provisionerClassName: %q\n      source: %s\n", name, class, templateClass, source)
}

const (
	class  = "core-rukpak-io-plain"
	upload = "{type: upload, upload: {}}"
)

// check applies a manifest and compares the error with the expected text; "" expects no error.
func check(t *testing.T, manifest, want string) {
	t.Helper()
	err := apply(t, read(t, manifest))
	switch {
	case want == "" && err != nil:
		t.Errorf("rejected: %v\n%s", err, manifest)
	case want != "" && err == nil:
		t.Errorf("accepted, want the error %q\n%s", want, manifest)
	case want != "" && !strings.Contains(err.Error(), want):
		t.Errorf("got the error %q, want %q", err, want)
	}
}

func TestClassNames(t *testing.T) {
	const pattern = "should match '^[a-z0-9]([-a-z0-9]*[a-z0-9])?$'"
	for name, c := range map[string]struct{ class, want string }{
		"one character":    {"a", ""},
		"63 characters":    {strings.Repeat("a", 63), ""},
		"digits":           {"0-9", ""},
		"64 characters":    {strings.Repeat("a", 64), "may not be more than 63"},
		"empty":            {"", "at least 1 chars long"},
		"upper case":       {"A", pattern},
		"dot":              {"a.b", pattern},
		"slash":            {"core.rukpak.io/plain", pattern},
		"begins with -":    {"-a", pattern},
		"ends with -":      {"a-", pattern},
		"space":            {"a b", pattern},
		"trailing newline": {"a\n", pattern},
	} {
		t.Run(name, func(t *testing.T) {
			check(t, bundleManifest("class-name", c.class, upload), c.want)
			check(t, deploymentManifest("class-name", c.class, class, upload), c.want)
			check(t, deploymentManifest("class-name", class, c.class, upload), c.want)
		})
	}
}

func TestRulesOfSources(t *testing.T) {
	const (
		inside     = "must be inside the repository: write a relative path without .."
		onlyIf     = "source.%s must be set if, and only if, type is %s"
		oneRef     = "set exactly one of branch, tag and commit"
		required   = "Required value"
		repository = "repository: https://example.com/a.git"
	)
	git := func(fields string) string { return "{type: git, git: {" + repository + ", " + fields + "}}" }
	verified := func(from string) string { return "{type: image, image: {ref: a, verification: {" + from + "}}}" }
	directory := func(path string) string { return git(fmt.Sprintf("ref: {branch: main}, directory: %q", path)) }
	maps := func(path string) string {
		return fmt.Sprintf("{type: configMaps, configMaps: [{configMap: {name: a}, path: %q}]}", path)
	}
	for name, c := range map[string]struct{ source, want string }{
		"unknown type":                {"{type: library, image: {ref: a}}", `Unsupported value: "library"`},
		"no type":                     {"{image: {ref: a}}", required},
		"http with image":             {"{type: http, image: {ref: a}}", fmt.Sprintf(onlyIf, "http", "http")},
		"git without block":           {"{type: git}", fmt.Sprintf(onlyIf, "git", "git")},
		"image without block":         {"{type: image}", fmt.Sprintf(onlyIf, "image", "image")},
		"http without block":          {"{type: http}", fmt.Sprintf(onlyIf, "http", "http")},
		"configMaps without block":    {"{type: configMaps}", fmt.Sprintf(onlyIf, "configMaps", "configMaps")},
		"upload without block":        {"{type: upload}", fmt.Sprintf(onlyIf, "upload", "upload")},
		"two blocks":                  {"{type: upload, upload: {}, image: {ref: a}}", fmt.Sprintf(onlyIf, "image", "image")},
		"empty configMaps":            {"{type: configMaps, configMaps: []}", "should have at least 1 items"},
		"empty configMaps of another": {"{type: upload, upload: {}, configMaps: []}", fmt.Sprintf(onlyIf, "configMaps", "configMaps")},
		"no git ref":                  {git("ref: {}"), oneRef},
		"two git refs":                {git("ref: {branch: main, tag: v1}"), oneRef},
		"three git refs":              {git("ref: {branch: main, tag: v1, commit: " + strings.Repeat("a", 40) + "}"), oneRef},
		"empty git branch":            {git(`ref: {branch: ""}`), "at least 1 chars long"},
		"short commit":                {git("ref: {commit: abc1234}"), "spec."},
		"sha-256 commit":              {git("ref: {commit: " + strings.Repeat("a", 64) + "}"), ""},
		"no directory":                {git("ref: {branch: main}"), ""},
		"empty directory":             {directory(""), ""},
		"directory .":                 {directory("."), ""},
		"directory a":                 {directory("a"), ""},
		"directory ab":                {directory("ab"), ""},
		"directory ./a":               {directory("./a"), ""},
		"directory ..a":               {directory("..a/b..c"), ""},
		"directory ..":                {directory(".."), inside},
		"directory ../x":              {directory("../x"), inside},
		"directory /x":                {directory("/x"), inside},
		"directory a/../../b":         {directory("a/../../b"), inside},
		"path ..":                     {maps(".."), "must be inside the bundle: write a relative path without .."},
		"absolute path":               {maps("/manifests"), "must be inside the bundle: write a relative path without .."},
		"path":                        {maps("manifests"), ""},
		"url without http":            {`{type: http, http: {url: "ftp://example.com/a.tgz"}}`, "should match '^https?://'"},
		"bad sha256":                  {`{type: http, http: {url: "https://example.com/a.tgz", sha256: abc}}`, "should match '^[0-9a-f]{64}$'"},
		"empty image ref":             {`{type: image, image: {ref: ""}}`, "at least 1 chars long"},
		"public keys":                 {verified("configMap: {name: keys}"), ""},
		"public key of a Secret":      {verified("secret: {name: keys, key: a.pub}"), ""},
		"no public keys":              {verified(""), "set exactly one of secret and configMap"},
		"two public keys":             {verified("secret: {name: a}, configMap: {name: b}"), "set exactly one of secret and configMap"},
		"public keys without a name":  {verified("secret: {key: a}"), required},
		"public keys, empty name":     {verified(`configMap: {name: ""}`), "at least 1 chars long"},
		"unknown field":               {`{type: image, image: {ref: a, reference: b}}`, "reference: field not declared in schema"},
	} {
		t.Run(name, func(t *testing.T) {
			check(t, bundleManifest("source", class, c.source), c.want)
			check(t, deploymentManifest("source", class, class, c.source), c.want)
		})
	}
}

func TestNames(t *testing.T) {
	long := strings.Repeat("n", 63)
	check(t, bundleManifest(long, class, upload), "")
	check(t, deploymentManifest(long, class, class, upload), "")
	check(t, bundleManifest(long+"n", class, upload), "the name of a Bundle must have at most 63 characters")
	check(t, deploymentManifest(long+"n", class, class, upload), "the name of a BundleDeployment must have at most 63 characters")
}

// TestSpecOfBundleNeverChanges checks that the spec of a Bundle cannot change, but its metadata and the spec of a BundleDeployment can.
func TestSpecOfBundleNeverChanges(t *testing.T) {
	const changed = "the spec of a Bundle cannot change: create another Bundle"
	image := func(ref string) string { return "{type: image, image: {ref: " + ref + "}}" }
	check(t, bundleManifest("immutable", class, image("a:1")), "")
	check(t, bundleManifest("immutable", class, image("a:2")), changed)
	check(t, bundleManifest("immutable", "another-class", image("a:1")), changed)
	check(t, bundleManifest("immutable", class, upload), changed)

	labeled := read(t, bundleManifest("immutable", class, image("a:1")))
	labeled.SetLabels(map[string]string{"app": "a"})
	if err := apply(t, labeled); err != nil {
		t.Errorf("labels of a Bundle: %v", err)
	}

	check(t, deploymentManifest("mutable", class, class, image("a:1")), "")
	check(t, deploymentManifest("mutable", class, class, image("a:2")), "")
	check(t, deploymentManifest("mutable", class, "another-class", upload), "")
	check(t, deploymentManifest("mutable", "another-class", class, image("a:1")), "")
}

// TestTargetOfBundleDeploymentNeverChanges checks that spec.target can be neither changed nor added nor removed, while other fields can change.
func TestTargetOfBundleDeploymentNeverChanges(t *testing.T) {
	const changed = "spec.target cannot change, because the objects on the former cluster would remain: create another BundleDeployment"
	on := func(name, target string) string { return deploymentManifest(name, class, class, upload) + target }
	target := func(reference string) string { return "  target: {kubeconfigSecretRef: {" + reference + "}}\n" }

	check(t, on("with-target", target("name: a")), "")
	check(t, on("with-target", target("name: a, key: kubeconfig")+"  suspend: true\n"), "")
	check(t, on("with-target", target("name: b")), changed)
	check(t, on("with-target", target("name: a, key: b")), changed)
	check(t, on("with-target", ""), changed)
	check(t, on("without-target", ""), "")
	check(t, on("without-target", "  suspend: true\n"), "")
	check(t, on("without-target", target("name: a")), changed)
}

// TestAdditionsToBundleDeployments applies the fields that rukpak does not have.
func TestAdditionsToBundleDeployments(t *testing.T) {
	object := read(t, deploymentManifest("additions", class, class, upload))
	object.Object["spec"].(map[string]any)["target"] = map[string]any{"kubeconfigSecretRef": map[string]any{"name": "runtime"}}
	object.Object["spec"].(map[string]any)["dependsOn"] = []any{map[string]any{"name": "crds"}}
	object.Object["spec"].(map[string]any)["suspend"] = true
	object.Object["spec"].(map[string]any)["dryRun"] = true
	object.Object["spec"].(map[string]any)["deletionTimeout"] = "10m"
	if err := apply(t, object); err != nil {
		t.Fatal(err)
	}
	object.Object["spec"].(map[string]any)["dryRunOf"] = "another"
	if err := apply(t, object); err != nil {
		t.Fatal(err)
	}
	wet := object.DeepCopy()
	wet.Object["spec"].(map[string]any)["dryRun"] = false
	if err := apply(t, wet); err == nil || !strings.Contains(err.Error(), "dryRunOf needs dryRun") {
		t.Errorf("dryRunOf without dryRun: %v", err)
	}
	twice := object.DeepCopy()
	err := unstructured.SetNestedSlice(twice.Object, []any{map[string]any{"name": "crds"}, map[string]any{"name": "crds"}}, "spec", "dependsOn")
	if err != nil {
		t.Fatal(err)
	}
	if err := apply(t, twice); err == nil {
		t.Error("the same dependency twice is accepted")
	}
	clusterClient := bundletest.Client(t, api)
	got := object.DeepCopy()
	if err := clusterClient.Get(t.Context(), client.ObjectKeyFromObject(object), got); err != nil {
		t.Fatal(err)
	}
	if key, _, _ := unstructured.NestedString(got.Object, "spec", "target", "kubeconfigSecretRef", "key"); key != "kubeconfig" {
		t.Errorf("the default key of the Secret is %q", key)
	}
}
