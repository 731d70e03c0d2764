package kyma

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/environment-broker/environment-broker/internal/environment"
)

// planConfiguration is the part of a plan's configuration in the control plane that the broker uses. It has the form of the Kyma
// Environment Broker, whose other fields are ignored.
type planConfiguration struct {
	AdditionalComponents []struct {
		Name      string `json:"name"`
		Namespace string `json:"namespace"`
		Source    struct {
			URL string `json:"url"`
		} `json:"source"`
	} `json:"additional-components"`
}

// parseComponents returns the additional components in the configuration of a plan. The text of its error follows a subject.
func parseComponents(text string) ([]environment.KymaComponent, error) {
	var configured planConfiguration
	if err := yaml.Unmarshal([]byte(text), &configured); err != nil {
		return nil, errors.New("is not valid YAML")
	}

	var components []environment.KymaComponent

	for _, component := range configured.AdditionalComponents {
		switch {
		case component.Name == "" || component.Namespace == "":
			return nil, errors.New("has a component without a name or a namespace")
		case component.Source.URL != "":
			return nil, fmt.Errorf("has a source for component %s, but components come from the Provisioner's releases", component.Name)
		}

		components = append(components, environment.KymaComponent{Name: component.Name, Namespace: component.Namespace})
	}

	return components, nil
}

// addComponents adds the additional components of the plan for the version, from the ConfigMap with the labels keb-config=true and
// runtime-version-VERSION=true. Its key is the name of the plan, or default. Without such a ConfigMap for the version, that for the
// default version applies; without both, nothing is added. Components that the plan has already are skipped.
func (k Kyma) addComponents(ctx context.Context, plan string, installation *environment.KymaInstallation) error {
	for _, version := range []string{installation.Version, k.Version} {
		found, err := k.ControlPlane.configMaps(ctx, "keb-config=true,runtime-version-"+strings.ToLower(version)+"=true")

		switch {
		case err != nil:
			return err
		case len(found) > 1:
			return refused("%d ConfigMaps of the control plane configure the plans for Kyma %s: remove all but one", len(found), version)
		case len(found) == 0:
			continue
		}

		text, known := found[0].Data[plan]
		if !known {
			text = found[0].Data["default"]
		}

		components, err := parseComponents(text)
		if err != nil {
			return refused("the configuration of plan %s in the ConfigMap %s of the control plane %s", plan, found[0].Name, err)
		}

		for _, component := range components {
			installation.Add(component)
		}

		return nil
	}

	return nil
}
