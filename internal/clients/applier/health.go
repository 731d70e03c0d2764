package applier

import (
	"context"
	"fmt"
	"slices"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/environment-broker/environment-broker/internal/failure"
)

// health checks the objects in order and describes the first object that is not ready. waiting is "" if all are ready. missing
// reports that an object does not exist, so the part must be applied again. A failed Job is an error, because a Job does
// not recover; other failing objects may recover.
func (w *work) health(ctx context.Context, refs []ref) (waiting string, missing bool, err error) {
	for _, ref := range refs {
		if ref.readyByExistence() {
			continue
		}
		object := &unstructured.Unstructured{}
		object.SetGroupVersionKind(ref.kind())
		err := w.client.Get(ctx, ref.key(), object)
		// NoMatch means that somebody has deleted the definition of the kind, and thus the object too.
		if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
			return fmt.Sprintf("%s is missing and will be applied again", ref), true, nil
		}
		if err != nil {
			return "", false, err
		}
		found, err := status.Compute(object)
		if err != nil {
			return "", false, failure.Wrap(failure.Permanent, err, "the status of %s is invalid", ref)
		}
		switch {
		case ref.isJob() && found.Status == status.CurrentStatus && !complete(object):
			return fmt.Sprintf("waiting for %s: it is running", ref), false, nil
		case found.Status == status.CurrentStatus:
		case found.Status == status.FailedStatus && ref.isJob():
			failed := failure.New(failure.Permanent, "%s has failed", ref)
			failed.Detail = found.Message // not shortened here, because explain must first mask secrets in it
			return "", false, failed
		case found.Status == status.TerminatingStatus:
			return goingAway(ref, object.GetFinalizers()), false, nil
		case found.Status == status.FailedStatus:
			return fmt.Sprintf("%s is failing: %s", ref, found.Message), false, nil
		default:
			return fmt.Sprintf("waiting for %s: %s", ref, found.Message), false, nil
		}
	}
	return "", false, nil
}

func (r ref) isJob() bool { return r.Group == "batch" && r.Kind == "Job" }

// complete reports whether a Job has finished successfully. The status from kstatus is not sufficient, because kstatus reports a
// running Job as current.
func complete(job *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(job.Object, "status", "conditions")
	return slices.ContainsFunc(conditions, func(one any) bool {
		condition, _ := one.(map[string]any)
		return condition["type"] == "Complete" && condition["status"] == "True"
	})
}

// readyByExistence reports whether objects of the kind are ready as soon as they exist. health skips these objects, which saves
// a call for each.
func (r ref) readyByExistence() bool {
	return r.Group == "rbac.authorization.k8s.io" ||
		r.Group == "" && slices.Contains([]string{"ConfigMap", "Secret", "ServiceAccount"}, r.Kind)
}
