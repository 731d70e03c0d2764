package provisionerclient

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSplitNodes(t *testing.T) {
	cases := map[string]struct {
		reason string
		nodes  string
		zones  int
		want   []zoneRanges
	}{
		"no zone":  {"without zones", "10.250.0.0/16", 0, []zoneRanges{}},
		"one zone": {"the first zone gets the first two eighths", "10.250.0.0/16", 1, []zoneRanges{{"10.250.0.0/19", "10.250.32.0/20", "10.250.48.0/20"}}},
		"four zones": {
			"all eighths are used once", "10.250.0.0/16", 4, []zoneRanges{
				{"10.250.0.0/19", "10.250.32.0/20", "10.250.48.0/20"},
				{"10.250.64.0/19", "10.250.96.0/20", "10.250.112.0/20"},
				{"10.250.128.0/19", "10.250.160.0/20", "10.250.176.0/20"},
				{"10.250.192.0/19", "10.250.224.0/20", "10.250.240.0/20"},
			},
		},
		"a range in a larger one": {
			"bits after the prefix are ignored", "10.250.7.9/22", 2, []zoneRanges{
				{"10.250.4.0/25", "10.250.4.128/26", "10.250.4.192/26"},
				{"10.250.5.0/25", "10.250.5.128/26", "10.250.5.192/26"},
			},
		},
		"smallest": {
			"an eighth has two addresses", "10.250.0.16/28", 4, []zoneRanges{
				{"10.250.0.16/31", "10.250.0.18/32", "10.250.0.19/32"},
				{"10.250.0.20/31", "10.250.0.22/32", "10.250.0.23/32"},
				{"10.250.0.24/31", "10.250.0.26/32", "10.250.0.27/32"},
				{"10.250.0.28/31", "10.250.0.30/32", "10.250.0.31/32"},
			},
		},
		"largest": {
			"addresses do not overflow", "0.0.0.0/0", 4, []zoneRanges{
				{"0.0.0.0/3", "32.0.0.0/4", "48.0.0.0/4"},
				{"64.0.0.0/3", "96.0.0.0/4", "112.0.0.0/4"},
				{"128.0.0.0/3", "160.0.0.0/4", "176.0.0.0/4"},
				{"192.0.0.0/3", "224.0.0.0/4", "240.0.0.0/4"},
			},
		},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := splitNodes(c.nodes, c.zones)
			if err != nil {
				t.Fatalf("%s: %v", c.reason, err)
			}

			if diff := cmp.Diff(c.want, got, cmp.AllowUnexported(zoneRanges{})); diff != "" {
				t.Errorf("%s: -want +got:\n%s", c.reason, diff)
			}
		})
	}
}

// FuzzSplitNodes checks that the ranges of the zones neither overlap nor exceed the nodes' range.
// Providers reject ranges that do.
func FuzzSplitNodes(f *testing.F) {
	for _, nodes := range []string{"10.250.0.0/16", "10.250.7.9/22", "10.0.0.0/28", "0.0.0.0/0", "255.255.255.255/1"} {
		f.Add(nodes, uint8(4))
	}

	f.Fuzz(func(t *testing.T, nodes string, count uint8) {
		zones := int(count)

		divided, err := splitNodes(nodes, zones)
		if err != nil {
			return
		}

		whole := netip.MustParsePrefix(nodes).Masked()

		var parts []netip.Prefix
		for _, zone := range divided {
			parts = append(parts, netip.MustParsePrefix(zone.workers), netip.MustParsePrefix(zone.public), netip.MustParsePrefix(zone.internal))
		}

		for i, part := range parts {
			if part != part.Masked() || !whole.Overlaps(part) || part.Bits() <= whole.Bits() {
				t.Errorf("%s is not part of %s", part, whole)
			}

			for _, other := range parts[:i] {
				if part.Overlaps(other) {
					t.Errorf("%s and %s of %s overlap", part, other, whole)
				}
			}
		}
	})
}
