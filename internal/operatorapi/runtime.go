package operatorapi

import "time"

// RuntimeState sums up where a runtime stands, by the newest operation of its instance.
type RuntimeState string

// The states of a runtime.
const (
	// RuntimeProvisioning: its creation is pending or under way.
	RuntimeProvisioning RuntimeState = "provisioning"
	// RuntimeSucceeded: it was created and nothing is being done to it.
	RuntimeSucceeded RuntimeState = "succeeded"
	// RuntimeFailed: the newest operation, of whatever kind, failed or was canceled. Status.LastOperation tells which one.
	RuntimeFailed RuntimeState = "failed"
	// RuntimeDeprovisioning: its deletion is pending or under way.
	RuntimeDeprovisioning RuntimeState = "deprovisioning"
)

// Runtime is a service instance with the cluster behind it.
type Runtime struct {
	InstanceID string `json:"instanceID"`
	// RuntimeID is the Provisioner's id, empty until the runtime was ordered.
	RuntimeID       string `json:"runtimeID,omitempty"`
	GlobalAccountID string `json:"globalAccountID"`
	SubAccountID    string `json:"subAccountID"`
	// Provider is aws, azure or gcp; Region is the provider's name of the region, SubAccountRegion the platform's.
	Provider         string `json:"provider"`
	Region           string `json:"region"`
	SubAccountRegion string `json:"subAccountRegion"`
	// Name is the runtime's name for people, ShootName the cluster's in Gardener.
	Name            string        `json:"name"`
	ShootName       string        `json:"shootName"`
	ServiceClassID  string        `json:"serviceClassID"`
	ServicePlanID   string        `json:"servicePlanID"`
	ServicePlanName string        `json:"servicePlanName"`
	DashboardURL    string        `json:"dashboardURL,omitempty"`
	Status          RuntimeStatus `json:"status"`
}

// RuntimeStatus is what changes in the life of a runtime.
type RuntimeStatus struct {
	State         RuntimeState `json:"state"`
	CreatedAt     time.Time    `json:"createdAt"`
	ModifiedAt    time.Time    `json:"modifiedAt"`
	LastOperation Operation    `json:"lastOperation"`
}

// RuntimeList is a page of runtimes, the newest first.
type RuntimeList struct {
	Page

	Data []Runtime `json:"data"`
}

// Page tells where a list stands. The next page is asked for with the cursor, or with page and page_size.
type Page struct {
	// Count is the number of entries on this page, TotalCount on all pages: only counted when asked for with total=true.
	Count      int  `json:"count"`
	TotalCount *int `json:"totalCount,omitempty"`
	// Cursor leads to the next page. It is empty on the last one.
	Cursor string `json:"cursor,omitempty"`
}

// AdminKubeconfig is a short-lived kubeconfig with every right in the runtime.
type AdminKubeconfig struct {
	Kubeconfig string `json:"kubeconfig"`
	// ExpiresAt is when its credentials end, where that is known.
	ExpiresAt *time.Time `json:"expiresAt,omitempty"`
}
