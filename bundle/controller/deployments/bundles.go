package deployments

import (
	"context"
	"fmt"
	"maps"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/environment-broker/environment-broker/bundle/api/v1alpha1"
)

// maxInactive is the maximum number of Bundles that are kept in addition to the active and the desired one. These earlier Bundles
// could not be installed, and operators may want to read their conditions.
const maxInactive = 3

// bundles contains the Bundles that a BundleDeployment owns.
type bundles struct {
	// desired is the Bundle that the template describes.
	desired *v1alpha1.Bundle
	// active is the installed Bundle. It is nil if no Bundle is installed, or if somebody has deleted the installed one.
	active *v1alpha1.Bundle
	all    []v1alpha1.Bundle
}

// findBundles returns the Bundles of the BundleDeployment, and creates the desired one if it does not exist.
func (p *pass) findBundles(ctx context.Context) (*bundles, error) {
	hash, err := templateHash(p.deployment.Spec.Template)
	if err != nil {
		return nil, err
	}

	list := &v1alpha1.BundleList{}
	if err := p.Client.List(ctx, list, ownedBy(p.deployment.Name)); err != nil {
		return nil, fmt.Errorf("listing the Bundles: %w", err)
	}

	found := &bundles{all: list.Items}

	for i := range found.all {
		bundle := &found.all[i]
		if bundle.Labels[v1alpha1.LabelTemplateHash] == hash {
			found.desired = bundle
		}

		if bundle.Name == p.status.ActiveBundle {
			found.active = bundle
		}
	}

	if found.desired == nil {
		found.desired, err = p.create(ctx, hash)
	}

	return found, err
}

func ownedBy(deployment string) client.MatchingLabels {
	return client.MatchingLabels{v1alpha1.LabelOwnerKind: v1alpha1.KindBundleDeployment, v1alpha1.LabelOwnerName: deployment}
}

// create creates the Bundle that the template describes.
func (p *pass) create(ctx context.Context, hash string) (*v1alpha1.Bundle, error) {
	template := p.deployment.Spec.Template

	labels := map[string]string{}
	maps.Copy(labels, template.Metadata.Labels)
	maps.Copy(labels, ownedBy(p.deployment.Name))
	labels[v1alpha1.LabelTemplateHash] = hash

	yes := true
	bundle := &v1alpha1.Bundle{
		ObjectMeta: metav1.ObjectMeta{
			Name: bundleName(p.deployment.Name, hash), Labels: labels, Annotations: template.Metadata.Annotations,
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.KindBundleDeployment, Name: p.deployment.Name, UID: p.deployment.UID,
				Controller: &yes, BlockOwnerDeletion: &yes,
			}},
		},
		Spec: v1alpha1.BundleSpec{ProvisionerClassName: template.Spec.ProvisionerClassName, Source: template.Spec.Source},
	}

	err := p.Client.Create(ctx, bundle)
	if apierrors.IsAlreadyExists(err) {
		return p.existing(ctx, bundle)
	}

	if err != nil {
		return nil, fmt.Errorf("creating Bundle %s: %w", bundle.Name, err)
	}

	return bundle, nil
}

// existing returns the Bundle with the desired name. It reads the Bundle from the API server, because the cache might not have it
// yet. It returns an error if the labels show that the Bundle belongs to another owner.
func (p *pass) existing(ctx context.Context, desired *v1alpha1.Bundle) (*v1alpha1.Bundle, error) {
	found := &v1alpha1.Bundle{}
	if err := p.Reader.Get(ctx, client.ObjectKeyFromObject(desired), found); err != nil {
		return nil, fmt.Errorf("reading Bundle %s: %w", desired.Name, err)
	}

	for key := range desired.Labels {
		if found.Labels[key] != desired.Labels[key] {
			return nil, fmt.Errorf("the Bundle %s already exists and does not belong to this BundleDeployment: delete the Bundle", desired.Name)
		}
	}

	return found, nil
}

// judge sets the HasValidBundle condition, and reports whether the Bundle can be installed.
func (p *pass) judge(bundle *v1alpha1.Bundle) (usable bool) {
	unpacked := meta.FindStatusCondition(bundle.Status.Conditions, v1alpha1.TypeUnpacked)

	switch {
	case !bundle.DeletionTimestamp.IsZero():
		p.set(v1alpha1.TypeHasValidBundle, metav1.ConditionTrue, v1alpha1.ReasonUnpackPending,
			fmt.Sprintf("Bundle %s is being deleted and will be created again", bundle.Name))
	case isUnpacked(bundle):
		p.set(v1alpha1.TypeHasValidBundle, metav1.ConditionTrue, v1alpha1.ReasonUnpackSuccessful,
			fmt.Sprintf("Bundle %s is unpacked", bundle.Name))

		return true
	case bundle.Status.Phase == v1alpha1.PhaseFailing:
		message := "see its conditions"
		if unpacked != nil && unpacked.Message != "" {
			message = unpacked.Message
		}

		p.set(v1alpha1.TypeHasValidBundle, metav1.ConditionFalse, v1alpha1.ReasonUnpackFailed,
			fmt.Sprintf("Bundle %s cannot be unpacked: %s", bundle.Name, message))
	default:
		p.set(v1alpha1.TypeHasValidBundle, metav1.ConditionTrue, v1alpha1.ReasonUnpackPending,
			fmt.Sprintf("waiting until Bundle %s is unpacked", bundle.Name))
	}

	return false
}

// isUnpacked reports whether the content of a Bundle can be read.
func isUnpacked(bundle *v1alpha1.Bundle) bool {
	return bundle.Status.Phase == v1alpha1.PhaseUnpacked && bundle.Status.ContentURL != "" && bundle.DeletionTimestamp.IsZero() &&
		meta.IsStatusConditionTrue(bundle.Status.Conditions, v1alpha1.TypeUnpacked)
}

// bound deletes the oldest inactive Bundles until at most limit of them are left. Inactive Bundles are those that are neither
// desired nor active.
func (p *pass) bound(ctx context.Context, found *bundles, limit int) error {
	var inactive []*v1alpha1.Bundle

	for i := range found.all {
		bundle := &found.all[i]
		if bundle.Name != found.desired.Name && bundle.Name != p.status.ActiveBundle && bundle.DeletionTimestamp.IsZero() {
			inactive = append(inactive, bundle)
		}
	}

	slices.SortFunc(inactive, func(a, b *v1alpha1.Bundle) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })

	for _, bundle := range inactive[:max(0, len(inactive)-limit)] {
		if err := p.deleteBundle(ctx, bundle); err != nil {
			return err
		}
	}

	return nil
}

func (p *pass) deleteBundle(ctx context.Context, bundle *v1alpha1.Bundle) error {
	if err := p.Client.Delete(ctx, bundle, client.Preconditions{UID: &bundle.UID}); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting Bundle %s: %w", bundle.Name, err)
	}

	return nil
}
