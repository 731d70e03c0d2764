package provisionerclient

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/internal/clients/provisionerclient/wire"
	"github.com/environment-broker/environment-broker/internal/environment"
)

func TestUpgrade(t *testing.T) {
	current := environment.Cluster{KubernetesVersion: "1.34", AutoScalerMin: 1, AutoScalerMax: 3, MaxSurge: 1, MachineType: "small"}
	nodes := &wire.GardenerUpgradeInput{
		AutoScalerMin: new(1), AutoScalerMax: new(3), MaxSurge: new(1), MaxUnavailable: new(0), MachineType: new("small"),
	}

	cases := map[string]struct {
		reason string
		change func(*environment.Cluster)
		want   func(*wire.UpgradeShootInput)
	}{
		"nothing": {
			"unchanged fields are sent, except those that the provider does not support", func(*environment.Cluster) {}, func(*wire.UpgradeShootInput) {},
		},
		"version": {
			"a new version is sent", func(c *environment.Cluster) { c.KubernetesVersion = "1.35" },
			func(u *wire.UpgradeShootInput) { u.GardenerConfig.KubernetesVersion = new("1.35") },
		},
		"disk": {
			"a volume size is sent with its type", func(c *environment.Cluster) { c.VolumeType, c.VolumeSizeGB = "gp3", 80 },
			func(u *wire.UpgradeShootInput) {
				u.GardenerConfig.DiskType, u.GardenerConfig.VolumeSizeGB = new("gp3"), new(80)
			},
		},
		"people": {
			"administrators and issuer replace the current ones",
			func(c *environment.Cluster) {
				c.Administrators, c.OIDC = []string{"jane"}, &environment.OIDC{ClientID: "c", IssuerURL: "https://i", SigningAlgs: []string{"RS256"}}
			},
			func(u *wire.UpgradeShootInput) {
				u.Administrators = []string{"jane"}
				u.GardenerConfig.OidcConfig = &wire.OIDCConfigInput{ClientID: "c", IssuerURL: "https://i", SigningAlgs: []string{"RS256"}}
			},
		},
	}

	for name, c := range cases {
		target, config := current, *nodes
		want := &wire.UpgradeShootInput{GardenerConfig: &config}

		c.change(&target)
		c.want(want)

		if diff := cmp.Diff(want, newUpgrade(current, target)); diff != "" {
			t.Errorf("%s: %s: -want +got\n%s", name, c.reason, diff)
		}
	}
}
