package sandbox

import (
	"bytes"
	"strings"
	"testing"
)

func TestInvalidConfiguration(t *testing.T) {
	cases := map[string]struct {
		reason string
		change func(*Config)
		want   string
	}{
		"broker exposed":      {"its password is public", func(c *Config) { c.BrokerAddress = "0.0.0.0:0" }, "loopback"},
		"provisioner exposed": {"it does not authenticate", func(c *Config) { c.ProvisionerAddress = ":0" }, "loopback"},
		"no time":             {"a cluster takes some time", func(c *Config) { c.ClusterCreation = -1 }, "SANDBOX_CLUSTER_CREATION"},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			config := DefaultConfig()
			config.Dir = t.TempDir()
			c.change(&config)

			var output bytes.Buffer
			if err := Run(t.Context(), config, "", &output); err == nil || !strings.Contains(err.Error(), c.want) || output.Len() > 0 {
				t.Errorf("%s: got %v after %q, want an error with %q", c.reason, err, output.String(), c.want)
			}
		})
	}
}
