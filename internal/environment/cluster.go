package environment

import "github.com/environment-broker/environment-broker/internal/secret"

// Cluster describes the runtime of an instance, with all defaults resolved. Its JSON names are stored with instances and operations.
type Cluster struct {
	KubernetesVersion string   `json:"kubernetesVersion"`
	MachineType       string   `json:"machineType"`
	VolumeType        string   `json:"volumeType"`
	VolumeSizeGB      int      `json:"volumeSizeGB"`
	AutoScalerMin     int      `json:"autoScalerMin"`
	AutoScalerMax     int      `json:"autoScalerMax"`
	MaxSurge          int      `json:"maxSurge"`
	MaxUnavailable    int      `json:"maxUnavailable"`
	Zones             []string `json:"zones"`
	NodesCIDR         string   `json:"nodesCIDR"`
	PodsCIDR          string   `json:"podsCIDR"`
	ServicesCIDR      string   `json:"servicesCIDR"`
	Purpose           string   `json:"purpose"`
	LicenceType       string   `json:"licenceType,omitempty"`
	// SharedCredentials reports that the runtimes of the plan share one account of the infrastructure, as those of trial do.
	SharedCredentials bool     `json:"sharedCredentials,omitempty"`
	Administrators    []string `json:"administrators"`
	// OIDC configures the login of users. Nil leaves it to the Provisioner.
	OIDC *OIDC `json:"oidc,omitempty"`
	// EUAccess restricts the operators with access to those in the European Union.
	EUAccess bool `json:"euAccess,omitempty"`
	// OpenStack is nil for other providers.
	OpenStack *OpenStack `json:"openStack,omitempty"`
	// Own is set for a cluster that the tenant brings. All other fields are then zero.
	Own *OwnCluster `json:"own,omitempty"`
}

// OpenStack has the fields that only this provider needs.
type OpenStack struct {
	CloudProfileName     string `json:"cloudProfileName"`
	FloatingPoolName     string `json:"floatingPoolName"`
	LoadBalancerProvider string `json:"loadBalancerProvider"`
	ExposureClassName    string `json:"exposureClassName"`
}

// OwnCluster is a cluster that the tenant brings. The broker neither creates nor removes it.
type OwnCluster struct {
	Kubeconfig  secret.Stored `json:"kubeconfig"`
	ShootName   string        `json:"shootName"`
	ShootDomain string        `json:"shootDomain"`
}

// OIDC is an issuer of identities and how a cluster reads its tokens.
type OIDC struct {
	ClientID       string   `json:"clientID"`
	IssuerURL      string   `json:"issuerURL"`
	GroupsClaim    string   `json:"groupsClaim"`
	UsernameClaim  string   `json:"usernameClaim"`
	UsernamePrefix string   `json:"usernamePrefix"`
	SigningAlgs    []string `json:"signingAlgs"`
}
