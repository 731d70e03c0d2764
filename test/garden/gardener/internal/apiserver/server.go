package apiserver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"k8s.io/client-go/rest"

	"github.com/environment-broker/environment-broker/internal/sandbox/freeport"
	"github.com/environment-broker/environment-broker/test/garden/gardener/internal/process"
)

// Members of adminGroup have all permissions without RBAC roles. readyWithin is generous because several API servers can start at
// the same time on a busy machine.
const (
	binary      = "kube-apiserver"
	adminUser   = "admin"
	adminGroup  = "system:masters"
	readyPath   = "/readyz"
	readyWithin = 4 * time.Minute
)

// Config configures an API server.
type Config struct {
	// Name identifies the API server in messages and in the name of its log file.
	Name string
	// Binaries is the folder that contains the executables. Logs is the folder for log files.
	Binaries string
	Logs     string
	Port     int
	// EtcdURL and EtcdPrefix determine where the API server stores its objects. API servers with different prefixes can share an
	// etcd but no objects.
	EtcdURL    string
	EtcdPrefix string
	// Certificates contains the CA that signs the serving certificate.
	Certificates *Certificates
	// ClientCAFile is a file with the CAs whose client certificates the API server accepts. It must include the CA of Certificates.
	// The API server reloads the file when it changes.
	ClientCAFile string
	// Args are additional command-line arguments.
	Args []string
}

// Server is a running API server.
type Server struct {
	*process.Process

	// URL is the address of the API server, without a path.
	URL string
	// CA is the certificate (PEM) of the CA that signed the serving certificate.
	CA []byte
	// Admin contains cluster-admin credentials. Clients that use it are not rate-limited.
	Admin *rest.Config
}

// Start starts an API server and waits until it is ready. If the API server is not ready within readyWithin, Start kills it and
// returns an error. The caller must stop the API server with Kill: it has no state to save, and after SIGTERM it would wait for
// open watches.
func Start(ctx context.Context, config Config) (*Server, error) {
	ctx, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()

	serving, err := config.Certificates.Server("serving", "127.0.0.1", "localhost", "kubernetes.default.svc")
	if err != nil {
		return nil, err
	}
	credentials, err := config.Certificates.TLS(adminUser, adminGroup)
	if err != nil {
		return nil, err
	}
	url := "https://" + freeport.Address(config.Port)
	server := &Server{
		URL:   url,
		CA:    config.Certificates.CA(),
		Admin: &rest.Config{Host: url, TLSClientConfig: credentials, QPS: -1},
	}
	if err := process.WaitFree(ctx, config.Port); err != nil {
		return nil, fmt.Errorf("starting %s: %w", config.Name, err)
	}
	server.Process, err = process.Start(process.Spec{
		Name: config.Name,
		Path: filepath.Join(config.Binaries, binary),
		Args: arguments(config, serving),
		Env:  []string{"GOGC=" + cmp.Or(os.Getenv("GOGC"), "50")}, // uses a third less memory than the default but a third more CPU time
		Log:  filepath.Join(config.Logs, config.Name+".log"),
	})
	if err != nil {
		return nil, err
	}
	if err := server.waitReady(ctx); err != nil {
		return nil, errors.Join(err, server.Kill())
	}
	return server, nil
}

// waitReady polls the readiness endpoint with the administrator's credentials, because other users have no permissions yet.
func (s *Server) waitReady(ctx context.Context) error {
	client, err := rest.HTTPClientFor(s.Admin)
	if err != nil {
		return fmt.Errorf("creating the client of the administrator: %w", err)
	}
	defer client.CloseIdleConnections()
	return s.WaitReady(ctx, process.Answers(client, s.URL+readyPath))
}

// arguments returns the flags of an API server. They minimize its load, because dozens of API servers share a machine with other
// test processes: the watch cache and request priorities are off, and events are deleted after minutes instead of an hour.
//
// There is no controller-manager. The ServiceAccount admission plugin is therefore off, because it requires default accounts that
// the controller-manager creates. Garbage collection is off too, because foreground deletions would wait for the
// controller-manager.
func arguments(config Config, serving Files) []string {
	authority := config.Certificates.Authority()
	return append([]string{
		"--bind-address=127.0.0.1",
		"--advertise-address=127.0.0.1",
		"--secure-port=" + strconv.Itoa(config.Port),
		"--endpoint-reconciler-type=none",
		"--service-cluster-ip-range=10.0.0.0/24",

		"--etcd-servers=" + config.EtcdURL,
		"--etcd-prefix=" + config.EtcdPrefix,
		"--watch-cache=false",
		"--event-ttl=10m",

		"--tls-cert-file=" + serving.Certificate,
		"--tls-private-key-file=" + serving.Key,
		"--client-ca-file=" + config.ClientCAFile,
		"--authorization-mode=RBAC",
		"--allow-privileged=true",

		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-signing-key-file=" + authority.Key,
		"--service-account-key-file=" + authority.Certificate,

		"--disable-admission-plugins=ServiceAccount",
		"--enable-garbage-collector=false",
		"--enable-priority-and-fairness=false",
		"--profiling=false",
	}, config.Args...)
}
