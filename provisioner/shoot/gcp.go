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

// gcpNetworks holds the workers' range under its present name and under its former one.
type gcpNetworks struct {
	Worker  string `json:"worker"`
	Workers string `json:"workers"`
}

type gcpControlPlane struct {
	metav1.TypeMeta `json:",inline"`

	// Zone is where Gardener's cloud controller thinks that the control plane stands.
	Zone string `json:"zone"`
}

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
