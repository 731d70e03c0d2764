package environment

// Endpoint is the address of a runtime's API server, without any credentials. Its JSON form is stored.
type Endpoint struct {
	// Server is the URL of the API server.
	Server string `json:"server"`
	// CA is the certificate authority of the API server, as PEM. It is empty if the system's authorities are used.
	CA []byte `json:"ca,omitempty"`
}
