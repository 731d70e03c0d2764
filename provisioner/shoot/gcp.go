package shoot

import "github.com/environment-broker/environment-broker/provisioner/spec"

// groupGCP is the API group of Gardener's extension for Google Cloud, without the suffix .extensions.gardener.cloud.
const groupGCP = "gcp.provider"

// gcpCloud returns the GCP-specific part of a Shoot. cloudOf has checked that the order has a zone. The address range of the
// nodes is set in both the worker and the workers field, because Gardener has renamed the field. The zone of the control plane is
// a setting of the cloud controller manager.
func gcpCloud(config *spec.GCP, workers string) *cloud {
	return &cloud{
		profile: "gcp", nodes: workers, zones: config.Zones,
		infrastructure: extensionConfig(groupGCP, "InfrastructureConfig", fields{"networks": fields{"worker": workers, "workers": workers}}),
		controlPlane:   extensionConfig(groupGCP, "ControlPlaneConfig", fields{"zone": config.Zones[0]}),
	}
}
