// Package environment holds the broker's own words: a service instance is an environment, ordered with a request, carried by
// operations that share Data.
package environment

import (
	"encoding/json"
	"time"

	"github.com/environment-broker/environment-broker/internal/provisionerclient/wire"
)

// The kinds of the broker's operations.
const (
	KindProvision   = "provision"
	KindDeprovision = "deprovision"
	KindBind        = "bind"
	KindUnbind      = "unbind"
)

// Instance is a service instance.
type Instance struct {
	ID        string `json:"id"`
	ServiceID string `json:"serviceID"`
	PlanID    string `json:"planID"`
	PlanName  string `json:"planName"`
	// GlobalAccountID is the tenant, SubAccountID the part of it that ordered the instance.
	GlobalAccountID string `json:"globalAccountID"`
	SubAccountID    string `json:"subAccountID"`
	// PlatformRegion is the region segment of the path that the request came by, or the default.
	PlatformRegion string `json:"platformRegion"`
	// Provider and Region tell where the runtime is: aws, azure or gcp, and the provider's name of the region.
	Provider string `json:"provider"`
	Region   string `json:"region"`
	// Name is the runtime's name for people, ShootName the cluster's in Gardener.
	Name      string `json:"name"`
	ShootName string `json:"shootName"`
	// RuntimeID is the Provisioner's id, empty until the runtime was ordered.
	RuntimeID    string    `json:"runtimeID"`
	DashboardURL string    `json:"dashboardURL"`
	Request      Request   `json:"request,omitzero"`
	CreatedAt    time.Time `json:"createdAt"`
	UpdatedAt    time.Time `json:"updatedAt"`
}

// Request is what the platform sent. It may hold credentials and is sealed at rest.
type Request struct {
	OrganizationGUID string `json:"organization_guid,omitempty"`
	SpaceGUID        string `json:"space_guid,omitempty"`
	// Context and Parameters are kept as they came, so that a repeated request can be told from another one.
	Context    json.RawMessage `json:"context,omitempty"`
	Parameters json.RawMessage `json:"parameters,omitempty"`
	// User is who ordered it, and the administrator of the runtime unless the parameters name others.
	User string `json:"user,omitempty"`
	// Cluster is what the plan's defaults and the parameters make together.
	Cluster Cluster `json:"cluster"`
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
	// Binding is what the operation makes or removes, where that is no instance.
	Binding Binding `json:"binding,omitzero"`

	// Order is the order of the runtime while it is put together. It is not stored.
	Order *wire.ProvisionRuntimeInput `json:"-"`
}
