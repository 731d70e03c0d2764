package sandbox

import (
	"bytes"
	"net"
	"strings"
	"testing"

	"github.com/environment-broker/environment-broker/internal/environment"
)

func TestInvalidConfiguration(t *testing.T) {
	cases := map[string]struct {
		reason string
		change func(*Config)
		want   string
	}{
		"broker exposed":      {"the sandbox's password is public", func(c *Config) { c.BrokerAddress = "0.0.0.0:0" }, "SANDBOX_BROKER_ADDRESS"},
		"provisioner exposed": {"the Provisioner does not authenticate its clients", func(c *Config) { c.ProvisionerAddress = ":0" }, "SANDBOX_PROVISIONER_ADDRESS"},
		"no port":             {"the error describes a valid address", func(c *Config) { c.StatusAddress = "8071" }, "SANDBOX_STATUS_ADDRESS: must be a host and a port"},
		"named port":          {"an offset can only be added to a numeric port", func(c *Config) { c.BrokerAddress = "127.0.0.1:http" }, `SANDBOX_BROKER_ADDRESS: "http" is not a port`},
		"large offset":        {"the offset makes the port too large", func(c *Config) { c.PortOffset = 60_000 }, "SANDBOX_PORT_OFFSET: port 8080 of SANDBOX_BROKER_ADDRESS becomes 68080"},
		"unknown installer":   {"the error lists the installers", func(c *Config) { c.KymaInstaller = "helm" }, `SANDBOX_KYMA_INSTALLER: "helm" is not one of provisioner, reconciler and lifecycle-manager`},
		"no reconciler": {"the Reconciler is a simulator", func(c *Config) {
			c.KymaInstaller, c.Integrations = environment.InstallerReconciler, false
		}, "SANDBOX_KYMA_INSTALLER=reconciler needs SANDBOX_INTEGRATIONS=true"},
		"no time": {"the creation of a cluster takes time", func(c *Config) { c.ClusterCreation = -1 }, "SANDBOX_CLUSTER_CREATION"},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			config := DefaultConfig()
			config.Dir = t.TempDir()
			c.change(&config)

			var output bytes.Buffer
			if err := Run(t.Context(), config, Programs{}, &output); err == nil || !strings.Contains(err.Error(), c.want) || output.Len() > 0 {
				t.Errorf("%s: got %v after %q, want an error with %q", c.reason, err, output.String(), c.want)
			}
		})
	}
}

// TestTakenPorts checks that the error names exactly the variables whose addresses other programs use.
func TestTakenPorts(t *testing.T) {
	config := DefaultConfig()
	config.Dir = t.TempDir()

	for _, each := range config.addresses() {
		*each.value = "127.0.0.1:0"
	}

	for _, value := range []*string{&config.BrokerAddress, &config.ProvisionerStatusAddress} {
		var listen net.ListenConfig

		listener, err := listen.Listen(t.Context(), "tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}

		t.Cleanup(func() { _ = listener.Close() })

		*value = listener.Addr().String()
	}

	var output bytes.Buffer

	err := Run(t.Context(), config, Programs{}, &output)
	want := "SANDBOX_BROKER_ADDRESS: another program uses " + config.BrokerAddress +
		"\nSANDBOX_PROVISIONER_STATUS_ADDRESS: another program uses " + config.ProvisionerStatusAddress +
		"\nstop the program, set a different address, or add an offset to all ports: SANDBOX_PORT_OFFSET=100 SANDBOX_DIR=.sandbox-100"

	if err == nil || err.Error() != want {
		t.Errorf("got %v, want\n%s", err, want)
	}
}

func TestServicesGetTheSettings(t *testing.T) {
	config := DefaultConfig()
	config.PortOffset, config.DashboardURL, config.TracingEndpoint = 100, "https://console/{instance_id}", "http://127.0.0.1:4318"
	config.StatusAddress = "127.0.0.1:0"

	config, err := config.shifted()
	if err != nil {
		t.Fatal(err)
	}

	broker, provisioner := config.broker("", config.ProvisionerAddress), config.provisioner("", "")

	if broker.Address != "127.0.0.1:8180" || broker.PublicURL != "http://127.0.0.1:8180" || provisioner.Address != "127.0.0.1:3100" ||
		broker.StatusAddress != "127.0.0.1:0" || broker.Provisioner.URL != "http://127.0.0.1:3100/graphql" {
		t.Errorf("the addresses are %s, %s, %s, %s, %s", broker.Address, broker.PublicURL, provisioner.Address, broker.StatusAddress, broker.Provisioner.URL)
	}

	if standard := DefaultConfig().broker("", ""); standard.DashboardURL != "" || !standard.Console.Enabled || standard.PublicURL == "" {
		t.Errorf("the dashboard of instances is %q, not the console at %q", standard.DashboardURL, standard.PublicURL)
	}

	if broker.DashboardURL != config.DashboardURL || broker.Tracing.Endpoint != config.TracingEndpoint || provisioner.Tracing.Endpoint != config.TracingEndpoint {
		t.Errorf("dashboard %s, tracing %s and %s", broker.DashboardURL, broker.Tracing.Endpoint, provisioner.Tracing.Endpoint)
	}
}
