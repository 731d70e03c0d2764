package shoot

import "github.com/environment-broker/environment-broker/provisioner/spec"

// groupGCP is the API group of Gardener's extension for Google Cloud, without its common suffix.
const groupGCP = "gcp.provider"

// gcpCloud returns the part for Google Cloud. The order has at least one zone, which cloudOf checks. The machines' network is set
// under two names, because Gardener has renamed the field worker to workers. The zone of the control plane is the zone of the
// cloud controller manager.
func gcpCloud(config *spec.GCP, workers string) *cloud {
	return &cloud{
		profile: "gcp", nodes: workers, zones: config.Zones,
		infrastructure: extensionConfig(groupGCP, "InfrastructureConfig", fields{"networks": fields{"worker": workers, "workers": workers}}),
		controlPlane:   extensionConfig(groupGCP, "ControlPlaneConfig", fields{"zone": config.Zones[0]}),
	}
}
