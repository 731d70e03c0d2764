package shoot

import (
	"k8s.io/utils/ptr"

	"github.com/environment-broker/environment-broker/provisioner/spec"
)

// groupAWS is the API group of Gardener's extension for AWS, without the suffix .extensions.gardener.cloud.
const groupAWS = "aws.provider"

// tokensField is the field of the worker configuration for the metadata service of the machines.
const tokensField = "instanceMetadataOptions"

// metadataHopLimit is the maximum number of network hops to the metadata service: a container is one hop farther away than its
// machine.
const metadataHopLimit = 2

// awsCloud returns the AWS-specific part of a Shoot. Each zone has three subnets: one for the nodes, one for internal and one
// for public load balancers. The worker configuration is set only if access to a machine's metadata service requires tokens
// (IMDSv2).
func awsCloud(config *spec.AWS, options Options) *cloud {
	var (
		names []string
		zones []fields
	)

	for _, zone := range config.AWSZones {
		names = append(names, zone.Name)
		zones = append(zones, fields{
			"name": zone.Name, "internal": zone.InternalCIDR, "public": zone.PublicCIDR, "workers": zone.WorkerCIDR,
		})
	}

	aws := &cloud{
		profile: "aws", nodes: config.VpcCIDR, zones: names,
		infrastructure: extensionConfig(groupAWS, "InfrastructureConfig", fields{
			"networks": fields{"vpc": fields{"cidr": config.VpcCIDR}, "zones": zones},
		}),
		controlPlane:  extensionConfig(groupAWS, "ControlPlaneConfig", nil),
		withoutTokens: !ptr.Deref(config.EnableIMDSv2, true),
	}

	if ptr.Deref(config.EnableIMDSv2, options.RequireIMDSv2) {
		aws.worker = extensionConfig(groupAWS, "WorkerConfig", fields{
			tokensField: fields{"httpTokens": "required", "httpPutResponseHopLimit": metadataHopLimit},
		})
	}

	return aws
}
