package deployments

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/bundle/renderer"
)

func TestChartRelease(t *testing.T) {
	for name, c := range map[string]struct {
		reason, config string
		want           renderer.Release
	}{
		"none":       {"a chart has values of its own", ``, renderer.Release{}},
		"null":       {"an API server stores null for an empty config", `null`, renderer.Release{}},
		"text":       {"rukpak's shape is a map of texts", `{"values":"a: 1\nb: [x]\n"}`, renderer.Release{Values: "a: 1\nb: [x]\n"}},
		"object":     {"YAML in YAML is easy to get wrong", `{"values":{"a":{"b":1}}}`, renderer.Release{Values: `{"a":{"b":1}}`}},
		"no values":  {"the API server may keep null", `{"values":null}`, renderer.Release{}},
		"left out":   {"nothing runs hooks", `{"hooks":"skip","crds":"skip"}`, renderer.Release{SkipHooks: true, SkipCRDs: true}},
		"more kinds": {"charts look for kinds", `{"apiVersions":"a/v1, b/v1\nc/v1/D"}`, renderer.Release{APIVersions: []string{"a/v1", "b/v1", "c/v1/D"}}},
	} {
		t.Run(name, func(t *testing.T) {
			c.want.Name, c.want.Namespace = "one", "n"

			got, err := chartRelease(Release{Name: "one", Namespace: "n", Config: []byte(c.config)})
			if diff := cmp.Diff(c.want, got); err != nil || diff != "" {
				t.Errorf("%s: %v, -want +got:\n%s", c.reason, err, diff)
			}
		})
	}

	for config, want := range map[string]string{
		`[]`:                    "it must be an object",
		`{"values":[1]}`:        "values must be an object, or a string with YAML",
		`{"values":1}`:          "values must be an object, or a string with YAML",
		`{"hooks":{}}`:          "hooks must be a string",
		`{"namespace":"n"}`:     `the setting "namespace" is unknown`,
		`{"hooks":"run"}`:       "hooks: the only valid value is skip",
		`{"value":"a: 1"}`:      `the setting "value" is unknown: use values,`,
		`{"apiVersions":["a"]}`: "apiVersions must be a string",
	} {
		if _, err := chartRelease(Release{Config: []byte(config)}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", config, err, want)
		}
	}
}

// FuzzConfig reads arbitrary configs. An accepted config must not change the name and the namespace.
func FuzzConfig(f *testing.F) {
	for _, seed := range []string{``, `{}`, `{"values":"a: 1"}`, `{"values":{"a":[1]}}`, `{"hooks":"skip","apiVersions":"a,b"}`, `[1`} {
		f.Add([]byte(seed))
	}

	f.Fuzz(func(t *testing.T, config []byte) {
		release, err := chartRelease(Release{Name: "one", Namespace: "n", Config: config})
		if err == nil && (release.Namespace != "n" || release.Name != "one") {
			t.Errorf("%q: %+v", config, release)
		}
	})
}
