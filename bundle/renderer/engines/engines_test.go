package engines_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/environment-broker/environment-broker/bundle/renderer"
	"github.com/environment-broker/environment-broker/bundle/renderer/engines"
	"github.com/environment-broker/environment-broker/internal/failure"
)

func TestMain(m *testing.M) {
	engines.Main()
	os.Exit(m.Run())
}

func files(contents map[string]string) fstest.MapFS {
	bundle := fstest.MapFS{}
	for name, content := range contents {
		bundle[name] = &fstest.MapFile{Data: []byte(content)}
	}

	return bundle
}

const metadata = "apiVersion: v2\nname: one\nversion: 1.0.0\n"

// configMap is a template of a ConfigMap with one entry.
func configMap(value string) string {
	return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n  key: " + value + "\n"
}

// chart returns a chart with a template and other files.
func chart(template string, more ...string) fstest.MapFS {
	contents := map[string]string{"Chart.yaml": metadata, "values.yaml": "v: own\n", "templates/a.yaml": template}
	for i := 0; i < len(more); i += 2 {
		contents[more[i]] = more[i+1]
	}

	return files(contents)
}

// describe returns kind/name=value of ConfigMaps, and kind/name of others.
func describe(objects []*unstructured.Unstructured) string {
	var found []string

	for _, object := range objects {
		text := object.GetKind() + "/" + object.GetName()
		if value, has, _ := unstructured.NestedString(object.Object, "data", "key"); has {
			text += "=" + value
		}

		if policy := object.GetAnnotations()["helm.sh/resource-policy"]; policy != "" {
			text += "(" + policy + ")"
		}

		found = append(found, text)
	}

	return strings.Join(found, " ")
}

const (
	hook       = "apiVersion: batch/v1\nkind: Job\nmetadata: {name: h, annotations: {helm.sh/hook: EVENT}}\n"
	definition = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: d}\n"
	dependent  = metadata + "dependencies: [{name: two, version: 1.0.0, condition: two.enabled}]\n"
	dependency = "apiVersion: v2\nname: two\nversion: 1.0.0\n"
	inTwo      = "apiVersion: v1\nkind: Secret\nmetadata: {name: {{ .Values.name }}-{{ .Values.global.g }}}\n"
)

// withDependency returns a chart with a dependency that a value enables.
func withDependency() fstest.MapFS {
	return chart(configMap("{{ .Values.v }}"), "Chart.yaml", dependent, "charts/two/Chart.yaml", dependency,
		"charts/two/values.yaml", "name: two\nglobal: {g: x}\n", "charts/two/templates/a.yaml", inTwo,
		"values.yaml", "v: own\ntwo: {enabled: true}\n")
}

