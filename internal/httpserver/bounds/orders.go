package bounds

// The limits of an order for a runtime. Lengths are in characters.
const (
	// Administrators limits the number of administrators of a cluster, because all of them are subjects of one ClusterRoleBinding.
	Administrators = 100
	// Name limits the length of the names of runtimes, administrators, claims and cloud resources.
	Name = 256
	// ClientData limits the length of the data that a client of the Provisioner stores with a runtime.
	ClientData = 64 << 10
	// URL limits the length of the URL of an OIDC issuer.
	URL = 1024
	// Zones limits the number of zones of a worker pool, because the network of the nodes is divided among at most four zones.
	Zones = 4
	// SigningAlgorithms limits the number of signing algorithms for OIDC. Kubernetes supports nine.
	SigningAlgorithms = 9
	// Kubeconfig limits the length of the base64-encoded kubeconfig of a tenant's own cluster. Parsing YAML takes about 30 times
	// as long as decoding JSON of the same size.
	Kubeconfig = 32 << 10
)
