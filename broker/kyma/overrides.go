package kyma

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/secret"
)

// labelComponent is the label that limits the values of a Secret or ConfigMap to one component.
const labelComponent = "component"

// Overrides returns the instance's Kyma configuration with the values that operators have set in the control plane. If the
// instance has no installation or there is no control plane, Overrides changes nothing.
//
// Secrets with the label runtime-override=true come first, then ConfigMaps with the labels overrides-version-VERSION=true and
// overrides-plan-PLAN=true, each sorted by name. The component label limits the values to one component. A later value replaces an
// earlier one with the same key, and all of them replace values of the plan. Values from Secrets are treated as secret.
func (k Kyma) Overrides(ctx context.Context, instance environment.Instance) (*environment.Kyma, error) {
	present := instance.Request.Cluster.Kyma
	if k.ControlPlane == nil || present == nil || present.Installation == nil {
		return present, nil
	}

	secrets, err := k.ControlPlane.secrets(ctx, "runtime-override=true")
	if err != nil {
		return nil, err
	}

	configured, err := k.ControlPlane.configMaps(ctx,
		"overrides-version-"+strings.ToLower(present.Version)+"=true,overrides-plan-"+instance.PlanName+"=true")
	if err != nil {
		return nil, err
	}

	overridden, installation := *present, *present.Installation
	installation.Components = slices.Clone(installation.Components)
	overridden.Installation = &installation

	for _, one := range secrets {
		installation.Set(one.Labels[labelComponent], entries(one.Data, true)...)
	}

	for _, one := range configured {
		installation.Set(one.Labels[labelComponent], entries(one.Data, false)...)
	}

	return &overridden, nil
}

// entries returns the data of a Secret or ConfigMap as entries, sorted by key.
func entries[Text string | []byte](data map[string]Text, isSecret bool) []environment.KymaEntry {
	result := make([]environment.KymaEntry, 0, len(data))
	for _, key := range slices.Sorted(maps.Keys(data)) {
		result = append(result, environment.KymaEntry{Key: key, Value: secret.String(data[key]), Secret: isSecret})
	}

	return result
}
