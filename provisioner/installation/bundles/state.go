package bundles

import (
	"cmp"
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/environment-broker/environment-broker/bundle/api/v1alpha1"
	"github.com/environment-broker/environment-broker/internal/failure"
)

// objects contains a runtime's objects on the hub.
type objects struct {
	// deployments maps names to BundleDeployments.
	deployments map[string]*v1alpha1.BundleDeployment
	bundles     []v1alpha1.Bundle
}

// find reads the runtime's BundleDeployments and Bundles.
func (i *Installer) find(ctx context.Context, runtimeID string) (*objects, error) {
	hub, deployments, bundles := i.Hub(), &v1alpha1.BundleDeploymentList{}, &v1alpha1.BundleList{}

	for _, list := range []client.ObjectList{deployments, bundles} {
		if err := hub.List(ctx, list, client.MatchingLabels{LabelRuntime: runtimeID}); err != nil {
			return nil, explain(err, "the components of the runtime")
		}
	}

	found := &objects{deployments: map[string]*v1alpha1.BundleDeployment{}, bundles: bundles.Items}
	for index := range deployments.Items {
		found.deployments[deployments.Items[index].Name] = &deployments.Items[index]
	}

	return found, nil
}

// bundle returns the Bundle that belongs to the named BundleDeployment and has the given content, or nil.
func (o *objects) bundle(deployment, content string) *v1alpha1.Bundle {
	for index := range o.bundles {
		labels := o.bundles[index].Labels
		if labels[v1alpha1.LabelOwnerName] == deployment && labels[labelContent] == content {
			return &o.bundles[index]
		}
	}

	return nil
}

// progress returns an error if a component has failed. Otherwise it describes the first component that is not yet installed or
// not healthy, or returns "" if there is none. sent is the result of sendContent.
func (o *objects) progress(runtimeID string, parts []part, sent map[string]string) (waiting string, err error) {
	for _, part := range parts {
		deployment := o.deployments[deploymentName(runtimeID, part.name)]

		text, err := o.state(part, deployment)
		if err != nil {
			return "", err
		}

		if text != "" {
			waiting = cmp.Or(waiting, part.where+": "+part.mask(cmp.Or(sent[part.name], text)))
		}
	}

	return waiting, nil
}

// state returns the reason why a part waits, or "" if the part is installed and healthy. It returns an error if the part has failed.
func (o *objects) state(part part, deployment *v1alpha1.BundleDeployment) (waiting string, err error) {
	valid, installed, healthy := condition(deployment, v1alpha1.TypeHasValidBundle),
		condition(deployment, v1alpha1.TypeInstalled), condition(deployment, v1alpha1.TypeHealthy)

	bundle := o.bundle(deployment.Name, part.content)
	if deployment.Status.ObservedGeneration != deployment.Generation || bundle == nil {
		return "waiting for the bundle provisioner to start", nil
	}

	switch {
	case valid.Status == metav1.ConditionFalse:
		// The bundle provisioner retries by itself and does not distinguish temporary errors from permanent ones.
		return "", failed(failure.Transient, part, withoutBundle(valid.Message, bundle.Name))
	case installed.Reason == v1alpha1.ReasonInstallFailed || installed.Reason == v1alpha1.ReasonUpgradeFailed:
		return "", failed(failure.Permanent, part, withoutBundle(installed.Message, bundle.Name))
	case installed.Status != metav1.ConditionTrue || installed.Reason != v1alpha1.ReasonInstallationSucceeded || deployment.Status.ActiveBundle != bundle.Name:
		return cmp.Or(installed.Message, "waiting for the bundle provisioner to start"), nil
	case healthy.Status != metav1.ConditionTrue:
		return cmp.Or(healthy.Message, "waiting for its objects to become healthy"), nil
	default:
		return "", nil
	}
}

// condition returns the named condition if it describes the current generation, and an empty condition otherwise.
func condition(deployment *v1alpha1.BundleDeployment, name string) metav1.Condition {
	found := meta.FindStatusCondition(deployment.Status.Conditions, name)
	if found == nil || found.ObservedGeneration != deployment.Generation {
		return metav1.Condition{}
	}

	return *found
}

// failed returns the error for a part that the bundle provisioner cannot install.
func failed(kind failure.Kind, part part, text string) error {
	return failure.New(kind, "%s: %s", part.where, part.mask(failure.Shorten(text, maxText))).
		WithReason(failure.ReasonInternal, failure.ComponentRuntime)
}

// maxText is the maximum length, in characters, of a condition's message in an error.
const maxText = 1000
