package kyma

import (
	"context"

	"sigs.k8s.io/yaml"

	"github.com/environment-broker/environment-broker/internal/clients/lifecyclemanager"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
)

// Objects returns the objects that register the runtime of the instance with Lifecycle Manager. Their template is kyma-template
// in the plan's configuration in the control plane, or else the template in the plan's file. Errors carry a failure.Kind.
func (k Kyma) Objects(ctx context.Context, instance environment.Instance) (lifecyclemanager.Objects, error) {
	plan, known := k.Catalog.ByID(instance.PlanID)
	if !known {
		return lifecyclemanager.Objects{}, failure.New(failure.Permanent, "the catalog no longer has plan %s: an operator must restore it", instance.PlanName)
	}

	wanted := instance.Request.Cluster.Kyma
	if wanted == nil {
		return lifecyclemanager.Objects{}, failure.New(failure.Internal, "instance %s has no Kyma", instance.ID)
	}

	settings, err := plan.LifecycleManagerSettings(*wanted)
	if err != nil {
		return lifecyclemanager.Objects{}, err
	}

	if k.ControlPlane == nil {
		return lifecyclemanager.Objects{}, failure.New(failure.Internal, "Lifecycle Manager is turned on without a control plane: set APP_CONTROL_PLANE_KUBECONFIG_PATH")
	}

	template, err := k.template(ctx, plan.Name)
	if err != nil {
		return lifecyclemanager.Objects{}, err
	}

	if template != "" {
		settings.Template = template
	}

	return lifecyclemanager.ObjectsOf(instance, settings, k.ControlPlane.Namespace, k.ShootDomain)
}

// template returns the Kyma template in the plan's configuration in the control plane, or "" if there is none. If the default
// Kyma version is set, which only the Reconciler uses, template reads the plan's configuration for that version.
func (k Kyma) template(ctx context.Context, plan string) (string, error) {
	text, name, err := k.planConfiguration(ctx, plan, k.Version)
	if err != nil || name == "" {
		return "", err
	}

	var configured planConfiguration
	if yaml.Unmarshal([]byte(text), &configured) != nil {
		return "", refused("the configuration of plan %s in the ConfigMap %s of the control plane is not valid YAML", plan, name)
	}

	if configured.KymaTemplate != "" {
		if _, err := lifecyclemanager.ParseTemplate(configured.KymaTemplate); err != nil {
			return "", refused("kyma-template of plan %s in the ConfigMap %s of the control plane %s", plan, name, err)
		}
	}

	return configured.KymaTemplate, nil
}
