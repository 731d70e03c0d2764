package runtimeorder

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/provisionerclient"
	"github.com/environment-broker/environment-broker/internal/provisionerclient/wire"
)

// Provisioner takes orders. Its errors are of package failure.
type Provisioner interface {
	ProvisionRuntime(ctx context.Context, caller provisionerclient.Caller, order *wire.ProvisionRuntimeInput,
	) (provisionerclient.Operation, error)
}

// Place sends the order of the instance's runtime. A former Provisioner cannot be told the ranges of pods and services: where they are
// only the plan's defaults it gets the order without them, and Gardener decides. Ranges that somebody has chosen are insisted on.
func Place(ctx context.Context, provisioner Provisioner, caller provisionerclient.Caller, instance environment.Instance,
	order *wire.ProvisionRuntimeInput,
) (provisionerclient.Operation, error) {
	ordered, err := provisioner.ProvisionRuntime(ctx, caller, order)
	if !errors.Is(err, provisionerclient.ErrNotUnderstood) {
		return ordered, err
	}

	cluster := *order.ClusterConfig.GardenerConfig
	if cluster.PodsCidr == nil && cluster.ServicesCidr == nil {
		return ordered, err
	}

	chosen, parseErr := choosesRanges(instance.Request.Parameters)

	switch {
	case parseErr != nil:
		return ordered, parseErr
	case chosen:
		return ordered, failure.Wrap(failure.Permanent, err, "the Provisioner is too old to be told the ranges of pods and services: "+
			"order without networking.pods and networking.services, or ask the operator for a newer one").
			WithReason("", failure.ComponentProvisioner)
	}

	cluster.PodsCidr, cluster.ServicesCidr = nil, nil
	clusterConfig := *order.ClusterConfig
	clusterConfig.GardenerConfig = &cluster
	understood := *order
	understood.ClusterConfig = &clusterConfig

	return provisioner.ProvisionRuntime(ctx, caller, &understood)
}

// choosesRanges reports whether the parameters name ranges of pods or services.
func choosesRanges(parameters json.RawMessage) (bool, error) {
	var given struct {
		Networking struct {
			Pods     string `json:"pods"`
			Services string `json:"services"`
		} `json:"networking"`
	}

	if len(parameters) == 0 {
		return false, nil
	}

	if err := json.Unmarshal(parameters, &given); err != nil {
		return false, failure.Wrap(failure.Internal, err, "the parameters of the instance cannot be read")
	}

	return given.Networking.Pods != "" || given.Networking.Services != "", nil
}
