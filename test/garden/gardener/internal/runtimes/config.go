package runtimes

import (
	"path/filepath"

	"github.com/sirupsen/logrus"

	"github.com/environment-broker/environment-broker/test/garden/gardener/internal/port"
)

// Config says where runtimes find and keep what they need.
type Config struct {
	// Dir keeps their certificates.
	Dir string
	// Binaries is the folder of the executables, Logs that of the log files.
	Binaries string
	Logs     string
	// EtcdURL is where they store their objects, each under a prefix of its own.
	EtcdURL string
	Ports   *port.Book
	Log     logrus.FieldLogger
}

// hostDir is where the certificates of an API server are.
func (c Config) hostDir(name string) string { return filepath.Join(c.Dir, name) }
