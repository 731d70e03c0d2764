package environment

// Endpoint is the address of a runtime's API server, without any credentials. Its JSON form is stored.
type Endpoint struct {
	// Server is the URL of the API server.
	Server string `json:"server"`
	// CA contains the API server's CA certificates as PEM. If it is empty, the system's CA certificates are used.
	CA []byte `json:"ca,omitempty"`
}
