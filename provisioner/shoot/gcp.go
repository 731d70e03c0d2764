package shoot

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/environment-broker/environment-broker/provisioner/spec"
)

const groupGCP = "gcp.provider"

type gcpInfrastructure struct {
	metav1.TypeMeta `json:",inline"`

	Networks gcpNetworks `json:"networks"`
}

// gcpNetworks has the range of the workers under its current and its former name.
type gcpNetworks struct {
	Worker  string `json:"worker"`
	Workers string `json:"workers"`
}

type gcpControlPlane struct {
	metav1.TypeMeta `json:",inline"`

	// Zone is the zone of the cloud controller manager.
	Zone string `json:"zone"`
}

// gcpCloud returns the part for Google Cloud. The order has at least one zone: cloudOf checks that.
func gcpCloud(config *spec.GCP, workers string) *cloud {
	return &cloud{
		profile: "gcp", nodes: workers, zones: config.Zones,
		infrastructure: gcpInfrastructure{
			TypeMeta: typeMeta(groupGCP, "InfrastructureConfig"),
			Networks: gcpNetworks{Worker: workers, Workers: workers},
		},
		controlPlane: gcpControlPlane{TypeMeta: typeMeta(groupGCP, "ControlPlaneConfig"), Zone: config.Zones[0]},
	}
}
