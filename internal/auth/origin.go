package auth

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
)

// Descriptions in responses to requests that a guard rejects.
const (
	textCrossOrigin = "A browser sent this request from a page of another origin. APP_TRUSTED_ORIGINS lists the origins that may do so."
	textHost        = "The Host header names a host that is not allowed. Without authentication, the service accepts loopback addresses, localhost " +
		"and the hosts in APP_ALLOWED_HOSTS."
)

// guard rejects requests that a browser sends on behalf of pages of other origins. It is safe for concurrent use.
type guard struct {
	origins *http.CrossOriginProtection
	// hosts are the accepted hosts in lower case, without ports, in addition to loopback addresses and localhost. Nil accepts
	// all hosts.
	hosts map[string]bool
}

// newGuard returns a guard. If the service has no authentication, the guard also checks the Host header, to prevent DNS
// rebinding: an attacker could make the host name of a page resolve to a loopback address, and the page's requests to the service
// would then not be cross-origin. With authentication, such a page has no credentials.
func newGuard(config Config, open bool) (*guard, error) {
	g := &guard{origins: http.NewCrossOriginProtection()}

	for _, origin := range config.TrustedOrigins {
		if err := g.origins.AddTrustedOrigin(origin); err != nil {
			return nil, fmt.Errorf("APP_TRUSTED_ORIGINS: %q does not have the form https://console.example.com", origin)
		}
	}

	if open {
		g.hosts = map[string]bool{"localhost": true}
	}

	for _, host := range config.AllowedHosts {
		if host == "" || strings.ContainsAny(host, "/:* ") {
			return nil, errors.New("APP_ALLOWED_HOSTS: list host names without a scheme or port")
		}

		if open {
			g.hosts[strings.ToLower(host)] = true
		}
	}

	return g, nil
}

// check returns a reason for the metric and a description for the client if the guard rejects the request. Both are empty if it
// accepts the request.
func (g *guard) check(r *http.Request) (reason, description string) {
	switch {
	case g == nil:
		return "", ""
	case g.hosts != nil && !g.knows(r.Host):
		return UnknownHost, textHost
	case g.origins.Check(r) != nil:
		return CrossOrigin, textCrossOrigin
	default:
		return "", ""
	}
}

// knows reports whether the given Host header names an accepted host.
func (g *guard) knows(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}

	host = strings.ToLower(strings.Trim(host, "[]"))
	if ip := net.ParseIP(host); ip != nil && ip.IsLoopback() {
		return true
	}

	return g.hosts[host]
}
