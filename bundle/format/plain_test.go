package format_test

import (
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/bundle/format"
)

func files(contents map[string]string) fstest.MapFS {
	bundle := fstest.MapFS{}
	for name, content := range contents {
		bundle[name] = &fstest.MapFile{Data: []byte(content)}
	}
	return bundle
}

const configMap = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: one}\n"

func TestObjects(t *testing.T) {
	cases := map[string]struct {
		reason string
		bundle fstest.MapFS
		want   string
	}{
		"one": {"YAML is the usual form", files(map[string]string{"manifests/a.yaml": configMap}), "ConfigMap/a"},
		"documents": {
			"a file may have several documents, and empty ones",
			files(map[string]string{"manifests/a.yaml": "# a comment\n---\n" + configMap + "---\n---\napiVersion: v1\nkind: Secret\nmetadata: {name: b}\n---\n"}),
			"ConfigMap/a Secret/b",
		},
		"order": {
			"the order of the file names is the order of the objects",
			files(map[string]string{"manifests/2": "{apiVersion: v1, kind: Secret, metadata: {name: b}}", "manifests/1": configMap}),
			"ConfigMap/a Secret/b",
		},
		"json": {
			"a file may contain several JSON objects, whatever its name is",
			files(map[string]string{"manifests/a.txt": `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"b"}} {"apiVersion":"v1","kind":"Pod","metadata":{"name":"c"}}`}),
			"Secret/b Pod/c",
		},
		"json in documents": {
			"JSON documents may be separated as in YAML",
			files(map[string]string{"manifests/a.json": "{\"apiVersion\":\"v1\",\"kind\":\"Secret\",\"metadata\":{\"name\":\"b\"}}\n---\n" + configMap}),
			"Secret/b ConfigMap/a",
		},
		"list": {
			"the items of a List take its place",
			files(map[string]string{"manifests/a.yaml": "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Secret, metadata: {name: b}}\n"}),
			"Secret/b",
		},
		"other folders": {
			"only manifests counts",
			files(map[string]string{"manifests/a.yaml": configMap, "metadata/annotations.yaml": "not: an object", "README.md": "{{"}),
			"ConfigMap/a",
		},
		"same name, other kind or namespace": {
			"these can exist next to each other",
			files(map[string]string{"manifests/a.yaml": configMap + "---\n" + strings.Replace(configMap, "ConfigMap", "Secret", 1) +
				"---\n" + strings.Replace(configMap, "namespace: one", "namespace: m", 1)}),
			"ConfigMap/a Secret/a ConfigMap/a",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			objects, err := format.Objects(c.bundle)
			if err != nil {
				t.Fatalf("%s: %v", c.reason, err)
			}
			var got []string
			for _, object := range objects {
				got = append(got, object.GetKind()+"/"+object.GetName())
			}
			if diff := cmp.Diff(c.want, strings.Join(got, " ")); diff != "" {
				t.Errorf("%s, -want +got:\n%s", c.reason, diff)
			}
			converted, err := format.Plain{}.Convert(t.Context(), c.bundle)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := fs.Stat(converted, "manifests"); err != nil {
				t.Errorf("the converted bundle has no manifests: %v", err)
			}
		})
	}
}

func TestBundlesThatAreNotPlain(t *testing.T) {
	cases := map[string]struct {
		bundle fstest.MapFS
		want   string
	}{
		"empty":           {fstest.MapFS{}, "has no manifests folder"},
		"elsewhere":       {files(map[string]string{"deploy/a.yaml": configMap}), "has no manifests folder"},
		"no objects":      {files(map[string]string{"manifests/a.yaml": "# nothing\n---\n"}), "contains no objects"},
		"subfolder":       {files(map[string]string{"manifests/a.yaml": configMap, "manifests/b/c.yaml": configMap}), "manifests/b is not a file"},
		"link":            {fstest.MapFS{"manifests/a.yaml": {Data: []byte("/etc/passwd"), Mode: fs.ModeSymlink}}, "manifests/a.yaml is not a file"},
		"bad yaml":        {files(map[string]string{"manifests/a.yaml": "a: [b"}), "manifests/a.yaml: not valid YAML"},
		"bad json":        {files(map[string]string{"manifests/a.json": `{"kind": `}), "manifests/a.json: not valid YAML"},
		"duplicate key":   {files(map[string]string{"manifests/a.yaml": configMap + "kind: Secret\n"}), "already defined"},
		"text":            {files(map[string]string{"manifests/README.md": "How to install"}), "line 1: not a Kubernetes object"},
		"array":           {files(map[string]string{"manifests/a.yaml": "- a\n- b\n"}), "line 1: not a Kubernetes object"},
		"number as key":   {files(map[string]string{"manifests/a.yaml": configMap + "data: {1: a}\n"}), "a key is not a string"},
		"no apiVersion":   {files(map[string]string{"manifests/a.yaml": "kind: ConfigMap\nmetadata: {name: a}\n"}), "no apiVersion"},
		"no kind":         {files(map[string]string{"manifests/a.yaml": "apiVersion: v1\nmetadata: {name: a}\n"}), "no kind"},
		"no name":         {files(map[string]string{"manifests/a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {generateName: a}\n"}), "the ConfigMap has no metadata.name"},
		"second document": {files(map[string]string{"manifests/a.yaml": configMap + "---\nkind: Secret\n"}), "line 5: the object has no apiVersion"},
		"same object":     {files(map[string]string{"manifests/a.yaml": configMap, "manifests/b.yaml": configMap}), "manifests/a.yaml and manifests/b.yaml contain the same object, ConfigMap one/a"},
		"alias bomb":      {files(map[string]string{"manifests/a.yaml": bomb()}), "excessive aliasing"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := format.Plain{}.Convert(t.Context(), c.bundle)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got the error %v, want %q", err, c.want)
			}
		})
	}
}

// bomb returns a small document that its aliases expand to gigabytes.
func bomb() string {
	var text strings.Builder
	text.WriteString("a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n")
	for i, last := 1, "a0"; i < 10; i++ {
		name := "a" + string(rune('0'+i))
		text.WriteString(name + ": &" + name + " [" + strings.TrimSuffix(strings.Repeat("*"+last+",", 10), ",") + "]\n")
		last = name
	}
	return text.String()
}
