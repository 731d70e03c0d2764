package releases_test

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/provisioner/installation/releases"
	"github.com/environment-broker/environment-broker/provisioner/spec"
	"github.com/environment-broker/environment-broker/resources"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const object = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: NAME}\ndata: {it: \"VALUE\"}\n"

func file(name, value string) *fstest.MapFile {
	return &fstest.MapFile{Data: []byte(strings.NewReplacer("NAME", name, "VALUE", value).Replace(object))}
}

func text(content string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(content)} }

// sample returns a store with one release that uses every feature of release.yaml.
func sample() fstest.MapFS {
	return fstest.MapFS{
		"1.0.0/release.yaml": text(`
version: 1.0.0
components:
- {name: base, namespace: system, values: {size: small, domain: null}, profiles: {Production: {size: big}}}
- {name: agent, namespace: agents, dependsOn: [base], manifests: agent.yaml}
- {name: extra, namespace: system, optional: true, dependsOn: [base], values: {size: tiny, password: null}}
- {name: more, namespace: system, optional: true, dependsOn: [extra]}
- {name: lone, namespace: system, optional: true}
`),
		"1.0.0/base/a.yaml": file("base", "${size} ${domain}"),
		"1.0.0/agent.yaml":  file("agent", "${namespace}"),
		"1.0.0/extra/a.yml": file("extra", "${size} ${password}"),
		"1.0.0/more/a.yaml": file("more", ""),
		"1.0.0/lone/a.yaml": file("lone", ""),
	}
}

