package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"
	"github.com/sirupsen/logrus"
	"k8s.io/apimachinery/pkg/util/wait"

	broker "github.com/environment-broker/environment-broker/broker/service"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/internal/program/lifecycle"
	"github.com/environment-broker/environment-broker/internal/secret"
	provisioner "github.com/environment-broker/environment-broker/provisioner/service"
)

const (
	// readyTimeout is how long the services may take to become ready, not including the migration of their databases.
	readyTimeout = 30 * time.Second
	readyPause   = 20 * time.Millisecond
	// stopLimit is how long the services and the garden together may take to stop. The sandbox exits with an error if a part takes
	// longer.
	stopLimit = 90 * time.Second
	// logFile is the name of the file to which the services and the garden write their logs. The terminal shows only the
	// announcement.
	logFile = "sandbox.log"
	// ownerOnly is the mode of the sandbox's folder, which contains the encryption keys.
	ownerOnly = 0o700
)

// Programs are the executables of the parts that run as separate processes.
type Programs struct {
	// Garden is the local garden. If it is empty, the sandbox uses the fake garden.
	Garden string
	// Bundler is a shell command that runs the bundle provisioner and may build it first. If it is empty, the sandbox has no bundle
	// provisioner.
	Bundler string
	// Libraries, if not nil, is called before anything else starts. It redirects the logs of third-party libraries to the given
	// logger. Tests leave it nil, because other tests in the same process use these libraries too.
	Libraries func(logrus.FieldLogger)
}

// Run runs the sandbox until the context ends, which is not an error. Once all services are ready, Run writes a line that starts
// with "sandbox ready" to the output, followed by the first steps for the user. Run fails if another sandbox uses the same
// folder. If a service fails, Run stops everything and returns the error.
func Run(ctx context.Context, config Config, programs Programs, output io.Writer) error {
	config, err := config.shifted()
	if err != nil {
		return err
	}

	if err := config.check(); err != nil {
		return err
	}

	lock, err := config.lockFolder()
	if err != nil {
		return err
	}

	defer func() { _ = lock.Unlock() }()

	if err := config.checkPorts(ctx); err != nil {
		return err
	}

	file, log, err := config.openLog()
	if err != nil {
		return err
	}
	defer file.Close()

	if programs.Libraries != nil {
		programs.Libraries(log)
	}

	keys, err := config.keys()
	if err != nil {
		return err
	}

	garden, part, err := open(ctx, config, programs.Garden, file, log)
	if err != nil {
		return err
	}

	parts := []lifecycle.Part{part} // parts stop in reverse order, so the garden stops last

	systems, systemParts, err := startSystems(ctx, config, garden.client, log)
	parts = append(parts, systemParts...)

	var (
		bundler  *bundler
		services services
	)

	if err == nil {
		bundler, systemParts, err = startBundler(config, programs.Bundler, garden, file, log)
		parts = append(parts, systemParts...)
	}

	if err == nil {
		services, err = start(ctx, config, keys, garden, systems, log)
	}

	if err != nil {
		// Parts release their resources at the end of Run. Run them with a canceled context, so that they end immediately.
		canceled, cancel := context.WithCancel(ctx)
		cancel()

		return errors.Join(err, lifecycle.Run(canceled, log, stopLimit, parts...))
	}

	parts = append(parts,
		lifecycle.Part{Name: "provisioner", Run: services.provisioner.Run},
		lifecycle.Part{Name: "broker", Run: services.broker.Run},
		lifecycle.Part{Name: "announcement", Run: func(ctx context.Context) error {
			return services.announce(ctx, config, systems, bundler, output)
		}},
	)

	return lifecycle.Run(ctx, log, stopLimit, parts...)
}

// lockFolder creates the sandbox's folder if necessary, and locks it. It fails if another sandbox uses the folder.
func (c Config) lockFolder() (*flock.Flock, error) {
	if err := os.MkdirAll(c.Dir, ownerOnly); err != nil {
		return nil, fmt.Errorf("creating the folder of the sandbox: %w", err)
	}

	lock := flock.New(filepath.Join(c.Dir, "lock"))

	locked, err := lock.TryLock()
	if err != nil {
		return nil, fmt.Errorf("locking the folder of the sandbox: %w", err)
	}

	if !locked {
		return nil, fmt.Errorf("another sandbox uses %s: stop it, or set %sDIR to a different folder", c.Dir, Prefix)
	}

	return lock, nil
}

