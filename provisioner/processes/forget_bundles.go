package processes

import (
	"context"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/provisioner/operation"
)

// forgetting returns the stage that removes the runtime from the bundle provisioner, or nil if there is no bundle provisioner.
// The stage runs for every runtime, because Kyma is not uninstalled from an unreachable cluster, and may be uninstalled only in
// part from other clusters.
func (o Options) forgetting() []stage {
	if o.ForgetBundles == nil {
		return nil
	}

	forgetting := one("RemovingBundles", "Forget_Bundles", o.forgetBundles, process.Notes{
		Does: "Removes the runtime from the bundle provisioner.", System: systemBundles, Limit: forgetTimeout, Optional: true,
	})
	forgetting.Steps[0].When.Text = "APP_KYMA_BUNDLES_KUBECONFIG_PATH is set"

	return []stage{forgetting}
}

// forgetBundles removes all objects of the runtime from the bundle provisioner. After forgetTimeout the removal of the runtime continues,
// and a background job removes the remaining objects.
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
