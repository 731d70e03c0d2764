package shoot

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/environment-broker/environment-broker/provisioner/spec"
)

const groupAWS = "aws.provider"

// metadataHopLimit is 2: a container is one network hop farther from the metadata service than its machine.
const metadataHopLimit = 2

type awsInfrastructure struct {
	metav1.TypeMeta `json:",inline"`

	Networks awsNetworks `json:"networks"`
}

type awsNetworks struct {
	VPC   network   `json:"vpc"`
	Zones []awsZone `json:"zones"`
}

type awsZone struct {
	Name     string `json:"name"`
	Internal string `json:"internal"`
	Public   string `json:"public"`
	Workers  string `json:"workers"`
}

type awsWorker struct {
	metav1.TypeMeta `json:",inline"`

	InstanceMetadataOptions awsMetadataOptions `json:"instanceMetadataOptions"`
}

type awsMetadataOptions struct {
	HTTPTokens              string `json:"httpTokens"`
	HTTPPutResponseHopLimit int    `json:"httpPutResponseHopLimit"`
}

// network is the virtual network of the cluster.
type network struct {
	CIDR string `json:"cidr"`
}

// awsCloud returns the part for AWS. Each zone has three subnets: for the nodes, for internal and for public load balancers. The
// worker configuration is only set if instance metadata requires tokens.
func awsCloud(config *spec.AWS, options Options) *cloud {
	var (
		names []string
		zones []awsZone
	)

	for _, zone := range config.AWSZones {
		names = append(names, zone.Name)
		zones = append(zones, awsZone{
			Name: zone.Name, Internal: zone.InternalCIDR, Public: zone.PublicCIDR, Workers: zone.WorkerCIDR,
		})
	}

	aws := &cloud{
		profile: "aws", nodes: config.VpcCIDR, zones: names,
		infrastructure: awsInfrastructure{
			TypeMeta: typeMeta(groupAWS, "InfrastructureConfig"),
			Networks: awsNetworks{VPC: network{CIDR: config.VpcCIDR}, Zones: zones},
		},
		controlPlane: typeMeta(groupAWS, "ControlPlaneConfig"),
	}

	if valueOr(config.EnableIMDSv2, options.RequireIMDSv2) {
		aws.worker = awsWorker{
			TypeMeta:                typeMeta(groupAWS, "WorkerConfig"),
			InstanceMetadataOptions: awsMetadataOptions{HTTPTokens: "required", HTTPPutResponseHopLimit: metadataHopLimit},
		}
	}

	return aws
}
