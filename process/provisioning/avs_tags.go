package provisioning

import (
	"context"
	"slices"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/environment-broker/environment-broker/internal/clients/avs"
	"github.com/environment-broker/environment-broker/internal/clients/provisionerclient"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/upstream/restclient"
	"github.com/environment-broker/environment-broker/process"
)

// Clusters reads the clusters of runtimes from the Provisioner.
type Clusters interface {
	Cluster(ctx context.Context, tenant, runtimeID string) (provisionerclient.Cluster, error)
}

// tagEvaluation adds tags with the name, the seed and the region of the cluster to the internal evaluation, unless it already has
// them. If the tags cannot be added, the operation continues, because the runtime is ready.
type tagEvaluation struct {
	monitoring Monitoring
	clusters   Clusters
	objects    Objects
}

// Name implements process.Step.
func (tagEvaluation) Name() string { return "AVS_Tags" }

// Run implements process.Step.
func (s tagEvaluation) Run(ctx context.Context, operation Operation, _ logrus.FieldLogger) (Operation, time.Duration, error) {
	object, err := s.objects.FindObject(ctx, operation.InstanceID, environment.SystemAvS, environment.KindInternalEvaluation)
	if err != nil || object.State != environment.OutsideCreated {
		return operation, 0, err
	}

	if err := s.tag(ctx, operation.Data.Instance, object.Key); err != nil {
		window := externalWindow
		if !failure.Is(err, failure.Transient) {
			window = 0
		}

		return process.RetryOperationWithoutFail(operation, "", err, restclient.RetryAfter(err, avsInterval), window)
	}

	return operation, 0, nil
}

func (s tagEvaluation) tag(ctx context.Context, instance environment.Instance, id string) error {
	cluster, err := s.clusters.Cluster(ctx, instance.RuntimeTenant(), instance.RuntimeID)
	if err != nil {
		return err
	}

	tags := s.monitoring.AvS.TagsOf(cluster.Name, cluster.Seed, cluster.Region)
	tags = slices.DeleteFunc(tags, func(tag avs.Tag) bool { return tag.Content == "" })

	return s.monitoring.AvS.Tag(ctx, id, tags) //nolint:wrapcheck // names AvS
}
