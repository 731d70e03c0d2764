package operatorapi

import "time"

// RuntimeState sums up where a runtime stands, by the newest operation of its instance.
type RuntimeState string

// The states of a runtime.
const (
	// RuntimeProvisioning: its creation is pending or under way.
	RuntimeProvisioning RuntimeState = "provisioning"
	// RuntimeSucceeded: it was created, perhaps changed since, and nothing is being done to it.
	RuntimeSucceeded RuntimeState = "succeeded"
	// RuntimeFailed: the newest operation, of whatever kind, failed or was canceled. Status.LastOperation tells which one.
	RuntimeFailed RuntimeState = "failed"
	// RuntimeUpdating: a change of it is pending or under way.
	RuntimeUpdating RuntimeState = "updating"
	// RuntimeSuspending: its removal is pending or under way; the instance stays.
	RuntimeSuspending RuntimeState = "suspending"
	// RuntimeSuspended: it was removed, and the instance stays. ExpiredAt tells whether it can be made anew.
	RuntimeSuspended RuntimeState = "suspended"
	// RuntimeResuming: it is made anew.
	RuntimeResuming RuntimeState = "resuming"
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
	Name            string `json:"name"`
	ShootName       string `json:"shootName"`
	ServiceClassID  string `json:"serviceClassID"`
	ServicePlanID   string `json:"servicePlanID"`
	ServicePlanName string `json:"servicePlanName"`
	DashboardURL    string `json:"dashboardURL,omitempty"`
	// SubscriptionAccountID is the global account that ordered the instance, where that has moved to another one since.
	SubscriptionAccountID string `json:"subscriptionAccountID,omitempty"`
	// MaintenanceVersion is the version of the plan that the runtime has.
	MaintenanceVersion string        `json:"maintenanceVersion,omitempty"`
	Status             RuntimeStatus `json:"status"`
}

// RuntimeStatus is what changes in the life of a runtime.
type RuntimeStatus struct {
	State RuntimeState `json:"state"`
	// Suspended says that the runtime was removed and the instance kept, whatever its newest operation was.
	Suspended bool `json:"suspended,omitempty"`
	// ExpiresAt is when the instance expires, ExpiredAt since when it has. From then on it can only be deleted.
	ExpiresAt     *time.Time `json:"expiresAt,omitempty"`
	ExpiredAt     *time.Time `json:"expiredAt,omitempty"`
	CreatedAt     time.Time  `json:"createdAt"`
	ModifiedAt    time.Time  `json:"modifiedAt"`
	LastOperation Operation  `json:"lastOperation"`
}

// Expiration is what came of having an instance expire.
type Expiration struct {
	// Operation removes the runtime. It is empty when there is none any more.
	Operation string `json:"operation,omitempty"`
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
