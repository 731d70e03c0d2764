package spec

// Cluster is the order for a cluster, from which package shoot builds the Shoot. Address ranges are IPv4 CIDRs. For optional
// strings, nil and "" are equivalent.
type Cluster struct {
	// Name is the name of the Shoot, unique among the clusters of the project.
	Name string `json:"name"`
	// KubernetesVersion is a version such as 1.33.2. If the patch version is omitted, Gardener chooses the newest one.
	KubernetesVersion string `json:"kubernetesVersion"`
	// Provider is aws, azure, gcp or openstack. ProviderSpecificConfig contains the fields of this provider.
	Provider string `json:"provider"`
	// TargetSecret is the name of the CredentialsBinding in the Gardener project, which selects the account at the cloud provider.
	TargetSecret string `json:"targetSecret"`
	Region       string `json:"region"`

	// These fields describe the machines of the first worker pool. MachineImageVersion requires MachineImage. DiskType and
	// VolumeSizeGB must be set together.
	MachineType         string  `json:"machineType"`
	MachineImage        *string `json:"machineImage,omitempty"`
	MachineImageVersion *string `json:"machineImageVersion,omitempty"`
	DiskType            *string `json:"diskType,omitempty"`
	VolumeSizeGB        *int    `json:"volumeSizeGB,omitempty"`

	// WorkerCIDR is the address range of the nodes. On AWS and Azure it is within the range of the virtual network.
	WorkerCIDR string `json:"workerCidr"`
	// PodsCIDR and ServicesCIDR are the ranges inside the cluster. If a range is omitted, Gardener chooses it.
	PodsCIDR     *string `json:"podsCidr,omitempty"`
	ServicesCIDR *string `json:"servicesCidr,omitempty"`

	// These fields set the size of the first worker pool, in machines.
	AutoScalerMin  int `json:"autoScalerMin"`
	AutoScalerMax  int `json:"autoScalerMax"`
	MaxSurge       int `json:"maxSurge"`
	MaxUnavailable int `json:"maxUnavailable"`

	// Purpose is evaluation, testing, development or production.
	Purpose     *string `json:"purpose,omitempty"`
	LicenceType *string `json:"licenceType,omitempty"`
	// These two fields decide whether Gardener updates the cluster in its maintenance window. If a field is nil, the
	// configuration of the Provisioner decides.
	EnableKubernetesVersionAutoUpdate   *bool `json:"enableKubernetesVersionAutoUpdate,omitempty"`
	EnableMachineImageVersionAutoUpdate *bool `json:"enableMachineImageVersionAutoUpdate,omitempty"`

	ProviderSpecificConfig *Provider `json:"providerSpecificConfig"`
	DNSConfig              *DNS      `json:"dnsConfig,omitempty"`
	// Seed is the Gardener cluster that runs the control plane. If it is nil, Gardener chooses the Seed.
	Seed              *string `json:"seed,omitempty"`
	OIDCConfig        *OIDC   `json:"oidcConfig,omitempty"`
	ExposureClassName *string `json:"exposureClassName,omitempty"`
	// ShootNetworkingFilterDisabled disables Gardener's networking filter for the cluster. Nil means true.
	ShootNetworkingFilterDisabled *bool `json:"shootNetworkingFilterDisabled,omitempty"`
	// ControlPlaneFailureTolerance is the kind of failure that the control plane survives, "node" or "zone". If it is nil, the
	// control plane is not highly available.
	ControlPlaneFailureTolerance *string `json:"controlPlaneFailureTolerance,omitempty"`
	// EUAccess allows only Gardener operators in the EU to access the cluster and its nodes.
	EUAccess *bool `json:"euAccess,omitempty"`
	// ShootAndSeedSameRegion has no effect. It exists because clients of Kyma Provisioner send it.
	ShootAndSeedSameRegion *bool `json:"shootAndSeedSameRegion,omitempty"`
	// AdditionalWorkers are the worker pools after the first one.
	AdditionalWorkers []*WorkerPool `json:"additionalWorkers,omitempty"`
	// Adopted is set for a Shoot that another program has created. The API neither accepts nor returns it.
	Adopted *Adopted `json:"adopted,omitempty"`
}

// Adopted records the state of an adopted Shoot at the time of its adoption. Later changes of the Shoot depend on this state.
type Adopted struct {
	// WorkerPool is the name of the first worker pool.
	WorkerPool string `json:"workerPool"`
	// ProviderSpecificConfig is the value of the order's ProviderSpecificConfig at the time of the adoption. Until the order's
	// value changes, the Shoot keeps its configurations for the provider's extension, including fields that orders cannot
	// express.
	ProviderSpecificConfig *Provider `json:"providerSpecificConfig"`
}

// ClusterUpgrade changes a Cluster. A nil field keeps the current value. It is never stored: validation merges it into a Cluster.
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
	// AdditionalWorkers replace all worker pools after the first one; an empty list removes them.
	AdditionalWorkers []*WorkerPool
}

// WorkerPool is a group of identical machines. By default, a pool has the machine image of the first pool and uses all zones of
// the cluster.
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

// DNS is a domain for the cluster. If an order contains no DNS, Gardener assigns one of its own domains.
type DNS struct {
	Domain    string         `json:"domain"`
	Providers []*DNSProvider `json:"providers,omitempty"`
}

// DNSProvider is a DNS service that manages the records of some domains.
type DNSProvider struct {
	DomainsInclude []string `json:"domainsInclude"`
	// Primary marks the provider that manages the cluster's own domain.
	Primary bool `json:"primary"`
	// SecretName is the name of the Secret with the credentials, in the namespace of the Gardener project.
	SecretName string `json:"secretName"`
	// Type is Gardener's name for the DNS service, for example aws-route53.
	Type string `json:"type"`
}

// OIDC is the identity provider that the cluster's API server trusts. If all strings are empty, the cluster has no identity
// provider.
type OIDC struct {
	ClientID       string   `json:"clientID"`
	GroupsClaim    string   `json:"groupsClaim"`
	IssuerURL      string   `json:"issuerURL"`
	SigningAlgs    []string `json:"signingAlgs"`
	UsernameClaim  string   `json:"usernameClaim"`
	UsernamePrefix string   `json:"usernamePrefix"`
}
