package installation_test

import (
	"strings"
	"testing"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/provisioner/installation"
)

// TestExternalComponents checks plans with components whose manifests do not come from a release.
func TestExternalComponents(t *testing.T) {
	object := func(kind, name string) string {
		return "apiVersion: v1\nkind: " + kind + "\nmetadata: {name: " + name + "}\n"
	}

	cases := map[string]struct {
		reason   string
		external string
		outside  bool
		want     string // empty for none
	}{
		"other":     {"its objects are its own", object("ConfigMap", "b"), true, ""},
		"same":      {"two components would overwrite the object", object("ConfigMap", "a"), true, `component "new": ConfigMap "a" is also in component "old": change the file of its sourceURL`},
		"value":     {"the order has to set it", object("ConfigMap", `"${name}"`), true, `the manifests of component "new" cannot be read`},
		"Job":       {"it would run again and again", object("Job", "b") + "spec: {ttlSecondsAfterFinished: 1}\n", true, `Job "b" has ttlSecondsAfterFinished`},
		"malformed": {"no manifest", "{", true, `the manifests of component "new" cannot be read`},
		"release":   {"releases are checked when they are read", object("ConfigMap", "a"), false, ""},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			plan := installation.Plan{Components: []installation.Component{
				{Name: "new", Namespace: "same", External: c.outside}, {Name: "old", Namespace: "same"},
			}}
			content := map[string]string{"new": c.external, "old": object("ConfigMap", "a")}

			err := plan.CheckExternal(func(component installation.Component) ([]installation.ManifestFile, error) {
				return []installation.ManifestFile{{Name: "a.yaml", Content: []byte(content[component.Name])}}, nil
			})
			if (err == nil) != (c.want == "") || err != nil && (!failure.Is(err, failure.Permanent) || !strings.Contains(failure.Of(err).Text, c.want)) {
				t.Errorf("%s: want %q, got %v", c.reason, c.want, err)
			}
		})
	}
}
