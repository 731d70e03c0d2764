package spec

// Runtime is the order of a runtime.
type Runtime struct {
	Metadata      *Metadata      `json:"runtimeInput"`
	ClusterConfig *ClusterConfig `json:"clusterConfig"`
	// KymaConfig is nil for a cluster without Kyma.
	KymaConfig *Kyma `json:"kymaConfig,omitempty"`
}

// Metadata is how Director lists the runtime.
type Metadata struct {
	Name        string         `json:"name"`
	Description *string        `json:"description,omitempty"`
	Labels      map[string]any `json:"labels,omitempty"`
}

// ClusterConfig is a cluster and the users who have all rights in it.
type ClusterConfig struct {
	GardenerConfig *Cluster `json:"gardenerConfig"`
	// Administrators are user names as the identity provider of the cluster issues them.
	Administrators []string `json:"administrators,omitempty"`
}

// Upgrade changes a cluster. Fields that are nil stay as they are.
type Upgrade struct {
	GardenerConfig *ClusterUpgrade
	// Administrators replace all administrators; an empty list removes them.
	Administrators []string
}

// KymaUpgrade changes the Kyma of a runtime.
type KymaUpgrade struct {
	KymaConfig *Kyma
}
