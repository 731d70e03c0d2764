// Package networks permits connections only to public addresses and to networks that an operator allows. Services use it for
// addresses that tenants or callers choose. Otherwise, tenants or callers could make a service send requests into the operator's
// network.
package networks

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"syscall"
	"time"
)

// ErrRefused is the error for a connection to an address that the Networks do not permit.
var ErrRefused = errors.New("the address is neither public nor in an allowed network")

// Networks permits connections to public addresses and to the allowed networks. The zero value permits only public addresses.
type Networks struct {
	allowed []netip.Prefix
	// private reports whether public addresses are excluded.
	private bool
}

// Parse parses networks in CIDR notation, such as 10.0.0.0/8. It converts networks of IPv4-mapped IPv6 addresses, such as
// ::ffff:10.0.0.0/104, to IPv4 networks, and rejects those that are larger than all of IPv4.
func Parse(texts []string) (Networks, error) {
	var networks Networks

	for _, text := range texts {
		prefix, err := netip.ParsePrefix(text)
		if err != nil {
			return Networks{}, fmt.Errorf("%q is not a network: write CIDR notation, such as 10.0.0.0/8", text)
		}

		if prefix.Addr().Is4In6() {
			// If the prefix is larger than all of IPv4, the number of bits is negative, and the result is invalid.
			prefix = netip.PrefixFrom(prefix.Addr().Unmap(), prefix.Bits()-mappedBits)
		}

		if !prefix.IsValid() {
			return Networks{}, fmt.Errorf("%q is larger than the network of IPv4-mapped addresses: write an IPv4 network, such as 10.0.0.0/8", text)
		}

		networks.allowed = append(networks.allowed, prefix.Masked())
	}

	return networks, nil
}

// mappedBits is the length of ::ffff:0:0/96, the prefix of IPv4-mapped IPv6 addresses, in bits.
const mappedBits = 96

// Only returns Networks that permit the allowed networks, but no public addresses.
func (n Networks) Only() Networks { return Networks{allowed: n.allowed, private: true} }

// reserved returns the networks whose addresses are not public: private, shared, local, documentation, multicast and reserved
// ones, as listed in IANA's registries of special-purpose addresses. In IPv6, only 2000::/3 is public; for that range, the list
// contains the exceptions, such as 6to4, which embeds IPv4 addresses.
func reserved() []netip.Prefix {
	return []netip.Prefix{
		netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("100.64.0.0/10"),
		netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("169.254.0.0/16"), netip.MustParsePrefix("172.16.0.0/12"),
		netip.MustParsePrefix("192.0.0.0/24"), netip.MustParsePrefix("192.0.2.0/24"), netip.MustParsePrefix("192.88.99.0/24"),
		netip.MustParsePrefix("192.168.0.0/16"), netip.MustParsePrefix("198.18.0.0/15"), netip.MustParsePrefix("198.51.100.0/24"),
		netip.MustParsePrefix("203.0.113.0/24"), netip.MustParsePrefix("224.0.0.0/3"),
		netip.MustParsePrefix("2001::/23"), netip.MustParsePrefix("2001:db8::/32"), netip.MustParsePrefix("2002::/16"),
		netip.MustParsePrefix("3fff::/20"),
	}
}

// Empty reports whether the list of allowed networks is empty.
func (n Networks) Empty() bool { return len(n.allowed) == 0 }

// Permits reports whether connections to the address are allowed. It treats an IPv4-mapped IPv6 address as the IPv4 address.
func (n Networks) Permits(address netip.Addr) bool {
	address = address.Unmap().WithZone("")
	contains := func(network netip.Prefix) bool { return network.Contains(address) }

	if slices.ContainsFunc(n.allowed, contains) {
		return true
	}

	public := address.Is4() || netip.MustParsePrefix("2000::/3").Contains(address)

	return !n.private && public && !slices.ContainsFunc(reserved(), contains)
}

// control rejects addresses that are not permitted. It is called with the resolved address before each connection, so it also
// protects against a name that resolves to a different address later.
func (n Networks) control(_, hostAndPort string, _ syscall.RawConn) error {
	resolved, err := netip.ParseAddrPort(hostAndPort)
	if err != nil || !n.Permits(resolved.Addr()) {
		return ErrRefused
	}

	return nil
}

// Transport returns a transport that connects only to permitted addresses. The timeout limits each connection attempt. The
// transport ignores the proxy settings of the environment, because a proxy would resolve names itself, without this check.
func (n Networks) Transport(timeout time.Duration) *http.Transport {
	dialer := &net.Dialer{Timeout: timeout, Control: n.control}

	return &http.Transport{DialContext: dialer.DialContext}
}
