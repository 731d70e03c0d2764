package spec

// Runtime is the order for a runtime: a cluster and, optionally, the Kyma on it.
type Runtime struct {
	Metadata      *Metadata      `json:"runtimeInput"`
	ClusterConfig *ClusterConfig `json:"clusterConfig"`
	// KymaConfig is nil for a cluster without Kyma.
	KymaConfig *Kyma `json:"kymaConfig,omitempty"`
}

// Metadata determines how Director lists the runtime. It has no effect without Director.
type Metadata struct {
	Name        string  `json:"name"`
	Description *string `json:"description,omitempty"`
	// Labels are values of any JSON type. Package registration adds its own labels.
	Labels map[string]any `json:"labels,omitempty"`
}

// ClusterConfig is a cluster and the users who are its cluster-admins.
type ClusterConfig struct {
	GardenerConfig *Cluster `json:"gardenerConfig"`
	// Administrators are user names as issued by the cluster's identity provider, for example email addresses.
	Administrators []string `json:"administrators,omitempty"`
}

// Upgrade changes a cluster. A nil field keeps the current value.
type Upgrade struct {
	GardenerConfig *ClusterUpgrade
	// Administrators replace all administrators; an empty list removes them.
	Administrators []string
}

// KymaUpgrade changes the Kyma of a runtime; installation.Upgraded merges it into the current Kyma.
type KymaUpgrade struct {
	KymaConfig *Kyma
}
