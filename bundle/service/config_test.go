package service

import (
	"strings"
	"testing"
)

// TestClassNames checks that errors about provisioner classes name the variables.
func TestClassNames(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*Config)
		want   string
	}{
		"default":        {func(*Config) {}, ""},
		"invalid":        {func(c *Config) { c.Bundles.RegistryClass = "a.b" }, "APP_BUNDLES_KUSTOMIZE_CLASS: must be DNS labels"},
		"empty":          {func(c *Config) { c.Bundles.PlainClass = "" }, "APP_BUNDLES_KUSTOMIZE_CLASS: must be DNS labels"},
		"twice":          {func(c *Config) { c.Bundles.HelmClass = c.Bundles.PlainClass }, "APP_BUNDLES_KUSTOMIZE_CLASS: must differ"},
		"not served":     {func(c *Config) { c.Rendering.Enabled, c.Bundles.HelmClass = false, c.Bundles.PlainClass }, ""},
		"of deployments": {func(c *Config) { c.Deployments.HelmClass = c.Deployments.PlainClass }, "APP_DEPLOYMENTS_HELM_CLASS: must differ"},
	} {
		config := DefaultConfig()
		config.TLS.SelfSigned, config.Rendering.Enabled = true, true
		test.change(&config)

		err := config.check()
		if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%s: got %v, want %q", name, err, test.want)
		}
	}
}
