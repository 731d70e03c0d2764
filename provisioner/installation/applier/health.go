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

// health says for which object it waits. missing tells that one is not there at all, which only applying can help. A Job that has failed
// does not recover and is an error; whatever else is failing may.
func (w *work) health(ctx context.Context, refs []ref) (waiting string, missing bool, err error) {
	for _, ref := range refs {
		if ref.readyByExistence() {
			continue
		}
		object := &unstructured.Unstructured{}
		object.SetGroupVersionKind(ref.kind())
		err := w.client.Get(ctx, ref.key(), object)
		if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
			return fmt.Sprintf("%s is gone and is applied again", ref), true, nil
		}
		if err != nil {
			return "", false, err
		}
		found, err := status.Compute(object)
		if err != nil {
			return "", false, failure.Wrap(failure.Permanent, err, "the status of %s cannot be understood", ref)
		}
		switch {
		case ref.isJob() && found.Status == status.CurrentStatus && !complete(object):
			return fmt.Sprintf("waiting for %s: it runs", ref), false, nil
		case found.Status == status.CurrentStatus:
		case found.Status == status.FailedStatus && ref.isJob():
			return "", false, failure.New(failure.Permanent, "%s has failed: %s", ref, found.Message)
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

// complete tells whether a Job has done what it is for.
func complete(job *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(job.Object, "status", "conditions")
	return slices.ContainsFunc(conditions, func(one any) bool {
		condition, _ := one.(map[string]any)
		return condition["type"] == "Complete" && condition["status"] == "True"
	})
}

// readyByExistence tells of kinds that nothing has to happen to: to read them would cost a call each.
func (r ref) readyByExistence() bool {
	return r.Group == "rbac.authorization.k8s.io" ||
		r.Group == "" && slices.Contains([]string{"ConfigMap", "Secret", "ServiceAccount"}, r.Kind)
}
