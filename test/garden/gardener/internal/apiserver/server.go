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

const (
	binary      = "kube-apiserver"
	adminUser   = "admin"
	adminGroup  = "system:masters"
	readyPath   = "/readyz"
	readyWithin = 2 * time.Minute
)

// Config configures an API server.
type Config struct {
	// Name is its name in messages and that of its log file.
	Name string
	// Binaries is the folder of the executables, Logs that of the log files.
	Binaries string
	Logs     string
	Port     int
	// EtcdURL and EtcdPrefix locate its objects.
	EtcdURL    string
	EtcdPrefix string
	// Certificates hold the authority of its serving certificate.
	Certificates *Certificates
	// ClientCAFile holds the authorities whose client certificates it accepts. That of Certificates has to be among them.
	ClientCAFile string
	// Args are added to the arguments of every API server.
	Args []string
}

// Server is a running API server.
type Server struct {
	*process.Process

	// URL is its address.
	URL string
	// CA is the authority of its serving certificate, PEM.
	CA []byte
	// Admin has the credentials of its administrator.
	Admin *rest.Config
}

// Start starts an API server and waits until it is ready. If it does not get ready, it is killed.
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
		Env:  []string{"GOGC=" + cmp.Or(os.Getenv("GOGC"), "50")}, // a third less memory than the default, for a third more CPU time
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

func (s *Server) waitReady(ctx context.Context) error {
	client, err := rest.HTTPClientFor(s.Admin)
	if err != nil {
		return fmt.Errorf("creating the client of the administrator: %w", err)
	}
	defer client.CloseIdleConnections()
	return s.WaitReady(ctx, process.Answers(client, s.URL+readyPath))
}

// arguments keep an API server small, because several of them share a machine with everything else: no watch cache, no priorities of
// requests, events for minutes instead of an hour.
//
// There is no controller-manager. So the ServiceAccount admission plugin is off, which requires default accounts that nobody creates, and
// garbage collection is off, or foreground deletions would never end.
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
