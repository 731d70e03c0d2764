package spec

// Provider contains the fields that are specific to one cloud provider. Validation ensures that exactly one field is set.
type Provider struct {
	GCPConfig       *GCP       `json:"gcpConfig,omitempty"`
	AzureConfig     *Azure     `json:"azureConfig,omitempty"`
	AWSConfig       *AWS       `json:"awsConfig,omitempty"`
	OpenStackConfig *OpenStack `json:"openStackConfig,omitempty"`
}

// GCP contains the fields of an order that are specific to Google Cloud.
type GCP struct {
	Zones []string `json:"zones"`
}

// Azure contains the fields of an order that are specific to Microsoft Azure. Zones lists zones that share the address range of
// the nodes; AzureZones lists zones with separate ranges. At most one of them is set. If both are empty, Azure chooses the
// location of each machine.
type Azure struct {
	VnetCIDR         string       `json:"vnetCidr"`
	Zones            []string     `json:"zones,omitempty"`
	AzureZones       []*AzureZone `json:"azureZones,omitempty"`
	EnableNATGateway *bool        `json:"enableNatGateway,omitempty"`
	// IdleConnectionTimeoutMinutes is the idle timeout of the NAT gateway, between 4 and 120 minutes. Nil means 4.
	IdleConnectionTimeoutMinutes *int `json:"idleConnectionTimeoutMinutes,omitempty"`
}

// AzureZone is a zone, identified by its number, and the address range of its nodes.
type AzureZone struct {
	Name int    `json:"name"`
	CIDR string `json:"cidr"`
}

// AWS contains the fields of an order that are specific to Amazon Web Services.
type AWS struct {
	VpcCIDR  string     `json:"vpcCidr"`
	AWSZones []*AWSZone `json:"awsZones"`
	// EnableIMDSv2 decides whether instance metadata requires tokens. If it is nil, the configuration of the Provisioner decides.
	EnableIMDSv2 *bool `json:"enableIMDSv2,omitempty"`
}

// AWSZone is a zone with its three disjoint ranges within the VPC: for nodes, for public load balancers, and for internal load
// balancers.
type AWSZone struct {
	Name         string `json:"name"`
	PublicCIDR   string `json:"publicCidr"`
	InternalCIDR string `json:"internalCidr"`
	WorkerCIDR   string `json:"workerCidr"`
}

// OpenStack contains the fields of an order that are specific to OpenStack. Package shoot defines the defaults of
// FloatingPoolName and CloudProfileName.
type OpenStack struct {
	Zones                []string `json:"zones"`
	FloatingPoolName     *string  `json:"floatingPoolName,omitempty"`
	CloudProfileName     *string  `json:"cloudProfileName,omitempty"`
	LoadBalancerProvider string   `json:"loadBalancerProvider"`
}
