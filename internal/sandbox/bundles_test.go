package sandbox

import (
	"bytes"
	"net"
	"strings"
	"testing"

	"github.com/sirupsen/logrus/hooks/test"
)

// TestWithoutBundles checks that there is no bundle provisioner if SANDBOX_BUNDLES is false, or if the sandbox has no program for
// it.
func TestWithoutBundles(t *testing.T) {
	log, _ := test.NewNullLogger()

	for name, c := range map[string]struct {
		enabled bool
		command string
		want    bool
	}{
		"enabled":    {true, "exec bundler", true},
		"disabled":   {false, "exec bundler", false},
		"no program": {true, "", false},
	} {
		config := DefaultConfig()
		config.Dir, config.Bundles = t.TempDir(), c.enabled

		var output bytes.Buffer

		made, parts, err := startBundler(config, c.command, openGarden{}, &output, log)
		if err != nil || (made != nil) != c.want || (len(parts) > 0) != c.want {
			t.Errorf("%s: got %v, %d parts, %v", name, made, len(parts), err)
		}

		if made == nil {
			made.announce(t.Context(), &output)
		}

		if output.Len() > 0 {
			t.Errorf("%s: printed %q", name, output.String())
		}
	}
}

// TestPortsWithoutBundles checks that other programs can use the ports of the bundle provisioner if it is turned off.
func TestPortsWithoutBundles(t *testing.T) {
	var listen net.ListenConfig

	listener, err := listen.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { _ = listener.Close() })

	for _, enabled := range []bool{true, false} {
		config := DefaultConfig()
		config.Bundles = enabled

		for _, each := range config.addresses() {
			*each.value = "127.0.0.1:0"
		}

		config.BundlesAddress = listener.Addr().String()

		err := config.checkPorts(t.Context())
		if enabled != (err != nil) || err != nil && !strings.Contains(err.Error(), "SANDBOX_BUNDLES_ADDRESS: another program uses") {
			t.Errorf("enabled %t: %v", enabled, err)
		}
	}
}
