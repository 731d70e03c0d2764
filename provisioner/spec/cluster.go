package spec

// Cluster is the order of a cluster, from which package shoot builds the Shoot. Address ranges are IPv4 CIDRs. In optional texts
// nil and "" mean the same.
type Cluster struct {
	// Name is the name of the Shoot.
	Name              string `json:"name"`
	KubernetesVersion string `json:"kubernetesVersion"`
	// Provider is aws, azure, gcp or openstack; ProviderSpecificConfig holds the part for it.
	Provider string `json:"provider"`
	// TargetSecret names the credentials binding in the Gardener project.
	TargetSecret string `json:"targetSecret"`
	Region       string `json:"region"`

	// The machines of the first worker pool. MachineImageVersion needs MachineImage; DiskType and VolumeSizeGB need each other.
	MachineType         string  `json:"machineType"`
	MachineImage        *string `json:"machineImage,omitempty"`
	MachineImageVersion *string `json:"machineImageVersion,omitempty"`
	DiskType            *string `json:"diskType,omitempty"`
	VolumeSizeGB        *int    `json:"volumeSizeGB,omitempty"`

	// WorkerCIDR is the range of the nodes, within the virtual network where the provider has one.
	WorkerCIDR   string  `json:"workerCidr"`
	PodsCIDR     *string `json:"podsCidr,omitempty"`
	ServicesCIDR *string `json:"servicesCidr,omitempty"`

	// The size of the first worker pool, in machines.
	AutoScalerMin  int `json:"autoScalerMin"`
	AutoScalerMax  int `json:"autoScalerMax"`
	MaxSurge       int `json:"maxSurge"`
	MaxUnavailable int `json:"maxUnavailable"`

	Purpose     *string `json:"purpose,omitempty"`
	LicenceType *string `json:"licenceType,omitempty"`
	// The configuration of the Provisioner decides on automatic updates where these are nil.
	EnableKubernetesVersionAutoUpdate   *bool `json:"enableKubernetesVersionAutoUpdate,omitempty"`
	EnableMachineImageVersionAutoUpdate *bool `json:"enableMachineImageVersionAutoUpdate,omitempty"`

	ProviderSpecificConfig *Provider `json:"providerSpecificConfig"`
	DNSConfig              *DNS      `json:"dnsConfig,omitempty"`
	// Seed runs the control plane; Gardener chooses one if it is nil.
	Seed              *string `json:"seed,omitempty"`
	OIDCConfig        *OIDC   `json:"oidcConfig,omitempty"`
	ExposureClassName *string `json:"exposureClassName,omitempty"`
	// ShootNetworkingFilterDisabled is true if nil.
	ShootNetworkingFilterDisabled *bool   `json:"shootNetworkingFilterDisabled,omitempty"`
	ControlPlaneFailureTolerance  *string `json:"controlPlaneFailureTolerance,omitempty"`
	EUAccess                      *bool   `json:"euAccess,omitempty"`
	// ShootAndSeedSameRegion has no effect. Kyma Provisioner accepted it.
	ShootAndSeedSameRegion *bool `json:"shootAndSeedSameRegion,omitempty"`
	// AdditionalWorkers are the worker pools after the first one.
	AdditionalWorkers []*WorkerPool `json:"additionalWorkers,omitempty"`
}

// ClusterUpgrade changes a Cluster. Fields that are nil stay as they are.
type ClusterUpgrade struct {
	KubernetesVersion                   *string
	MachineType                         *string
	DiskType                            *string
	VolumeSizeGB                        *int
	AutoScalerMin                       *int
	AutoScalerMax                       *int
	MachineImage                        *string
	MachineImageVersion                 *string
	MaxSurge                            *int
	MaxUnavailable                      *int
	Purpose                             *string
	EnableKubernetesVersionAutoUpdate   *bool
	EnableMachineImageVersionAutoUpdate *bool
	ProviderSpecificConfig              *Provider
	OIDCConfig                          *OIDC
	ExposureClassName                   *string
	ShootNetworkingFilterDisabled       *bool
	// AdditionalWorkers replace all pools after the first one; an empty list removes them.
	AdditionalWorkers []*WorkerPool
}

// WorkerPool is a group of equal machines. Its image, if nil, is that of the first pool; its zones, if empty, are all of the
// cluster.
type WorkerPool struct {
	Name                string   `json:"name"`
	MachineType         string   `json:"machineType"`
	MachineImage        *string  `json:"machineImage,omitempty"`
	MachineImageVersion *string  `json:"machineImageVersion,omitempty"`
	DiskType            *string  `json:"diskType,omitempty"`
	VolumeSizeGB        *int     `json:"volumeSizeGB,omitempty"`
	AutoScalerMin       int      `json:"autoScalerMin"`
	AutoScalerMax       int      `json:"autoScalerMax"`
	MaxSurge            int      `json:"maxSurge"`
	MaxUnavailable      int      `json:"maxUnavailable"`
	Zones               []string `json:"zones,omitempty"`
}

// DNS gives the cluster a domain of its own instead of one of Gardener's.
type DNS struct {
	Domain    string         `json:"domain"`
	Providers []*DNSProvider `json:"providers,omitempty"`
}

// DNSProvider maintains the records of some domains. SecretName is a Secret in the namespace of the Gardener project.
type DNSProvider struct {
	DomainsInclude []string `json:"domainsInclude"`
	Primary        bool     `json:"primary"`
	SecretName     string   `json:"secretName"`
	Type           string   `json:"type"`
}

// OIDC is the identity provider that the API server of the cluster trusts. If all texts are empty, the cluster has none.
type OIDC struct {
	ClientID       string   `json:"clientID"`
	GroupsClaim    string   `json:"groupsClaim"`
	IssuerURL      string   `json:"issuerURL"`
	SigningAlgs    []string `json:"signingAlgs"`
	UsernameClaim  string   `json:"usernameClaim"`
	UsernamePrefix string   `json:"usernamePrefix"`
}
