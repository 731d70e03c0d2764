package catalog_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestNetworking(t *testing.T) {
	t.Parallel()

	type broken struct{ Field, Rule string }

	cases := map[string]struct {
		reason     string
		networking string
		want       []broken
	}{
		"Nodes":         {"pods and services keep their defaults", `{"nodes":"10.250.0.0/22"}`, nil},
		"All":           {"each range can be chosen", `{"nodes":"172.16.0.0/23","pods":"172.20.0.0/16","services":"172.21.0.0/16"}`, nil},
		"NoNodes":       {"nodes is required", `{"pods":"172.20.0.0/16"}`, []broken{{"networking", "required"}}},
		"Unknown":       {"unknown fields are rejected", `{"nodes":"10.250.0.0/22","pod":"x"}`, []broken{{"networking.pod", "unknown"}}},
		"Rubbish":       {"ranges are in CIDR notation", `{"nodes":"everything"}`, []broken{{"networking.nodes", "network"}}},
		"NotCanonical":  {"bits after the prefix are probably a mistake", `{"nodes":"10.250.0.1/22"}`, []broken{{"networking.nodes", "network"}}},
		"IPv6":          {"clusters use IPv4", `{"nodes":"fd00::/16"}`, []broken{{"networking.nodes", "network"}}},
		"TooSmall":      {"each zone needs its share of the nodes' range", `{"nodes":"10.250.0.0/24"}`, []broken{{"networking.nodes", "network"}}},
		"Smallest":      {"/23 suffices", `{"nodes":"10.250.0.0/23"}`, nil},
		"DefaultPods":   {"a range may overlap the default of another one", `{"nodes":"10.96.0.0/16"}`, []broken{{"networking.pods", "overlap"}}},
		"EachOther":     {"each overlapping pair is reported", `{"nodes":"172.16.0.0/16","pods":"172.16.0.0/12","services":"172.16.1.0/24"}`, []broken{{"networking.pods", "overlap"}, {"networking.services", "overlap"}, {"networking.services", "overlap"}}},
		"ControlPlane":  {"the ranges of control planes are reserved", `{"nodes":"10.242.0.0/16"}`, []broken{{"networking.nodes", "overlap"}}},
		"WithinReserve": {"a part of a reserved range is reserved", `{"nodes":"10.250.0.0/22","services":"10.65.0.0/16"}`, []broken{{"networking.services", "overlap"}}},
	}

	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			ordered := order{InstanceID: instanceID, Parameters: json.RawMessage(fmt.Sprintf(`{"networking":%s}`, test.networking))}
			_, violations := plan(t, planAWS).Resolve(ordered.instance())

			var got []broken
			for _, one := range violations {
				got = append(got, broken{one.Field, one.Rule})
			}

			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("\n%s\n%v\nbroken rules: -want +got\n%s", test.reason, violations, diff)
			}
		})
	}
}
