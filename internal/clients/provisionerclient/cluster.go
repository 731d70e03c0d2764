package provisionerclient

import (
	"context"
	"fmt"

	"github.com/environment-broker/environment-broker/internal/clients/provisionerclient/wire"
	"github.com/environment-broker/environment-broker/internal/environment/fleet"
)

// Cluster is the part of a runtime's configuration that describes its location. Fields that the Provisioner does not know are
// empty.
type Cluster struct {
	// Name is the name of the Shoot. Seed is the name of the cluster that hosts its control plane.
	Name, Seed, Region string
}

// Cluster returns the name, the seed and the region of the runtime's Shoot.
func (c *Client) Cluster(ctx context.Context, tenant, runtimeID string) (Cluster, error) {
	call := c.call("describe the runtime", Caller{Tenant: tenant})

	answer, err := wire.RuntimeCluster(ctx, call, runtimeID)
	if err != nil {
		return Cluster{}, fmt.Errorf("reading the cluster configuration of runtime %s: %w", runtimeID, err)
	}

	if answer.Result == nil || answer.Result.RuntimeConfiguration == nil || answer.Result.RuntimeConfiguration.ClusterConfig == nil {
		return Cluster{}, call.missing("the configuration of the cluster")
	}

	config := answer.Result.RuntimeConfiguration.ClusterConfig

	return Cluster{Name: valueOf(config.Name), Seed: valueOf(config.Seed), Region: valueOf(config.Region)}, nil
}

// Console returns the URL of the runtime's console in Director, or "" if there is none. The Kyma Provisioner does not support
// this call.
func (c *Client) Console(ctx context.Context, tenant, runtimeID string) (string, error) {
	call := c.call("report the console URL of the runtime", Caller{Tenant: tenant})

	answer, err := wire.Console(ctx, call, runtimeID)
	if err != nil {
		return "", fmt.Errorf("reading the console URL of runtime %s: %w", runtimeID, err)
	}

	if answer.Result == nil {
		return "", call.missing("the runtime")
	}

	return valueOf(answer.Result.ConsoleURL), nil
}

// MaintenanceWindow returns the maintenance window of the runtime's Shoot, or the zero value if the Shoot has none. The Kyma
// Provisioner does not support this call: the error then wraps ErrNotUnderstood.
func (c *Client) MaintenanceWindow(ctx context.Context, tenant, runtimeID string) (fleet.WindowTimes, error) {
	call := c.call("report the maintenance window of the runtime", Caller{Tenant: tenant})

	answer, err := wire.MaintenanceWindow(ctx, call, runtimeID)
	if err != nil {
		return fleet.WindowTimes{}, fmt.Errorf("reading the maintenance window of runtime %s: %w", runtimeID, err)
	}

	if answer.Result == nil {
		return fleet.WindowTimes{}, call.missing("the runtime")
	}

	window := answer.Result.MaintenanceWindow
	if window == nil {
		return fleet.WindowTimes{}, nil
	}

	return fleet.WindowTimes{Begin: window.Begin, End: window.End}, nil
}
