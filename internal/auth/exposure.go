package auth

import (
	"fmt"
	"net"
)

// BeyondLoopback reports whether a listener on the address (host:port) can be reached from other machines. A name other than
// localhost is taken for reachable, and so is an address that cannot be read.
func BeyondLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return true
	}

	if host == "localhost" {
		return false
	}

	ip := net.ParseIP(host)

	return ip == nil || !ip.IsLoopback()
}

// CheckExposure refuses an address beyond the loopback where nobody is asked who they are.
func CheckExposure(address string, mechanism Mechanism) error {
	if _, open := mechanism.(Everybody); open && BeyondLoopback(address) {
		return fmt.Errorf("listening on %s, which other machines can reach, needs authentication: "+
			"set APP_AUTH_BASIC_USERS, APP_AUTH_BASIC_USERS_FILE, APP_AUTH_OIDC_ISSUER_URL or APP_TLS_CLIENT_CA_FILE", address)
	}

	return nil
}
