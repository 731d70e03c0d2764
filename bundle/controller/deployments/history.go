package deployments

import (
	"encoding/json"
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/environment-broker/environment-broker/bundle/api/v1alpha1"
)

const (
	// maxVersions is the maximum number of versions in the history of a BundleDeployment, and maxHistory is the maximum size of the
	// history in bytes.
	maxVersions = 10
	maxHistory  = 256 << 10
)

// version returns the history entry for an installed Bundle, without its number.
func version(bundle *v1alpha1.Bundle, config *runtime.RawExtension, at time.Time) v1alpha1.Version {
	template := v1alpha1.BundleTemplate{
		Metadata: metav1.ObjectMeta{Labels: maps.Clone(bundle.Labels), Annotations: maps.Clone(bundle.Annotations)},
		Spec:     v1alpha1.TemplateSpec{ProvisionerClassName: bundle.Spec.ProvisionerClassName, Source: bundle.Spec.Source},
	}

	// These labels are added by the controller. They do not come from the template.
	for _, label := range []string{v1alpha1.LabelOwnerKind, v1alpha1.LabelOwnerName, v1alpha1.LabelTemplateHash} {
		delete(template.Metadata.Labels, label)
	}

	if pinned := bundle.Status.ResolvedSource; pinned != nil {
		template.Spec.Source = *pinned.DeepCopy()
	}

	return v1alpha1.Version{
		Bundle: bundle.Name, Digest: bundle.Status.Digest, InstalledAt: metav1.NewTime(at.Truncate(time.Second)), Template: template,
		Config: config.DeepCopy(),
	}
}

// record adds an installed version to a history, unless it is already the newest one, and drops the oldest versions that exceed the
// limits.
func record(history []v1alpha1.Version, installed v1alpha1.Version) []v1alpha1.Version {
	installed.Number = 1

	if len(history) > 0 {
		newest := history[0]
		if newest.Bundle == installed.Bundle && !differ(newest.Digest, installed.Digest) && equality.Semantic.DeepEqual(newest.Config, installed.Config) {
			return history
		}

		installed.Number = history[0].Number + 1
	}

	kept, size := []v1alpha1.Version{}, 0

	for _, each := range append([]v1alpha1.Version{installed}, history...) {
		text, err := json.Marshal(each)
		if size += len(text); err != nil || size > maxHistory || len(kept) == maxVersions {
			break
		}

		kept = append(kept, each)
	}

	return kept
}
