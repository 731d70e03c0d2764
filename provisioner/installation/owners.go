package installation

import (
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/environment-broker/environment-broker/internal/failure"
)

// Owners maps objects to the components that contain them.
type Owners map[string]string

// Add adds the objects of a component, and returns the problems of objects that cannot be installed. An object must not be in
// two components, because each would overwrite the other's version. A Job must not have a time to live, because the installer
// would recreate and rerun it each time Kubernetes has deleted it.
func (o Owners) Add(component, namespace string, objects []*unstructured.Unstructured) (problems []string) {
	for _, object := range objects {
		// The scope of a custom kind is unknown without a cluster. A cluster-wide object in two components with different
		// namespaces is therefore not detected.
		own := object.GetNamespace()
		if own == "" {
			own = namespace
		}
		id := fmt.Sprintf("%s %s/%s", object.GroupVersionKind().GroupKind(), own, object.GetName())
		if owner, taken := o[id]; taken {
			problems = append(problems, fmt.Sprintf("component %q: %s %q is also in component %q", component, object.GetKind(), object.GetName(), owner))
		}
		o[id] = component
		if _, expires, _ := unstructured.NestedFieldNoCopy(object.Object, "spec", "ttlSecondsAfterFinished"); expires {
			problems = append(problems, fmt.Sprintf("component %q: Job %q has ttlSecondsAfterFinished: remove this field, because a deleted Job would be created and run again",
				component, object.GetName()))
		}
	}
	return problems
}

// Objects returns the objects of a component, with its values filled in. Its error is permanent and contains no value.
func (c Component) Objects(files []ManifestFile) ([]*unstructured.Unstructured, error) {
	values := map[string]string{}
	maps.Copy(values, c.Values)
	values[NamespaceKey] = c.Namespace
	objects, err := Parse(files, values)
	if err == nil {
		return objects, nil
	}
	return nil, failure.Wrap(failure.Permanent, err, "the manifests of component %q cannot be read", c.Name).
		WithReason(failure.ReasonInternal, failure.ComponentProvisioner)
}

// CheckExternal rejects a plan whose external components cannot be installed together with its other components. The components
// of a release are checked when the release is read. An external component can be checked only when its manifests and values are
// known. files returns the manifests of a component.
func (p Plan) CheckExternal(files func(Component) ([]ManifestFile, error)) error {
	owners, external := Owners{}, []Component{}
	for _, component := range p.Components {
		if component.External {
			external = append(external, component)
		}
	}
	if len(external) == 0 {
		return nil
	}
	// The external components come last, so that a problem names the external component and not the one that it collides with.
	all := make([]Component, 0, len(p.Components))
	for _, component := range p.Components {
		if !component.External {
			all = append(all, component)
		}
	}
	for i, component := range append(all, external...) {
		content, err := files(component)
		if err != nil {
			return err
		}
		objects, err := component.Objects(content)
		if err != nil {
			return err
		}
		if problems := owners.Add(component.Name, component.Namespace, objects); len(problems) > 0 && i >= len(all) {
			return failure.New(failure.Permanent, "%s: change the file of its sourceURL", problems[0]).
				WithReason(failure.ReasonInternal, failure.ComponentProvisioner)
		}
	}
	return nil
}
