package environment

import "github.com/environment-broker/environment-broker/internal/secret"

// Cluster describes the runtime of an instance, with all defaults resolved. Its JSON names are stored with
// instances and operations.
//
// broker/catalog fills it from the plan and the parameters of an order. The instance keeps the cluster of its
// last successful operation; an update carries the next one until it succeeds.
type Cluster struct {
	// KubernetesVersion is a version such as 1.34 or 1.34.2. Without a patch, Gardener chooses one.
	KubernetesVersion string `json:"kubernetesVersion"`
	// MachineType is the provider's name of the type, the same for all worker nodes.
	MachineType string `json:"machineType"`
	// VolumeType is empty if the machine type brings its disk. VolumeSizeGB then has no meaning.
	VolumeType   string `json:"volumeType"`
	VolumeSizeGB int    `json:"volumeSizeGB"`
	// AutoScalerMin and AutoScalerMax bound the number of worker nodes in all zones together.
	AutoScalerMin int `json:"autoScalerMin"`
	AutoScalerMax int `json:"autoScalerMax"`
	// MaxSurge and MaxUnavailable are numbers of nodes during a rolling replacement: additional ones, and
	// missing ones. One of the two is positive.
	MaxSurge       int `json:"maxSurge"`
	MaxUnavailable int `json:"maxUnavailable"`
	// Zones are full names of the provider, such as eu-central-1a, or numbers on Azure.
	Zones []string `json:"zones"`
	// NodesCIDR, PodsCIDR and ServicesCIDR are IPv4 networks. They never change after the creation of the
	// runtime.
	NodesCIDR    string `json:"nodesCIDR"`
	PodsCIDR     string `json:"podsCIDR"`
	ServicesCIDR string `json:"servicesCIDR"`
	// Purpose is Gardener's purpose of the Shoot: evaluation, testing, development or production.
	Purpose string `json:"purpose"`
	// LicenceType is a label of the Shoot, empty for plans without one.
	LicenceType string `json:"licenceType,omitempty"`
	// SharedCredentials reports that the runtimes of the plan share one account of the infrastructure, as those
	// of trial do.
	SharedCredentials bool `json:"sharedCredentials,omitempty"`
	// Administrators are user names with cluster-admin rights in the runtime.
	Administrators []string `json:"administrators"`
	// OIDC configures the login of users. Nil leaves it to the Provisioner.
	OIDC *OIDC `json:"oidc,omitempty"`
	// EUAccess restricts the operators with access to those in the European Union.
	EUAccess bool `json:"euAccess,omitempty"`
	// OpenStack is nil for other providers.
	OpenStack *OpenStack `json:"openStack,omitempty"`
	// Own is set for a cluster that the tenant brings. All other fields are then zero.
	Own *OwnCluster `json:"own,omitempty"`
}

// OpenStack has the fields that only this provider needs. They come from the provider's file in the catalog,
// not from orders.
type OpenStack struct {
	// CloudProfileName is the CloudProfile in Gardener, because each OpenStack installation has its own.
	CloudProfileName string `json:"cloudProfileName"`
	// FloatingPoolName is the pool of public addresses.
	FloatingPoolName     string `json:"floatingPoolName"`
	LoadBalancerProvider string `json:"loadBalancerProvider"`
	ExposureClassName    string `json:"exposureClassName"`
}

// OwnCluster is a cluster that the tenant brings. The broker neither creates nor removes it.
type OwnCluster struct {
	// Kubeconfig is the decoded kubeconfig of the order. Its JSON form is the secret itself, so it is written
	// only to sealed columns.
	Kubeconfig secret.Stored `json:"kubeconfig"`
	// ShootName and ShootDomain are the tenant's description of the cluster. They may be empty.
	ShootName   string `json:"shootName"`
	ShootDomain string `json:"shootDomain"`
}

// OIDC is an issuer of identities, and the way in which a cluster reads its tokens. The fields are those of the
// Kubernetes API server.
type OIDC struct {
	// ClientID is the audience that tokens must have.
	ClientID string `json:"clientID"`
	// IssuerURL is the https URL of the issuer. The API server finds the issuer's keys there.
	IssuerURL string `json:"issuerURL"`
	// GroupsClaim and UsernameClaim are the claims of a token with the groups and the name of the user.
	GroupsClaim   string `json:"groupsClaim"`
	UsernameClaim string `json:"usernameClaim"`
	// UsernamePrefix precedes all user names in the cluster. The value - means no prefix.
	UsernamePrefix string `json:"usernamePrefix"`
	// SigningAlgs are the accepted signing algorithms, such as RS256.
	SigningAlgs []string `json:"signingAlgs"`
}
