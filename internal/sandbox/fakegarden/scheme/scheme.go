package scheme

import (
	"fmt"

	authenticationv1alpha1 "github.com/gardener/gardener/pkg/apis/authentication/v1alpha1"
	gardencorev1 "github.com/gardener/gardener/pkg/apis/core/v1"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	securityv1alpha1 "github.com/gardener/gardener/pkg/apis/security/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// New returns a scheme of its own for every caller, because clients may add to it. It holds the defaults of Gardener's API, too.
func New() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	builder := runtime.NewSchemeBuilder(
		corev1.AddToScheme,
		gardencorev1beta1.AddToScheme,
		gardencorev1.AddToScheme,
		securityv1alpha1.AddToScheme,
		authenticationv1alpha1.AddToScheme,
	)
	if err := builder.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("register the kinds of the garden: %w", err)
	}
	return scheme, nil
}