func TestSampleReleasesAreValid(t *testing.T) {
	catalog := releases.New(releases.Folder{FS: resources.Releases()})
	if err := catalog.Check(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestInvalidReleases(t *testing.T) {
	const head = "version: 1.0.0\ncomponents:\n"
	for name, tc := range map[string]struct {
		reason string
		files  fstest.MapFS
		want   []string
	}{
		"no release.yaml": {"a folder without release.yaml is not a release", fstest.MapFS{"1.0.0/a.yaml": file("a", "")}, []string{"1.0.0", "release.yaml"}},
		"not YAML":        {"the error names the file", fstest.MapFS{"1.0.0/release.yaml": text("a: b: c")}, []string{"release.yaml of release 1.0.0: yaml"}},
		"unknown field": {
			"a misspelled field would have no effect",
			fstest.MapFS{"1.0.0/release.yaml": text("version: 1.0.0\ncomponents:\n- {name: a, namespace: n, dependOn: [b]}")},
			[]string{"field dependOn not found"},
		},
		"another version": {
			"a copied folder still has the old version",
			fstest.MapFS{"1.0.0/release.yaml": text("version: 1.1.0\ncomponents: []")},
			[]string{`version is "1.1.0", but it is stored as "1.0.0"`, "there are no components"},
		},
		"names": {
			"names identify components",
			fstest.MapFS{"1.0.0/release.yaml": text(head + "- {name: A, namespace: n}\n- {name: b, namespace: n_}\n- {name: b, namespace: " +
				"n}"), "1.0.0/b/b.yaml": file("b", "")},
			[]string{`"A" is not a valid component name`, `component "b" appears twice`, `"n_" is not a valid namespace`},
		},
		"unknown dependency": {
			"the dependency could never be satisfied",
			fstest.MapFS{"1.0.0/release.yaml": text(head + "- {name: a, namespace: n, dependsOn: [b]}"), "1.0.0/a/a.yaml": file("a", "")},
			[]string{`component "a" depends on "b", which is not a component of the release`},
		},
		"optional dependency": {
			"the minimal installation would lack it",
			fstest.MapFS{
				"1.0.0/release.yaml": text(head + "- {name: a, namespace: n, dependsOn: [b]}\n- {name: b, namespace: n, optional: true}"),
				"1.0.0/a/a.yaml":     file("a", ""), "1.0.0/b/b.yaml": file("b", ""),
			},
			[]string{`component "a", which is always installed, depends on "b", which is optional`},
		},
		"cycle": {
			"no component could be installed first",
			fstest.MapFS{
				"1.0.0/release.yaml": text(head + "- {name: a, namespace: n, dependsOn: [b]}\n- {name: b, namespace: n, dependsOn: [a]}\n- " +
					"{name: c, namespace: n}"),
				"1.0.0/a/a.yaml": file("a", ""), "1.0.0/b/b.yaml": file("b", ""), "1.0.0/c/c.yaml": file("c", ""),
			},
			[]string{"components depend on each other in a cycle: a, b"},
		},
		"missing manifests": {
			"a release without objects is a mistake",
			fstest.MapFS{"1.0.0/release.yaml": text(head + "- {name: a, namespace: n, manifests: b}")},
			[]string{`component "a": manifests: b: no such file or folder`},
		},
		"manifests elsewhere": {
			"a release contains all its manifests",
			fstest.MapFS{"1.0.0/release.yaml": text(head + "- {name: a, namespace: n, manifests: ../b}")},
			[]string{`"../b" is not a file or folder next to this file`},
		},
		"undeclared value": {
			"the value is undocumented",
			fstest.MapFS{"1.0.0/release.yaml": text(head + "- {name: a, namespace: n}"), "1.0.0/a/a.yaml": file("a", "${who}")},
			[]string{`component "a": its manifests use the key "who", which its values field does not declare`},
		},
		"unused value": {
			"setting the value would have no effect",
			fstest.MapFS{
				"1.0.0/release.yaml": text(head + "- {name: a, namespace: n, values: {who: me}, profiles: {Huge: {what: x}}}"),
				"1.0.0/a/a.yaml":     file("a", ""),
			},
			[]string{`no manifest uses its value "who"`, `there is no profile "Huge"`, `profile Huge sets the key "what", which its values field does not declare`},
		},
		"bad manifest": {
			"every cluster would reject it",
			fstest.MapFS{"1.0.0/release.yaml": text(head + "- {name: a, namespace: n}"), "1.0.0/a/a.yaml": text("kind: X\nmetadata: {name: x}")},
			[]string{`component "a": a/a.yaml: line 1: the object has no apiVersion`},
		},
		"deleted Job": {
			"the installer would start the Job repeatedly",
			fstest.MapFS{
				"1.0.0/release.yaml": text(head + "- {name: a, namespace: n}"),
				"1.0.0/a/a.yaml":     text("apiVersion: batch/v1\nkind: Job\nmetadata: {name: j}\nspec: {ttlSecondsAfterFinished: 1}"),
			},
			[]string{`component "a": Job "j" has ttlSecondsAfterFinished: remove this field`},
		},
		"object twice": {
			"two components would overwrite each other",
			fstest.MapFS{
				"1.0.0/release.yaml": text(head + "- {name: a, namespace: n}\n- {name: b, namespace: n}"),
				"1.0.0/a/a.yaml":     file("same", ""), "1.0.0/b/b.yaml": file("same", ""),
			},
			[]string{`component "b": ConfigMap "same" is also in component "a"`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			err := releases.New(releases.Folder{FS: tc.files}).Check(t.Context())
			for _, want := range tc.want {
				if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "release 1.0.0") {
					t.Errorf("%s: %v, want %q", tc.reason, err, want)
				}
			}
		})
	}
}

func TestUnusableReleases(t *testing.T) {
	files := sample()
	files["2.0.0/release.yaml"] = text("version: 2.0.0")
	for name, tc := range map[string]struct {
		reason  string
		store   releases.Store
		version string
		kind    failure.Kind
		want    string
	}{
		"unknown": {
			"the error lists the known releases",
			releases.Folder{FS: files},
			"3.0.0", failure.Invalid,
			`kymaConfig.version: there is no release "3.0.0"; the releases are 1.0.0, 2.0.0`,
		},
		"path": {"a version must not leave the folder", releases.Folder{FS: files}, "../1.0.0", failure.Invalid, `there is no release "../1.0.0"`},
		"none": {"an empty version must not match any", releases.Folder{FS: files}, "", failure.Invalid, `there is no release ""`},
		"broken": {
			"the order is valid; only the maintainer of the release can fix the problem",
			releases.Folder{FS: files},
			"2.0.0", failure.Permanent,
			"release 2.0.0 is invalid and cannot be used: operators can find the problems in the Provisioner's log",
		},
		"outage": {"the failure is temporary", outage{}, "1.0.0", failure.Transient, "release 1.0.0 is temporarily unavailable"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := releases.New(tc.store).Plan(t.Context(), spec.Kyma{Version: tc.version})
			if failure.KindOf(err) != tc.kind || !strings.Contains(failure.Of(err).Text, tc.want) {
				t.Errorf("%s: %v (%s), want %q (%s)", tc.reason, err, failure.KindOf(err), tc.want, tc.kind)
			}
		})
	}
}

// outage is a Store that is unavailable.
type outage struct{}

func (outage) Open(context.Context, string) (fs.FS, error) { return nil, errors.New("no route") }
func (outage) Versions(context.Context) ([]string, error)  { return nil, errors.New("no route") }

func TestAddedReleaseIsFound(t *testing.T) {
	files := sample()
	catalog := releases.New(releases.Folder{FS: files})
	if _, err := catalog.Plan(t.Context(), spec.Kyma{Version: "1.0.1"}); !failure.Is(err, failure.Invalid) {
		t.Errorf("before: %v", err)
	}
	for name, content := range maps.Clone(files) {
		later := strings.Replace(string(content.Data), "version: 1.0.0", "version: 1.0.1", 1)
		files[strings.Replace(name, "1.0.0", "1.0.1", 1)] = text(later)
	}
	order := spec.Kyma{Version: "1.0.1", Configuration: []*spec.Entry{{Key: "domain", Value: "x"}}}
	plan, err := catalog.Plan(t.Context(), order)
	if err != nil {
		t.Fatal(err)
	}
	found, err := catalog.Manifests(t.Context(), plan.Components[0].Source)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("base/a.yaml", found[0].Name); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
