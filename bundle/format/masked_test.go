package format_test

import (
	"slices"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/bundle/format"
)

func TestMasked(t *testing.T) {
	t.Parallel()

	const secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\ndata: {a: Zmlyc3Q=, c: b25l}\nstringData: {b: second, d: two}\n"

	for name, test := range map[string]struct {
		reason, manifest, list, err string
		want                        []string
	}{
		"secret":     {"values of Secrets are secret", secret, "", "", []string{"first", "second"}},
		"list":       {"a list adds values of other objects", secret, `["third"]`, "", []string{"first", "second", "third"}},
		"no secret":  {"a ConfigMap has no secrets", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: s}\ndata: {a: b25l}\n", "", "", nil},
		"not a list": {"a wrong list must not be ignored", secret, `{"a": "b"}`, "metadata/masked.json is not a JSON array of strings", nil},
		"not base64": {"the API server rejects the Secret", "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\ndata: {a: \"*\", b: not-encoded}\n", "", "", []string{"not-encoded"}},
		"numbers": {
			"the API server rejects the Secret and quotes its values", "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\ndata: {a: 8675, b: Zmlyc3Q=}\n" +
				"stringData: {c: second, d: 73194628, e: 1.25, f: {g: [third]}, h: true, i: null}\n", "", "",
			[]string{"1.25", "1.25", "73194628", "8675", "first", "second", "third"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			bundle := fstest.MapFS{"manifests/a.yaml": {Data: []byte(test.manifest)}}
			if test.list != "" {
				bundle["metadata/masked.json"] = &fstest.MapFile{Data: []byte(test.list)}
			}

			objects, err := format.Objects(bundle)
			if err != nil {
				t.Fatal(err)
			}

			texts, err := format.Masked(bundle, objects)
			slices.Sort(texts)

			if diff := cmp.Diff(test.want, texts); test.err == "" && diff != "" {
				t.Errorf("%s: -want +got\n%s", test.reason, diff)
			}

			if got := message(err); got != test.err {
				t.Errorf("%s: got %q, want %q", test.reason, got, test.err)
			}
		})
	}
}

func message(err error) string {
	if err == nil {
		return ""
	}

	return err.Error()
}
