package deployments

import (
	"context"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/environment-broker/environment-broker/bundle/crdsafety"
	"github.com/environment-broker/environment-broker/internal/failure"
)

// checkDefinition rejects a change to a CustomResourceDefinition that could make existing objects invalid. In that case, it also
// sets p.unsafe, so that the installation is not retried before the spec changes.
func (p *pass) checkDefinition(ctx context.Context, cluster client.Reader, present, wanted *unstructured.Unstructured) error {
	before, after := &apiextensionsv1.CustomResourceDefinition{}, &apiextensionsv1.CustomResourceDefinition{}
	for into, from := range map[*apiextensionsv1.CustomResourceDefinition]*unstructured.Unstructured{before: present, after: wanted} {
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(from.Object, into); err != nil {
			return failure.Wrap(failure.Permanent, err, "the CustomResourceDefinition %s cannot be read", from.GetName()).
				WithReason(failure.ReasonInternal, failure.ComponentRuntime)
		}
	}

	if crdsafety.Permitted(before, after) {
		return nil
	}

	violations := crdsafety.Definition(before, after)
	if len(violations) == 0 {
		var err error
		if violations, err = crdsafety.Objects(ctx, cluster, before, after); err != nil {
			return err //nolint:wrapcheck // it names the kind
		}
	}

	if len(violations) == 0 {
		return nil
	}

	p.unsafe.Store(true)

	lines := make([]string, 0, len(violations))
	for _, violation := range violations {
		lines = append(lines, violation.String())
	}

	return failure.New(failure.Permanent,
		"the change to a CustomResourceDefinition is not safe: %s; to permit it, add the annotation %s: \"false\" to the definition in the bundle",
		strings.Join(lines, "; "), crdsafety.AnnotationValidation).WithReason(failure.ReasonInternal, failure.ComponentRuntime)
}
