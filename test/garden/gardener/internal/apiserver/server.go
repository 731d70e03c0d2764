package apiserver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/rest"

	"github.com/environment-broker/environment-broker/test/garden/gardener/internal/await"
	"github.com/environment-broker/environment-broker/test/garden/gardener/internal/certdir"
	"github.com/environment-broker/environment-broker/test/garden/gardener/internal/child"
	"github.com/environment-broker/environment-broker/test/garden/gardener/internal/port"
)

const (
	binary      = "kube-apiserver"
	adminUser   = "admin"
	adminGroup  = "system:masters"
	readyPath   = "/readyz"
	readyWithin = 2 * time.Minute
)

// Config says what an API server is.
type Config struct {
	// Name is what messages and the log file call it.
	Name string
	// Binaries is the folder of the executables, Logs that of the log files.
	Binaries string
	Logs     string
	Port     int
	// EtcdURL and EtcdPrefix are where it stores its objects.
	EtcdURL    string
	EtcdPrefix string
	// Certificates hold the authority of its serving certificate.
	Certificates *certdir.Dir
	// ClientCAFile holds the authorities whose client certificates it accepts. That of Certificates has to be among them.
	ClientCAFile string
	// Args are added to what every API server gets.
	Args []string
}

// Server is an API server that runs.
type Server struct {
	*child.Child

	// URL is its address.
	URL string
	// CA is the authority of its serving certificate, PEM.
	CA []byte
	// Admin are the address and credentials of its administrator.
	Admin *rest.Config
}

// Start starts an API server and waits until it is ready. One that does not get ready is ended.
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
	url := "https://" + port.Address(config.Port)
	server := &Server{
		URL:   url,
		CA:    config.Certificates.CA(),
		Admin: &rest.Config{Host: url, TLSClientConfig: credentials, QPS: -1},
	}
	if err := port.WaitFree(ctx, config.Port); err != nil {
		return nil, fmt.Errorf("start %s: %w", config.Name, err)
	}
	server.Child, err = child.Start(child.Spec{
		Name: config.Name,
		Path: filepath.Join(config.Binaries, binary),
		Args: arguments(config, serving),
		Env:  []string{"GOGC=" + cmp.Or(os.Getenv("GOGC"), "50")}, // a third less memory for a third more CPU time
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
		return fmt.Errorf("make the client of the administrator: %w", err)
	}
	defer client.CloseIdleConnections()
	return s.WaitReady(ctx, await.Answer(client, s.URL+readyPath))
}
