package releases

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/environment-broker/environment-broker/provisioner/installation"
	"github.com/environment-broker/environment-broker/provisioner/spec"
)

// file is the name of the file that describes a release.
const file = "release.yaml"

// release is the content of release.yaml, with the manifests of its components. read returns only valid releases.
type release struct {
	Version    string      `yaml:"version"`
	Components []component `yaml:"components"`
}

// component is an entry of the components field in release.yaml.
type component struct {
	Name      string   `yaml:"name"`
	Namespace string   `yaml:"namespace"`
	DependsOn []string `yaml:"dependsOn"`
	Optional  bool     `yaml:"optional"`
	// Manifests is the path of a file or folder, relative to release.yaml. The default is the name of the component.
	Manifests string `yaml:"manifests"`
	// Values maps the placeholders in the manifests to their default values. If a default is nil, the order must set the value.
	Values map[string]*string `yaml:"values"`
	// Profiles maps a profile to values that override the defaults if an order has this profile.
	Profiles map[spec.Profile]map[string]string `yaml:"profiles"`

	files []installation.ManifestFile
	// source is the component's sourceURL in the order, or empty if the order has none. The manifests at this address replace the
	// release's.
	source string
}

// read reads and validates the release in the folder. The error lists all problems, so that a maintainer can correct them
// together.
func read(folder fs.FS, version string) (*release, error) {
	content, err := fs.ReadFile(folder, file)
	if err != nil {
		return nil, fmt.Errorf("reading release %s: %w", version, err)
	}
	decoder := yaml.NewDecoder(bytes.NewReader(content))
	decoder.KnownFields(true)
	found := &release{}
	if err := decoder.Decode(found); err != nil {
		return nil, fmt.Errorf("%s of release %s: %w", file, version, err)
	}
	var problems []error
	report := func(format string, args ...any) {
		problems = append(problems, fmt.Errorf("%s of release %s: %w", file, version, fmt.Errorf(format, args...)))
	}
	if found.Version != version {
		report("version is %q, but it is stored as %q", found.Version, version)
	}
	if len(found.Components) == 0 {
		report("there are no components")
	}
	found.checkNames(report)
	found.checkOrder(report)
	for i := range found.Components {
		found.Components[i].readManifests(folder, report)
	}
	if len(problems) == 0 {
		found.checkObjects(report)
	}
	return found, errors.Join(problems...)
}

// component returns the component with the given name, or nil.
func (r *release) component(name string) *component {
	if i := slices.Index(r.names(), name); i >= 0 {
		return &r.Components[i]
	}
	return nil
}

// names returns the names of all components.
func (r *release) names() []string {
	names := make([]string, 0, len(r.Components))
	for _, component := range r.Components {
		names = append(names, component.Name)
	}
	return names
}

// checkNames reports names that are not unique or that Kubernetes does not accept.
func (r *release) checkNames(report func(string, ...any)) {
	for i, component := range r.Components {
		if len(validation.IsDNS1123Label(component.Name)) > 0 {
			report("%q is not a valid component name: use lower-case letters, digits and hyphens", component.Name)
		}
		if slices.Index(r.names(), component.Name) < i {
			report("component %q appears twice", component.Name)
		}
		if len(validation.IsDNS1123Label(component.Namespace)) > 0 {
			report("component %q: %q is not a valid namespace", component.Name, component.Namespace)
		}
	}
}

// readManifests reads the manifests of the component. It reports placeholders without a declared value, which could never be set,
// and values without a placeholder, which would have no effect.
func (c *component) readManifests(folder fs.FS, report func(string, ...any)) {
	if c.Manifests == "" {
		c.Manifests = c.Name
	}
	c.Manifests = path.Clean(c.Manifests)
	if !fs.ValidPath(c.Manifests) || c.Manifests == "." {
		report("component %q: manifests: %q is not a file or folder next to this file", c.Name, c.Manifests)
		return
	}
	files, err := installation.ReadManifests(folder, c.Manifests)
	if err != nil {
		report("component %q: manifests: %w", c.Name, err)
		return
	}
	used, err := installation.Keys(files)
	if err != nil {
		report("component %q: %w", c.Name, err)
		return
	}
	c.files = files
	for key := range used {
		if _, known := c.Values[key]; !known && key != installation.NamespaceKey {
			report("component %q: its manifests use the key %q, which its values field does not declare", c.Name, key)
		}
	}
	for key := range c.Values {
		if !used[key] || key == installation.NamespaceKey {
			report("component %q: no manifest uses its value %q", c.Name, key)
		}
	}
	c.checkProfiles(report)
}

// checkProfiles reports unknown profiles, and profiles that set undeclared values.
func (c *component) checkProfiles(report func(string, ...any)) {
	for profile, values := range c.Profiles {
		if !slices.Contains(spec.Profiles(), profile) {
			report("component %q: there is no profile %q; the profiles are %v", c.Name, profile, spec.Profiles())
		}
		for key := range values {
			if _, known := c.Values[key]; !known {
				report("component %q: profile %s sets the key %q, which its values field does not declare", c.Name, profile, key)
			}
		}
	}
}

// checkObjects fills the manifests with sample values and reports objects that cannot be installed. These are invalid objects, and those
// that installation.Owners rejects.
func (r *release) checkObjects(report func(string, ...any)) {
	owners := installation.Owners{}
	for _, component := range r.Components {
		values := map[string]string{installation.NamespaceKey: component.Namespace}
		for key, value := range component.Values {
			// A value without a default comes from the order. Here, its key serves as a sample.
			if values[key] = key; value != nil {
				values[key] = *value
			}
		}
		objects, err := installation.Parse(component.files, values)
		if err != nil {
			report("component %q: %w", component.Name, err)
		}
		for _, problem := range owners.Add(component.Name, component.Namespace, objects) {
			report("%s", problem)
		}
	}
}
