package spec

// Provider holds what differs between cloud providers. Exactly one field is set.
type Provider struct {
	GCPConfig       *GCP       `json:"gcpConfig,omitempty"`
	AzureConfig     *Azure     `json:"azureConfig,omitempty"`
	AWSConfig       *AWS       `json:"awsConfig,omitempty"`
	OpenStackConfig *OpenStack `json:"openStackConfig,omitempty"`
}

// GCP is the part for Google Cloud.
type GCP struct {
	Zones []string `json:"zones"`
}

// Azure is the part for Microsoft Azure. Either Zones share the range of the nodes or AzureZones have a range each; without both,
// the machines are in no particular zone.
type Azure struct {
	VnetCIDR         string       `json:"vnetCidr"`
	Zones            []string     `json:"zones,omitempty"`
	AzureZones       []*AzureZone `json:"azureZones,omitempty"`
	EnableNATGateway *bool        `json:"enableNatGateway,omitempty"`
	// IdleConnectionTimeoutMinutes is 4 if nil.
	IdleConnectionTimeoutMinutes *int `json:"idleConnectionTimeoutMinutes,omitempty"`
}

// AzureZone is a zone with a range of its own.
type AzureZone struct {
	Name int    `json:"name"`
	CIDR string `json:"cidr"`
}

// AWS is the part for Amazon Web Services.
type AWS struct {
	VpcCIDR  string     `json:"vpcCidr"`
	AWSZones []*AWSZone `json:"awsZones"`
	// EnableIMDSv2 requires tokens for instance metadata. The configuration of the Provisioner decides if it is nil.
	EnableIMDSv2 *bool `json:"enableIMDSv2,omitempty"`
}

// AWSZone is a zone with its three ranges within the VPC.
type AWSZone struct {
	Name         string `json:"name"`
	PublicCIDR   string `json:"publicCidr"`
	InternalCIDR string `json:"internalCidr"`
	WorkerCIDR   string `json:"workerCidr"`
}

// OpenStack is the part for OpenStack. Package shoot has the defaults of the two optional names.
type OpenStack struct {
	Zones                []string `json:"zones"`
	FloatingPoolName     *string  `json:"floatingPoolName,omitempty"`
	CloudProfileName     *string  `json:"cloudProfileName,omitempty"`
	LoadBalancerProvider string   `json:"loadBalancerProvider"`
}
