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

// CheckExposure refuses an address beyond the loopback when there are no users. The variable is named in the error as the way out.
func CheckExposure(address string, users Users, variable string) error {
	if users.None() && BeyondLoopback(address) {
		return fmt.Errorf("listening on %s, which other machines can reach, needs authentication: set %s", address, variable)
	}

	return nil
}
