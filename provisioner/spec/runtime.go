package spec

// Runtime is the order for a runtime: a cluster and, optionally, its Kyma installation.
type Runtime struct {
	Metadata      *Metadata      `json:"runtimeInput"`
	ClusterConfig *ClusterConfig `json:"clusterConfig"`
	// KymaConfig is nil for a cluster without Kyma.
	KymaConfig *Kyma `json:"kymaConfig,omitempty"`
	// ClientData is the client's own data, which the Provisioner stores but does not interpret. Only the operator API returns it. It
	// has at most bounds.ClientData characters, and may contain personal data.
	ClientData *string `json:"clientData,omitempty"`
}

// LabelInstance is the label in which brokers store the ID of a runtime's service instance.
const LabelInstance = "broker_instance_id"

// InstanceID returns the ID of the service instance, or an empty string if the order does not contain it.
func (r Runtime) InstanceID() string {
	if r.Metadata == nil {
		return ""
	}

	id, _ := r.Metadata.Labels[LabelInstance].(string)

	return id
}

// Metadata determines how Director lists the runtime. It has no effect if Director is disabled.
type Metadata struct {
	Name        string  `json:"name"`
	Description *string `json:"description,omitempty"`
	// Labels maps names to values of any JSON type. Package registration adds its own labels.
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
	// ClientData replaces the ClientData of the runtime.
	ClientData *string
}

// KymaUpgrade changes a runtime's Kyma configuration; installation.Upgraded merges it into the current one.
type KymaUpgrade struct {
	KymaConfig *Kyma
	// ClusterConfig is nil if the Kubernetes version does not change.
	ClusterConfig *ClusterVersion
	// ClientData replaces the ClientData of the runtime.
	ClientData *string
}

// ClusterVersion is the change of the cluster in a KymaUpgrade.
type ClusterVersion struct {
	// KubernetesVersion is a version such as 1.33.2. If the patch version is omitted, Gardener chooses the newest one.
	KubernetesVersion string
}
