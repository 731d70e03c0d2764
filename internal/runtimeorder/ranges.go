package runtimeorder

import (
	"encoding/binary"
	"fmt"
	"net/netip"

	"github.com/environment-broker/environment-broker/internal/failure"
)

const (
	// zoneBits divides the nodes' range into eighths: each zone gets one for its workers and one for the rest.
	zoneBits = 3
	// maxZones is how many zones fit: four pairs of eighths.
	maxZones = 4
	ipv4Bits = 32
)

// zoneRanges are the parts of the nodes' range that belong to one zone.
type zoneRanges struct {
	workers, public, internal string
}

// split divides the nodes' range among zones: an eighth for the workers of each, and of the eighth after it a half for public
// and a half for internal addresses. 10.250.0.0/16 gives the first zone 10.250.0.0/19, 10.250.32.0/20 and 10.250.48.0/20.
func split(nodes string, zones int) ([]zoneRanges, error) {
	prefix, err := netip.ParsePrefix(nodes)
	if err != nil || !prefix.Addr().Is4() || prefix.Bits() > ipv4Bits-zoneBits-1 {
		return nil, failure.New(failure.Internal, "the nodes' range %q cannot be divided among zones", nodes)
	}

	if zones > maxZones {
		return nil, failure.New(failure.Invalid, "%d zones are asked for, %d are possible", zones, maxZones)
	}

	base := binary.BigEndian.Uint32(prefix.Masked().Addr().AsSlice())
	eighth := uint32(1) << (ipv4Bits - prefix.Bits() - zoneBits)
	divided := make([]zoneRanges, 0, zones)

	for i := range uint32(zones) { //nolint:gosec // at most maxZones
		workers := base + i*2*eighth
		others := workers + eighth

		divided = append(divided, zoneRanges{
			workers:  cidr(workers, prefix.Bits()+zoneBits),
			public:   cidr(others, prefix.Bits()+zoneBits+1),
			internal: cidr(others+eighth/2, prefix.Bits()+zoneBits+1),
		})
	}

	return divided, nil
}

func cidr(address uint32, bits int) string {
	var octets [4]byte

	binary.BigEndian.PutUint32(octets[:], address)

	return fmt.Sprintf("%s/%d", netip.AddrFrom4(octets), bits)
}
