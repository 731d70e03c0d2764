package environment

import "github.com/environment-broker/environment-broker/internal/secret"

// Cluster describes the runtime of an instance, with all defaults resolved. Its JSON form is stored with instances and
// operations.
//
// Package broker/catalog derives it from the plan and the parameters of an order. The instance contains the cluster of its last
// successful operation; an update contains the cluster that will replace it.
type Cluster struct {
	// KubernetesVersion is a version such as 1.34 or 1.34.2. If the patch version is missing, Gardener chooses one.
	KubernetesVersion string `json:"kubernetesVersion"`
	// MachineType is the provider's name for the machine type of all worker nodes.
	MachineType string `json:"machineType"`
	// VolumeType is empty if the machine type includes a disk. VolumeSizeGB is then ignored.
	VolumeType   string `json:"volumeType"`
	VolumeSizeGB int    `json:"volumeSizeGB"`
	// AutoScalerMin and AutoScalerMax limit the total number of worker nodes in all zones.
	AutoScalerMin int `json:"autoScalerMin"`
	AutoScalerMax int `json:"autoScalerMax"`
	// MaxSurge and MaxUnavailable are the maximum numbers of additional and of unavailable nodes during a rolling update. At
	// least one of them is positive.
	MaxSurge       int `json:"maxSurge"`
	MaxUnavailable int `json:"maxUnavailable"`
	// Zones are the provider's names for the zones: full names such as eu-central-1a, except on Azure, where they are numbers.
	Zones []string `json:"zones"`
	// NodesCIDR, PodsCIDR and ServicesCIDR are IPv4 networks. They cannot change after the runtime is created.
	NodesCIDR    string `json:"nodesCIDR"`
	PodsCIDR     string `json:"podsCIDR"`
	ServicesCIDR string `json:"servicesCIDR"`
	// Purpose is the Shoot's purpose in Gardener: evaluation, testing, development or production.
	Purpose string `json:"purpose"`
	// LicenceType is the license type that the Provisioner writes into an annotation of the Shoot. It is empty if the plan has
	// none.
	LicenceType string `json:"licenceType,omitempty"`
	// SharedCredentials means that all runtimes of the plan share one cloud account, as in the trial plan.
	SharedCredentials bool `json:"sharedCredentials,omitempty"`
	// Administrators are the names of users with cluster-admin rights in the runtime.
	Administrators []string `json:"administrators"`
	// OIDC configures the login of users. If it is nil, the Provisioner's default applies.
	OIDC *OIDC `json:"oidc,omitempty"`
	// EUAccess means that only operators in the European Union may access the runtime.
	EUAccess bool `json:"euAccess,omitempty"`
	// OpenStack is nil unless the provider is openstack.
	OpenStack *OpenStack `json:"openStack,omitempty"`
	// Kyma is nil for a cluster without Kyma.
	Kyma *Kyma `json:"kyma,omitempty"`
	// Own is set for a cluster that the tenant provides. All other fields except ServiceManager are then zero.
	Own *OwnCluster `json:"own,omitempty"`
	// TargetSecret is the name of the credentials in Gardener that the instance uses, or empty. It takes precedence over the
	// configured names. It is set for adopted instances, so that a new runtime is created in the same cloud account as the old one.
	TargetSecret string `json:"targetSecret,omitempty"`
	// ServiceManager contains the credentials of the SAP BTP service operator in the cluster, or is nil if there are none.
	ServiceManager *ServiceManager `json:"serviceManager,omitempty"`
}

// OpenStack contains fields that only the openstack provider needs. They are configured in the provider's catalog file, not by
// users.
type OpenStack struct {
	// CloudProfileName is the name of the CloudProfile in Gardener. Each OpenStack installation has its own profile.
	CloudProfileName string `json:"cloudProfileName"`
	// FloatingPoolName is the name of the pool of public IP addresses.
	FloatingPoolName     string `json:"floatingPoolName"`
	LoadBalancerProvider string `json:"loadBalancerProvider"`
	ExposureClassName    string `json:"exposureClassName"`
}

// OwnCluster is a cluster that the tenant provides. The broker neither creates nor deletes it.
type OwnCluster struct {
	// Kubeconfig is the decoded kubeconfig from the order. Its JSON form contains the secret, so it must be stored only in encrypted
	// columns.
	Kubeconfig secret.Stored `json:"kubeconfig"`
	// ShootName and ShootDomain are the tenant's names for the cluster and its domain. They may be empty.
	ShootName   string `json:"shootName"`
	ShootDomain string `json:"shootDomain"`
}

// OIDC configures how a cluster validates the tokens of an identity provider. The fields correspond to flags of the Kubernetes
// API server.
type OIDC struct {
	// ClientID is the audience that tokens must have.
	ClientID string `json:"clientID"`
	// IssuerURL is the https URL of the issuer. The API server discovers the issuer's keys there.
	IssuerURL string `json:"issuerURL"`
	// GroupsClaim and UsernameClaim are the names of the token claims with the user's groups and name.
	GroupsClaim   string `json:"groupsClaim"`
	UsernameClaim string `json:"usernameClaim"`
	// UsernamePrefix is prepended to all user names in the cluster. The value "-" means no prefix.
	UsernamePrefix string `json:"usernamePrefix"`
	// SigningAlgs are signing algorithms, such as RS256. They are validated but do not restrict the tokens that the API server accepts.
	SigningAlgs []string `json:"signingAlgs"`
}