// open opens the local garden if program is not empty, and the fake garden otherwise.
func open(ctx context.Context, config Config, program string, output io.Writer, log logrus.FieldLogger) (openGarden, lifecycle.Part, error) {
	if program == "" {
		return memoryGarden(ctx, config, log)
	}

	return localGarden(ctx, program, config, output)
}

// openLog opens the log file, which the caller must close.
func (c Config) openLog() (*os.File, logrus.FieldLogger, error) {
	file, err := os.OpenFile(filepath.Join(c.Dir, logFile), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, nil, fmt.Errorf("opening the log of the sandbox: %w", err)
	}

	log, err := logging.New("sandbox", c.Log, file)
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("%s%w", Prefix, err), file.Close())
	}

	return file, log, nil
}

// services contains the Provisioner and the broker. The broker is created last, because it needs the Provisioner's address.
type services struct {
	provisioner *provisioner.Service
	broker      *broker.Service
}

// start creates both services. They listen on their addresses but serve no requests until their Run methods are called. Both
// write to the same log, and each entry names its service. After an error, start leaves nothing open.
func start(ctx context.Context, config Config, keys secret.String, garden openGarden, systems outside, log logrus.FieldLogger,
) (services, error) {
	var (
		running services
		err     error
	)

	settings := config.provisioner(keys, systems.director)

	if settings.Kyma.ReleasesPath, err = config.releases(); err != nil {
		return services{}, err
	}

	running.provisioner, err = provisioner.New(ctx, settings, garden.client, log.WithField(logging.Service, "provisioner"))
	if err != nil {
		return services{}, fmt.Errorf("provisioner: %w", err)
	}

	brokerSettings := config.broker(keys, running.provisioner.Address())

	if err := systems.configure(&brokerSettings, config.Dir); err != nil {
		return services{}, errors.Join(err, running.provisioner.Close())
	}

	if config.Integrations {
		if err := config.preparePool(ctx, garden.client); err != nil {
			return services{}, errors.Join(err, running.provisioner.Close())
		}

		config.usePool(&brokerSettings, garden.kubeconfig)
	}

	running.broker, err = broker.NewInGarden(ctx, brokerSettings, garden.config, log.WithField(logging.Service, "broker"))
	if err != nil {
		return services{}, errors.Join(fmt.Errorf("broker: %w", err), running.provisioner.Close())
	}

	return running, nil
}

// announce waits until both services are ready, prints their addresses and the first steps for the user, and waits until the
// context ends. It runs as a part next to the services, so its error stops the sandbox if a service is not ready within
// readyTimeout.
func (s services) announce(ctx context.Context, config Config, systems outside, bundler *bundler, output io.Writer) error {
	deadline, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()

	for _, address := range []string{s.provisioner.StatusAddress(), s.broker.StatusAddress()} {
		if err := ready(deadline, address); err != nil {
			if ctx.Err() != nil {
				return nil
			}

			return fmt.Errorf("%w: see the log %s", err, filepath.Join(config.Dir, logFile))
		}
	}

	fmt.Fprintf(output, "sandbox ready: broker http://%s (user %s, password %s), provisioner http://%s/graphql, "+
		"status http://%s, log %s\n", s.broker.Address(), User, Password, s.provisioner.Address(), s.broker.StatusAddress(),
		filepath.Join(config.Dir, logFile))
	fmt.Fprintf(output, `
  The console shows instances and operations. Log in as %s with the password %s:
    http://%s/console/
  The broker serves the Open Service Broker API. List its plans:
    curl -u %s:%s -H 'X-Broker-API-Version: 2.17' http://%s/v2/catalog
  The data is kept in %s and used again at the next start.
  Press Ctrl-C to stop.
`, User, Password, s.broker.Address(), User, Password, s.broker.Address(), config.Dir)

	if systems.simulators != "" {
		fmt.Fprintf(output, "  Simulated systems, their calls and faults: http://%s/simulators\n", systems.simulators)
	}

	bundler.announce(ctx, output)
	<-ctx.Done()

	return nil
}

// ready polls the readiness endpoint at a service's status address until the service is ready or the context ends. A refused
// connection means that the service is not ready. Both addresses are local, so frequent polling is cheap.
func ready(ctx context.Context, address string) error {
	err := wait.PollUntilContextCancel(ctx, readyPause, true, func(ctx context.Context) (bool, error) {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/readyz", nil)
		if err != nil {
			return false, fmt.Errorf("checking whether %s is ready: %w", address, err)
		}

		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return false, nil //nolint:nilerr // the service does not listen yet
		}

		return response.StatusCode == http.StatusOK, response.Body.Close()
	})
	return failure.While(err, "the service whose status address is %s is not ready", address)
}
