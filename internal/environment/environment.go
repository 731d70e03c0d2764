// Package environment holds the broker's own words: a service instance is an environment, ordered with a request, carried by
// operations that share Data.
package environment

import (
	"cmp"
	"encoding/json"
	"time"

	"github.com/environment-broker/environment-broker/internal/provisionerclient/wire"
	"github.com/environment-broker/environment-broker/internal/secret"
)

// The kinds of the broker's operations on an instance as a whole.
const (
	KindProvision   = "provision"
	KindDeprovision = "deprovision"
	KindUpdate      = "update"
	// KindSuspend removes the runtime and keeps the instance, KindResume makes the runtime anew.
	KindSuspend = "suspend"
	KindResume  = "resume"
	KindBind    = "bind"
	KindUnbind  = "unbind"
)

// Kinds lists them.
func Kinds() []string {
	return []string{KindProvision, KindDeprovision, KindUpdate, KindSuspend, KindResume}
}

// Instance is a service instance.
type Instance struct {
	ID        string `json:"id"`
	ServiceID string `json:"serviceID"`
	PlanID    string `json:"planID"`
	PlanName  string `json:"planName"`
	// GlobalAccountID is the tenant, SubAccountID the part of it that ordered the instance.
	GlobalAccountID string `json:"globalAccountID"`
	SubAccountID    string `json:"subAccountID"`
	// SubscriptionAccountID is the tenant that ordered the instance, where that has moved to another one since.
	SubscriptionAccountID string `json:"subscriptionAccountID,omitempty"`
	// PlatformRegion is the region segment of the path that the request came by, or the default.
	PlatformRegion string `json:"platformRegion"`
	// Provider and Region tell where the runtime is: aws, azure or gcp, and the provider's name of the region.
	Provider string `json:"provider"`
	Region   string `json:"region"`
	// Name is the runtime's name for people, ShootName the cluster's in Gardener.
	Name      string `json:"name"`
	ShootName string `json:"shootName"`
	// RuntimeID is the Provisioner's id, empty until the runtime was ordered.
	RuntimeID    string `json:"runtimeID"`
	DashboardURL string `json:"dashboardURL"`
	// MaintenanceVersion is the version of the plan that the runtime has; empty when it was made before versions were kept.
	MaintenanceVersion string `json:"maintenanceVersion,omitempty"`
	// Suspended says that the runtime was removed and the instance kept.
	Suspended bool `json:"suspended,omitempty"`
	// ExpiresAt is when the instance expires, or zero where its plan promised to last. ExpiredAt is since when it has: from then on
	// it may only be deleted.
	ExpiresAt time.Time `json:"expiresAt,omitzero"`
	ExpiredAt time.Time `json:"expiredAt,omitzero"`
	// Exclusive is what no other instance may have at the same time, or empty.
	Exclusive string    `json:"exclusive,omitempty"`
	Request   Request   `json:"request,omitzero"`
	CreatedAt time.Time `json:"createdAt"`
	UpdatedAt time.Time `json:"updatedAt"`
}

// RuntimeTenant is the tenant as which the Provisioner knows the runtime. It stays with the account that ordered the instance, whose
// credentials the runtime has, wherever the instance moves.
func (i Instance) RuntimeTenant() string { return cmp.Or(i.SubscriptionAccountID, i.GlobalAccountID) }

// Expired reports whether the instance may only be deleted.
func (i Instance) Expired() bool { return !i.ExpiredAt.IsZero() }

// Request is what the platform sent. It may hold credentials and is sealed at rest.
type Request struct {
	OrganizationGUID string `json:"organization_guid,omitempty"`
	SpaceGUID        string `json:"space_guid,omitempty"`
	// Context and Parameters are kept as they came; updates replace their fields one by one.
	Context    json.RawMessage `json:"context,omitempty"`
	Parameters json.RawMessage `json:"parameters,omitempty"`
	// Order is what was ordered at first, where an update has changed it since: by it a repeated order is told from another one.
	Order *Order `json:"order,omitempty"`
	// User is who ordered it, and the administrator of the runtime unless the parameters name others.
	User string `json:"user,omitempty"`
	// Cluster is what the plan's defaults and the parameters make together.
	Cluster Cluster `json:"cluster"`
}

// Order is what an order says that updates may change.
type Order struct {
	PlanID     string          `json:"plan_id"`
	Parameters json.RawMessage `json:"parameters,omitempty"`
}

// Cluster is the runtime to be made, every default resolved.
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
	// SharedCredentials says that the plan's runtimes share one account of the infrastructure: trial.
	SharedCredentials bool     `json:"sharedCredentials,omitempty"`
	Administrators    []string `json:"administrators"`
	// OIDC is how people log in to the cluster. Nil leaves that to the Provisioner.
	OIDC *OIDC `json:"oidc,omitempty"`
	// EUAccess says that only operators inside of the European Union may have access.
	EUAccess bool `json:"euAccess,omitempty"`
	// OpenStack is what only that provider asks for.
	OpenStack *OpenStack `json:"openStack,omitempty"`
	// Own is set when the tenant brings the cluster; then nothing of the above is.
	Own *OwnCluster `json:"own,omitempty"`
}

// OpenStack is what an order for OpenStack says besides.
type OpenStack struct {
	CloudProfileName     string `json:"cloudProfileName"`
	FloatingPoolName     string `json:"floatingPoolName"`
	LoadBalancerProvider string `json:"loadBalancerProvider"`
	ExposureClassName    string `json:"exposureClassName"`
}

// OwnCluster is a cluster that the broker neither makes nor removes.
type OwnCluster struct {
	Kubeconfig  secret.Stored `json:"kubeconfig"`
	ShootName   string        `json:"shootName"`
	ShootDomain string        `json:"shootDomain"`
}

// OIDC is an issuer of identities, and how a cluster reads its tokens.
type OIDC struct {
	ClientID       string   `json:"clientID"`
	IssuerURL      string   `json:"issuerURL"`
	GroupsClaim    string   `json:"groupsClaim"`
	UsernameClaim  string   `json:"usernameClaim"`
	UsernamePrefix string   `json:"usernamePrefix"`
	SigningAlgs    []string `json:"signingAlgs"`
}

// Data is what the steps of the broker's processes share. It is stored with the operation, sealed.
type Data struct {
	// Instance is the instance as it was when the operation was accepted, later as the operation makes it.
	Instance Instance `json:"instance,omitzero"`
	// TargetSecret names the credentials of the infrastructure in Gardener.
	TargetSecret string `json:"targetSecret,omitempty"`
	// Provisioning is the id of the operation that ordered the runtime; it is the key under which the Provisioner knows the order.
	Provisioning string `json:"provisioning,omitempty"`
	// Ordered says that the order may have been sent: stored before the first try, so that no crash hides a runtime.
	Ordered bool `json:"ordered,omitempty"`
	// ProvisionerOperationID is the Provisioner's operation that this one waits for.
	ProvisionerOperationID string `json:"provisionerOperationID,omitempty"`
	// Change is what an update, or a suspension with which other changes came, makes of the instance once it has succeeded.
	Change *Change `json:"change,omitempty"`
	// Binding is what the operation makes or removes, where that is no instance.
	Binding Binding `json:"binding,omitzero"`

	// Order is the order of the runtime while it is put together. It is not stored.
	Order *wire.ProvisionRuntimeInput `json:"-"`
}
