package processes

import (
	"context"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/environment-broker/environment-broker/provisioner/operation"
)

// forgetting returns the stage that removes the runtime from the bundle provisioner, if there is one. It runs for every runtime, because
// an earlier uninstallation may not be completed, and because a cluster that is not reachable is not uninstalled.
func (o Options) forgetting() []stage {
	if o.ForgetBundles == nil {
		return nil
	}

	return []stage{one("RemovingBundles", "Forget_Bundles", o.forgetBundles)}
}

// forgetBundles removes everything of the runtime from the bundle provisioner. After forgetTimeout the removal continues, and a
// background job removes the rest.
func (o Options) forgetBundles(ctx context.Context, op operation.Operation, _ logrus.FieldLogger,
) (operation.Operation, time.Duration, error) {
	progress, err := o.ForgetBundles(ctx, op.Data.Runtime.ID)

	switch {
	case err != nil:
		return o.retryCleanup(ctx, op, "the runtime could not be removed from the bundle provisioner", err, forgetTimeout)
	case !progress.Done:
		return o.retryCleanup(ctx, op, progress.Message, nil, forgetTimeout)
	default:
		return op, 0, nil
	}
}