func TestChart(t *testing.T) {
	inFolder := fstest.MapFS{"README.md": {}}
	for name, file := range chart(configMap("{{ .Values.v }}")) {
		inFolder["one/"+name] = file
	}

	for name, c := range map[string]struct {
		reason  string
		bundle  fs.FS
		release renderer.Release
		want    string
	}{
		"own values":    {"values.yaml has defaults", chart(configMap("{{ .Values.v }}")), renderer.Release{}, "ConfigMap/a=own"},
		"values":        {"values replace defaults", chart(configMap("{{ .Values.v }}")), renderer.Release{Values: "v: new"}, "ConfigMap/a=new"},
		"object":        {"JSON is YAML", chart(configMap("{{ .Values.v.w }}")), renderer.Release{Values: `{"v":{"w":"new"}}`}, "ConfigMap/a=new"},
		"null value":    {"null removes a default", chart(configMap(`{{ .Values.v | default "none" }}`)), renderer.Release{Values: "v: null"}, "ConfigMap/a=none"},
		"folder":        {"archives of charts have a folder", inFolder, renderer.Release{}, "ConfigMap/a=own"},
		"release":       {"charts name objects after the release", chart(configMap("{{ .Release.Name }}.{{ .Release.Namespace }}.{{ .Release.IsInstall }}.{{ .Release.IsUpgrade }}.{{ .Release.Revision }}.{{ .Release.Service }}")), renderer.Release{}, "ConfigMap/a=r.n.true.false.1.Helm"},
		"lookup":        {"nothing is read from a cluster", chart(configMap(`{{ lookup "v1" "Secret" "n" "s" | len | quote }}`)), renderer.Release{}, "ConfigMap/a=0"},
		"version":       {"charts adapt to the target", chart(configMap("{{ .Capabilities.KubeVersion.Minor | quote }}")), renderer.Release{}, "ConfigMap/a=31"},
		"kinds":         {"the kinds of Kubernetes are known", chart(configMap(`{{ .Capabilities.APIVersions.Has "apps/v1" }}.{{ .Capabilities.APIVersions.Has "x/v1" }}`)), renderer.Release{}, "ConfigMap/a=true.false"},
		"more kinds":    {"other kinds are named", chart(configMap(`is{{ .Capabilities.APIVersions.Has "x/v1" }}`)), renderer.Release{APIVersions: []string{"x/v1"}}, "ConfigMap/a=istrue"},
		"no DNS":        {"templates read nothing from the network", chart(configMap(`{{ getHostByName "localhost" | quote }}`)), renderer.Release{}, "ConfigMap/a="},
		"notes":         {"notes are for the terminal", chart(configMap("x"), "templates/NOTES.txt", "Thank you: {{ .Values.v }}"), renderer.Release{}, "ConfigMap/a=x"},
		"partials":      {"partials are no objects", chart(configMap(`{{ include "p" . }}`), "templates/_p.tpl", `{{ define "p" }}{{ .Values.v }}{{ end }}`), renderer.Release{}, "ConfigMap/a=own"},
		"tpl":           {"values may be templates", chart(configMap("{{ tpl .Values.t . }}")), renderer.Release{Values: "t: '{{ .Values.v }}'"}, "ConfigMap/a=own"},
		"files":         {"templates read files of the chart", chart(configMap(`{{ .Files.Get "f.txt" }}`), "f.txt", "text"), renderer.Release{}, "ConfigMap/a=text"},
		"ignored":       {".helmignore hides files and folders", chart(configMap(`x{{ .Files.Get "secret/f.txt" }}`), "secret/f.txt", "s", ".helmignore", "secret/\n*.bak\n", "templates/b.bak", "{{"), renderer.Release{}, "ConfigMap/a=x"},
		"tests":         {"helm test is another command", chart(configMap("x"), "templates/tests/t.yaml", strings.Replace(hook, "EVENT", "test", 1)), renderer.Release{}, "ConfigMap/a=x"},
		"hooks":         {"hooks are left out on request", chart(configMap("x"), "templates/h.yaml", strings.Replace(hook, "EVENT", `"pre-install,post-upgrade"`, 1)), renderer.Release{SkipHooks: true}, "ConfigMap/a=x"},
		"crds":          {"definitions come first, are not rendered, and stay", chart(configMap("x"), "crds/d.yaml", definition+"# {{\n"), renderer.Release{}, "CustomResourceDefinition/d(keep) ConfigMap/a=x"},
		"no crds":       {"definitions are left out on request", chart(configMap("x"), "crds/d.yaml", definition), renderer.Release{SkipCRDs: true}, "ConfigMap/a=x"},
		"dependency":    {"a dependency has its values below its name", withDependency(), renderer.Release{Values: "two: {name: z}\nglobal: {g: w}"}, "Secret/z-w ConfigMap/a=own"},
		"condition":     {"a condition disables a dependency", withDependency(), renderer.Release{Values: "two: {enabled: false}"}, "ConfigMap/a=own"},
		"kubeVersion":   {"the target fits", chart(configMap("x"), "Chart.yaml", metadata+"kubeVersion: '>=1.30.0-0'\n"), renderer.Release{}, "ConfigMap/a=x"},
		"schema":        {"the values fit", chart(configMap("x"), "values.schema.json", `{"properties":{"v":{"type":"string"}}}`), renderer.Release{}, "ConfigMap/a=x"},
		"deterministic": {"generated names are fine if they are stable", chart(configMap(`{{ printf "%s" .Release.Name | sha256sum | trunc 4 | quote }}`)), renderer.Release{}, "ConfigMap/a=454349e4"[:16]},
	} {
		t.Run(name, func(t *testing.T) {
			c.release.Name, c.release.Namespace, c.release.KubeVersion = "r", "n", "v1.31.2-special.1"

			objects, err := renderer.New(renderer.DefaultOptions()).Chart(t.Context(), c.bundle, c.release)
			if err != nil {
				t.Fatalf("%s: %v", c.reason, err)
			}

			if diff := cmp.Diff(c.want, describe(objects)); diff != "" {
				t.Errorf("%s, -want +got:\n%s", c.reason, diff)
			}
		})
	}
}

