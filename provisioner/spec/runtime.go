package spec

// Runtime is the order of a runtime: a cluster and, optionally, the Kyma on it.
type Runtime struct {
	Metadata      *Metadata      `json:"runtimeInput"`
	ClusterConfig *ClusterConfig `json:"clusterConfig"`
	// KymaConfig is nil for a cluster without Kyma.
	KymaConfig *Kyma `json:"kymaConfig,omitempty"`
}

// Metadata is how Director lists the runtime. It has no effect without Director.
type Metadata struct {
	Name        string  `json:"name"`
	Description *string `json:"description,omitempty"`
	// Labels are values of any JSON type. Package registration adds labels of its own.
	Labels map[string]any `json:"labels,omitempty"`
}

// ClusterConfig is a cluster and the users who have all rights in it.
type ClusterConfig struct {
	GardenerConfig *Cluster `json:"gardenerConfig"`
	// Administrators are user names in the form of the cluster's identity provider, for example email addresses.
	Administrators []string `json:"administrators,omitempty"`
}

// Upgrade changes a cluster. A nil field keeps the present value.
type Upgrade struct {
	GardenerConfig *ClusterUpgrade
	// Administrators replace all administrators; an empty list removes them.
	Administrators []string
}

// KymaUpgrade changes the Kyma of a runtime; installation.Upgraded merges it into the present Kyma.
type KymaUpgrade struct {
	KymaConfig *Kyma
}
