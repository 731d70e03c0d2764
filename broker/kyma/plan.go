package kyma

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/environment-broker/environment-broker/internal/environment"
)

// planConfiguration is the part of a plan's configuration in the control plane that the broker uses. It has the format of Kyma
// Environment Broker, whose other fields are ignored.
type planConfiguration struct {
	AdditionalComponents []struct {
		Name      string `json:"name"`
		Namespace string `json:"namespace"`
		Source    struct {
			URL string `json:"url"`
		} `json:"source"`
	} `json:"additional-components"`
	// KymaTemplate is the Kyma resource for Lifecycle Manager, as YAML.
	KymaTemplate string `json:"kyma-template"`
}

// parseComponents returns the additional components in the configuration of a plan. Unless anySource is set, sources outside the
// release must have a digest. The error message is a predicate, such as "is not valid YAML", so callers put a subject before it.
func parseComponents(text string, anySource bool) ([]environment.KymaComponent, error) {
	var configured planConfiguration
	if err := yaml.Unmarshal([]byte(text), &configured); err != nil {
		return nil, errors.New("is not valid YAML")
	}

	var components []environment.KymaComponent

	for _, component := range configured.AdditionalComponents {
		switch {
		case component.Name == "" || component.Namespace == "":
			return nil, errors.New("has a component without a name or a namespace")
		case component.Source.URL != "" && !anySource && !isPinned(component.Source.URL):
			return nil, fmt.Errorf("has a source for component %s that the Provisioner does not install: write https://HOST/FILE#sha256=DIGEST", component.Name)
		}

		components = append(components, environment.KymaComponent{
			Name: component.Name, Namespace: component.Namespace, SourceURL: component.Source.URL,
		})
	}

	return components, nil
}

// isPinned reports whether a source is an https URL with a digest, as the Provisioner requires. The Provisioner checks the details.
func isPinned(source string) bool {
	return strings.HasPrefix(source, "https://") && strings.Contains(source, "#sha256=")
}

// planConfiguration returns the text of the plan's configuration for the version, and the name of its ConfigMap. Both are empty
// if there is no such ConfigMap. The ConfigMap has the label keb-config=true and, if a version is given, the label
// runtime-version-VERSION=true. The text is the value of the key named after the plan or, if there is none, of the key "default".
func (k Kyma) planConfiguration(ctx context.Context, plan, version string) (text, name string, err error) {
	selector, which := "keb-config=true", ""
	if version != "" {
		selector, which = selector+",runtime-version-"+strings.ToLower(version)+"=true", " for Kyma "+version
	}

	found, err := k.ControlPlane.configMaps(ctx, selector)

	switch {
	case err != nil:
		return "", "", err
	case len(found) > 1:
		return "", "", refused("%d ConfigMaps of the control plane configure the plans%s: remove all but one", len(found), which)
	case len(found) == 0:
		return "", "", nil
	}

	text, known := found[0].Data[plan]
	if !known {
		text = found[0].Data["default"]
	}

	return text, found[0].Name, nil
}

// addComponents adds the additional components of the plan for the version. If there is no ConfigMap for the version, it uses the
// one for the default version; if that is missing too, it adds nothing. It skips components that the plan already has.
func (k Kyma) addComponents(ctx context.Context, plan string, completed *environment.Kyma) error {
	installation := completed.Installation

	for _, version := range slices.Compact([]string{installation.Version, k.Version}) {
		text, name, err := k.planConfiguration(ctx, plan, version)
		if err != nil {
			return err
		}

		if name == "" {
			continue
		}

		components, err := parseComponents(text, completed.InstalledBy(environment.InstallerReconciler))
		if err != nil {
			return refused("the configuration of plan %s in the ConfigMap %s of the control plane %s", plan, name, err)
		}

		for _, component := range components {
			installation.Add(component)
		}

		return nil
	}

	return nil
}