func TestChartsThatCannotBeRendered(t *testing.T) {
	t.Setenv("SECRET", "of the provisioner")

	for name, c := range map[string]struct {
		bundle  fs.FS
		release renderer.Release
		want    string
	}{
		"empty":          {fstest.MapFS{}, renderer.Release{}, "the bundle has no chart: Chart.yaml must be at its root or in a top-level folder"},
		"deep":           {files(map[string]string{"a/b/Chart.yaml": metadata}), renderer.Release{}, "has no chart"},
		"two charts":     {files(map[string]string{"a/Chart.yaml": metadata, "b/Chart.yaml": metadata}), renderer.Release{}, "there are charts in a/, b/"},
		"bad chart":      {files(map[string]string{"Chart.yaml": "name: [a"}), renderer.Release{}, "the chart cannot be loaded: cannot load Chart.yaml"},
		"no name":        {files(map[string]string{"Chart.yaml": "apiVersion: v2\nversion: 1.0.0\n"}), renderer.Release{}, "chart.metadata.name is required"},
		"library":        {chart(configMap("x"), "Chart.yaml", metadata+"type: library\n"), renderer.Release{}, "the chart one is a library"},
		"no dependency":  {chart(configMap("x"), "Chart.yaml", dependent), renderer.Release{}, "the dependency two of the chart is missing from charts/"},
		"bad dependency": {chart(configMap("x"), "charts/two.tgz", "no archive"), renderer.Release{}, "error unpacking subchart two.tgz"},
		"bad template":   {chart("{{ if }}"), renderer.Release{}, "rendering the templates: parse error at (one/templates/a.yaml:1)"},
		"fails":          {chart(`{{ fail "set v" }}`), renderer.Release{}, "set v"},
		"required":       {chart(`{{ required "w is required" .Values.w }}`), renderer.Release{}, "w is required"},
		"environment":    {chart(configMap(`{{ env "SECRET" }}`)), renderer.Release{}, `function "env" not defined`},
		"no objects":     {chart("# nothing"), renderer.Release{}, "renders no objects with these values"},
		"bad YAML":       {chart("a: [b"), renderer.Release{}, "one/templates/a.yaml: not valid YAML"},
		"no object":      {chart("a: b"), renderer.Release{}, "one/templates/a.yaml: line 1: the object has no apiVersion"},
		"twice":          {chart(configMap("x"), "templates/b.yaml", configMap("y")), renderer.Release{}, "ConfigMap a occurs twice"},
		"values":         {chart(configMap("x")), renderer.Release{Values: "- a"}, "the values are not a YAML map"},
		"schema": {
			chart(configMap("x"), "values.schema.json", `{"properties":{"v":{"type":"integer"}}}`),
			renderer.Release{},
			"the values do not match the schema of the chart one: - at '/v': got string, want integer",
		},
		"remote schema":    {chart(configMap("x"), "values.schema.json", `{"$ref":"http://127.0.0.1:1/s"}`), renderer.Release{}, "references to other schema files are not followed"},
		"schema of a file": {chart(configMap("x"), "values.schema.json", `{"$ref":"file:///etc/passwd"}`), renderer.Release{}, "references to other schema files are not followed"},
		"bad schema":       {chart(configMap("x"), "values.schema.json", `{`), renderer.Release{}, "values.schema.json is not valid JSON"},
		"kubeVersion":      {chart(configMap("x"), "Chart.yaml", metadata+"kubeVersion: '>=1.40'\n"), renderer.Release{}, "the chart requires Kubernetes >=1.40, but the target has v1.31.2"},
		"hook":             {chart(configMap("x"), "templates/h.yaml", strings.Replace(hook, "EVENT", `"test,pre-install"`, 1)), renderer.Release{}, "Job h is a hook (test,pre-install), and hooks are not run"},
		"random":           {chart(configMap("{{ randAlphaNum 20 }}")), renderer.Release{}, "ConfigMap a differs each time the chart is rendered: set the values"},
		"certificate":      {chart(configMap(`{{ (genCA "c" 1).Cert | b64enc }}`)), renderer.Release{}, "ConfigMap a differs each time the chart is rendered"},
		"link":             {fstest.MapFS{"Chart.yaml": {Data: []byte("/etc/passwd"), Mode: fs.ModeSymlink}}, renderer.Release{}, `"Chart.yaml" is neither a file nor a link to a file of the bundle`},
		"large file":       {chart(configMap("x"), "large.txt", strings.Repeat("x", 6<<20)), renderer.Release{}, "large.txt of the chart has more than"},
	} {
		t.Run(name, func(t *testing.T) {
			c.release.Name, c.release.Namespace, c.release.KubeVersion = "r", "n", "v1.31.2"

			_, err := renderer.New(renderer.DefaultOptions()).Chart(t.Context(), c.bundle, c.release)
			if err == nil || !strings.Contains(err.Error(), c.want) || failure.Is(err, failure.Transient) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

// TestBombs renders templates that never end, or that exceed the limits for memory, output or the stack. None of them may end
// this process.
func TestBombs(t *testing.T) {
	t.Parallel()

	options := renderer.DefaultOptions()
	options.Memory, options.Output, options.Timeout = 400<<20, 1<<20, 4*time.Minute // the machine may be busy

	quick := options
	quick.Timeout = 500 * time.Millisecond

	loop := `{{ range until 100000 }}{{ range until 100000 }}{{ end }}{{ end }}` + configMap("x")
	for name, c := range map[string]struct {
		template string
		options  renderer.Options
		want     string
		kind     failure.Kind
	}{
		"endless":   {loop, quick, "rendering took longer than 500ms", failure.Transient},
		"list":      {configMap(`{{ until 2000000000 | len }}`), options, "rendering needs more than 400 MiB of memory", failure.Permanent},
		"text":      {configMap(`{{ repeat 1000000000 "x" }}`), options, "rendering needs more than 400 MiB of memory", failure.Permanent},
		"output":    {configMap(`{{ repeat 2000000 "x" }}`), options, "the rendered objects have more than 1048576 bytes", failure.Permanent},
		"stack":     {`{{ define "r" }}{{ template "r" . }}{{ end }}{{ template "r" . }}`, options, "templates", failure.Permanent},
		"recursion": {`{{ define "r" }}{{ include "r" . }}{{ end }}{{ include "r" . }}`, options, "nested reference name: r", failure.Permanent},
	} {
		t.Run(name, func(t *testing.T) {
			started := time.Now()

			_, err := renderer.New(c.options).Chart(t.Context(), chart(c.template), renderer.Release{Name: "r", KubeVersion: "v1.31.0"})
			if err == nil || !strings.Contains(err.Error(), c.want) || !failure.Is(err, c.kind) {
				t.Errorf("got %v, want %q", err, c.want)
			}

			t.Logf("ended after %s", time.Since(started))
		})
	}
}

// TestInput checks the limit for the size of a bundle.
func TestInput(t *testing.T) {
	options := renderer.DefaultOptions()
	options.Input = 100

	if err := renderer.New(options).CheckChart(t.Context(), chart(strings.Repeat("#", 101))); err == nil || !strings.Contains(err.Error(), "have more than 100 bytes") {
		t.Error(err)
	}
}

// TestCancelled checks that a canceled caller does not wait for the rendering.
func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()

	err := renderer.New(renderer.DefaultOptions()).CheckChart(ctx, chart("x"))
	if !errors.Is(err, context.Canceled) || !failure.Is(err, failure.Transient) {
		t.Error(err)
	}
}

// TestCheckChart loads a chart without rendering it, because its values are not known yet.
func TestCheckChart(t *testing.T) {
	under := renderer.New(renderer.DefaultOptions())
	if err := under.CheckChart(t.Context(), chart(`{{ fail "never" }}`)); err != nil {
		t.Error(err)
	}

	if err := under.CheckChart(t.Context(), files(map[string]string{"manifests/a.yaml": configMap("x")})); err == nil || !strings.Contains(err.Error(), "has no chart") {
		t.Error(err)
	}
}

const resources = "resources: [a.yaml]\n"

func TestKustomization(t *testing.T) {
	base := map[string]string{
		"base/kustomization.yaml": resources, "base/a.yaml": configMap("x"), "kustomization.yml": "namePrefix: p-\nresources: [base]\nconfigMapGenerator: [{name: g, files: [f.txt]}]\n",
		"f.txt": "text",
	}
	for name, c := range map[string]struct {
		reason string
		bundle map[string]string
		want   string
	}{
		"resources": {"objects are in the order of the kustomization", map[string]string{"kustomization.yaml": "resources: [b.yaml, a.yaml]", "a.yaml": configMap("x"), "b.yaml": strings.Replace(configMap("y"), "ConfigMap", "Secret", 1)}, "Secret/a=y ConfigMap/a=x"},
		"overlay":   {"a base may be in a subfolder, and files become ConfigMaps", base, "ConfigMap/p-a=x ConfigMap/p-g-92mghk4b9g"},
		"patch":     {"patches change objects", map[string]string{"kustomization.yaml": resources + "patches: [{patch: '[{\"op\": \"replace\", \"path\": \"/data/key\", \"value\": \"z\"}]', target: {kind: ConfigMap}}]\n", "a.yaml": configMap("x")}, "ConfigMap/a=z"},
	} {
		t.Run(name, func(t *testing.T) {
			objects, err := renderer.New(renderer.DefaultOptions()).Kustomization(t.Context(), files(c.bundle))
			if err != nil {
				t.Fatalf("%s: %v", c.reason, err)
			}

			if diff := cmp.Diff(c.want, describe(objects)); diff != "" {
				t.Errorf("%s, -want +got:\n%s", c.reason, diff)
			}
		})
	}
}

func TestKustomizationsThatCannotBeRendered(t *testing.T) {
	generator := "apiVersion: builtin\nkind: PatchTransformer\nmetadata: {name: p}\npath: https://example.com/p.yaml\ntarget: {kind: ConfigMap}\n"
	for name, c := range map[string]struct {
		kustomization string
		want          string
	}{
		"remote base":     {"resources: ['github.com/example/base?ref=v1']\n", "remote bases are not fetched: put them into the bundle"},
		"ssh base":        {"resources: ['git@example.com:a/b.git']\n", "remote bases are not fetched"},
		"remote file":     {"resources: ['https://example.com/a.yaml']\n", "remote files are not fetched"},
		"hidden address":  {resources + "transformers: [t.yaml]\n", "remote files are not fetched"},
		"absolute":        {"resources: [/etc/passwd]\n", "passwd"},
		"generated":       {"configMapGenerator: [{name: g, files: [/etc/passwd]}]\n", "passwd"},
		"outside of base": {"resources: [sub]\n", "security; file '/a.yaml' is not in or below '/sub'"},
		"chart":           {"helmCharts: [{name: c, repo: https://example.com}]\n", "must specify --enable-helm"},
		"program":         {resources + "generators: [exec.yaml]\n", "external plugins disabled"},
		"cycle":           {"resources: [.]\n", "cycle detected"},
		"unknown field":   {"nonsense: 1\n", "nonsense"},
		"nothing":         {"namePrefix: a\n", "kustomization"},
		"missing":         {"resources: [missing.yaml]\n", "missing.yaml"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := renderer.New(renderer.DefaultOptions()).Kustomization(t.Context(), files(map[string]string{
				"kustomization.yaml": c.kustomization, "a.yaml": configMap("x"), "t.yaml": generator, "sub/kustomization.yaml": "resources: [../a.yaml]\n",
				"exec.yaml": "apiVersion: example.com/v1\nkind: Program\nmetadata: {name: p, annotations: {config.kubernetes.io/function: 'exec: {path: /bin/true}'}}\n",
			}))
			if err == nil || !strings.Contains(err.Error(), c.want) || failure.Is(err, failure.Transient) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}

	_, err := renderer.New(renderer.DefaultOptions()).Kustomization(t.Context(), files(map[string]string{"a.yaml": configMap("x")}))
	if err == nil || !strings.Contains(err.Error(), "unable to find one of 'kustomization.yaml'") {
		t.Error(err)
	}
}

// TestConcurrent renders more charts than there are slots.
func TestConcurrent(t *testing.T) {
	under := renderer.New(renderer.DefaultOptions())
	results := make(chan error)

	for i := range 6 {
		go func() {
			objects, err := under.Chart(t.Context(), chart(configMap("{{ .Values.v }}")), renderer.Release{Name: "r", KubeVersion: "v1.31.0", Values: fmt.Sprintf("v: n%d", i)})
			if err == nil && describe(objects) != fmt.Sprintf("ConfigMap/a=n%d", i) {
				err = errors.New(describe(objects))
			}
			results <- err
		}()
	}

	for range 6 {
		if err := <-results; err != nil {
			t.Error(err)
		}
	}
}
