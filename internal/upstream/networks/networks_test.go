package networks_test

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/environment-broker/environment-broker/internal/upstream/networks"
)

func TestParse(t *testing.T) {
	if _, err := networks.Parse([]string{"10.0.0.0/8", "10.0.0.1"}); err == nil || !strings.Contains(err.Error(), `"10.0.0.1" is not a network`) {
		t.Errorf("an address without a prefix length: got %v", err)
	}
}

// TestParseMappedNetwork checks that a network of IPv4-mapped IPv6 addresses permits the IPv4 addresses, in both forms.
func TestParseMappedNetwork(t *testing.T) {
	allowed, err := networks.Parse([]string{"::ffff:10.1.2.3/104"})
	if err != nil {
		t.Fatal(err)
	}

	for address, want := range map[string]bool{"10.9.9.9": true, "::ffff:10.9.9.9": true, "192.168.0.1": false} {
		if got := allowed.Permits(netip.MustParseAddr(address)); got != want {
			t.Errorf("permits %s: %t, want %t", address, got, want)
		}
	}

	if _, err := networks.Parse([]string{"::ffff:0.0.0.0/90"}); err == nil || !strings.Contains(err.Error(), "larger than the network of IPv4-mapped addresses") {
		t.Errorf("a network that contains more than the mapped addresses: got %v", err)
	}
}
