package format

import (
	"errors"
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// kindCSV is the kind of the object that describes an operator for Operator Lifecycle Manager.
const kindCSV = "ClusterServiceVersion"

// clusterServiceVersion contains the fields of a ClusterServiceVersion that an installation needs.
type clusterServiceVersion struct {
	Metadata struct {
		Name        string            `json:"name"`
		Annotations map[string]string `json:"annotations"`
	} `json:"metadata"`
	Spec struct {
		InstallModes []installMode `json:"installModes"`
		Install      struct {
			Strategy string   `json:"strategy"`
			Spec     strategy `json:"spec"`
		} `json:"install"`
		APIServiceDefinitions struct {
			Owned []map[string]any `json:"owned"`
		} `json:"apiservicedefinitions"`
		WebhookDefinitions []map[string]any `json:"webhookdefinitions"`
	} `json:"spec"`
}

type installMode struct {
	Type      string `json:"type"`
	Supported bool   `json:"supported"`
}

// strategy contains the Deployments and permissions of the "deployment" install strategy.
type strategy struct {
	Deployments        []deployment `json:"deployments"`
	Permissions        []permission `json:"permissions"`
	ClusterPermissions []permission `json:"clusterPermissions"`
}

type deployment struct {
	Name  string            `json:"name"`
	Label map[string]string `json:"label"`
	// Spec is the spec of a Deployment. It is passed on unchanged.
	Spec map[string]any `json:"spec"`
}

type permission struct {
	ServiceAccountName string              `json:"serviceAccountName"`
	Rules              []rbacv1.PolicyRule `json:"rules"`
}

// findOperator returns the ClusterServiceVersion of the bundle, and the other objects.
func findOperator(objects []*unstructured.Unstructured) (*clusterServiceVersion, []*unstructured.Unstructured, error) {
	var (
		operator *clusterServiceVersion
		others   []*unstructured.Unstructured
	)

	for _, object := range objects {
		if object.GetKind() != kindCSV {
			others = append(others, object)

			continue
		}

		if operator != nil {
			return nil, nil, fmt.Errorf("the bundle has two objects of the kind ClusterServiceVersion, %s and %s: remove one of them",
				operator.Metadata.Name, object.GetName())
		}

		operator = &clusterServiceVersion{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, operator); err != nil {
			return nil, nil, fmt.Errorf("the ClusterServiceVersion %s: %w", object.GetName(), err)
		}
	}

	if operator == nil {
		return nil, nil, errors.New("the manifests folder contains no ClusterServiceVersion: a registry+v1 bundle needs one")
	}

	return operator, others, nil
}

// check rejects operators that cannot be converted.
func (o *clusterServiceVersion) check() error {
	allNamespaces := false
	for _, mode := range o.Spec.InstallModes {
		allNamespaces = allNamespaces || mode.Type == "AllNamespaces" && mode.Supported
	}

	switch install := o.Spec.Install; {
	case !allNamespaces:
		return errors.New("it does not support the AllNamespaces install mode, which is required")
	case len(o.Spec.APIServiceDefinitions.Owned) > 0:
		return errors.New("it owns API services (spec.apiservicedefinitions), which cannot be installed")
	case len(o.Spec.WebhookDefinitions) > 0:
		return errors.New("it has webhooks (spec.webhookdefinitions), which cannot be installed")
	case install.Strategy != "" && install.Strategy != "deployment":
		return fmt.Errorf("the install strategy %q is unknown: use deployment", install.Strategy)
	default:
		return nil
	}
}
