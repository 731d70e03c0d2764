package sandbox

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"syscall"
)

// address is one of the sandbox's listen addresses, with the name of the environment variable that sets it, without Prefix.
type address struct {
	variable string
	value    *string
}

// addresses returns the addresses on which the sandbox listens with this configuration. The values point into c, so callers can
// change them.
func (c *Config) addresses() []address {
	all := []address{
		{"BROKER_ADDRESS", &c.BrokerAddress},
		{"PROVISIONER_ADDRESS", &c.ProvisionerAddress},
		{"STATUS_ADDRESS", &c.StatusAddress},
		{"PROVISIONER_STATUS_ADDRESS", &c.ProvisionerStatusAddress},
	}

	if c.Bundles {
		all = append(all, address{"BUNDLES_ADDRESS", &c.BundlesAddress}, address{"BUNDLES_STATUS_ADDRESS", &c.BundlesStatusAddress})
	}

	return all
}

// shifted returns a copy of c with PortOffset added to the port of each address. Port 0, which selects a free port, stays 0.
func (c Config) shifted() (Config, error) {
	const largestPort = 1<<16 - 1

	for _, each := range c.addresses() {
		host, text, err := net.SplitHostPort(*each.value)
		if err != nil {
			return c, fmt.Errorf("%s%s: must be a host and a port, such as 127.0.0.1:8080", Prefix, each.variable)
		}

		port, err := strconv.Atoi(text)
		if err != nil {
			return c, fmt.Errorf("%s%s: %q is not a port", Prefix, each.variable, text)
		}

		if port == 0 {
			continue
		}

		if port += c.PortOffset; port < 1 || port > largestPort {
			return c, fmt.Errorf("%sPORT_OFFSET: port %s of %s%s becomes %d, which is not a valid port", Prefix, text, Prefix, each.variable, port)
		}

		*each.value = net.JoinHostPort(host, strconv.Itoa(port))
	}

	return c, nil
}

// checkPorts returns an error that names the variable of each address that another program is using. If a program starts to
// listen on an address after this check, the service fails to start.
func (c Config) checkPorts(ctx context.Context) error {
	var (
		config net.ListenConfig
		taken  []error
	)

	for _, each := range c.addresses() {
		listener, err := config.Listen(ctx, "tcp", *each.value)

		switch {
		case errors.Is(err, syscall.EADDRINUSE):
			taken = append(taken, fmt.Errorf("%s%s: another program uses %s", Prefix, each.variable, *each.value))
		case err != nil:
			return fmt.Errorf("%s%s: %w", Prefix, each.variable, err)
		default:
			_ = listener.Close()
		}
	}

	if len(taken) == 0 {
		return nil
	}

	return errors.Join(append(taken,
		fmt.Errorf("stop the program, set a different address, or add an offset to all ports: %sPORT_OFFSET=100 %sDIR=.sandbox-100", Prefix, Prefix))...)
}
