package app

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"
)

// RuntimesMode says what plays the runtime clusters.
type RuntimesMode string

const (
	// RuntimesOwn gives each runtime an API server of its own, which takes some hundred megabytes.
	RuntimesOwn RuntimesMode = "own"
	// RuntimesShared lets one API server play all runtimes.
	RuntimesShared RuntimesMode = "shared"
	// RuntimesSimulated gives each runtime objects of its own, of few kinds, and no process: the garden serves them itself.
	RuntimesSimulated RuntimesMode = "simulated"
)

// Config is what the command line says.
type Config struct {
	// Dir keeps data, certificates, ports and logs.
	Dir string
	// Binaries is the folder of etcd, kube-apiserver and gardener-apiserver.
	Binaries string
	Runtimes RuntimesMode
	// Creation is how long the creation or a change of a Shoot takes at least, Deletion how long its deletion does; without Deletion,
	// half as long.
	Creation time.Duration
	Deletion time.Duration
	// Kubeconfig is where the kubeconfig of the project's member is written.
	Kubeconfig string
	Project    string
}

// Parse reads the command line; usage goes to output. The error is flag.ErrHelp if help was asked for.
func Parse(arguments []string, output io.Writer) (Config, error) {
	config := Config{Runtimes: RuntimesOwn}
	flags := flag.NewFlagSet("garden", flag.ContinueOnError)
	flags.SetOutput(output)
	flags.StringVar(&config.Dir, "dir", "", "`folder` of the garden's data; a garden that is started again in it goes on with them (required)")
	flags.StringVar(&config.Binaries, "bin-dir", "", "`folder` of etcd, kube-apiserver and gardener-apiserver (default: that of garden itself)")
	flags.TextVar(&config.Runtimes, "runtimes", RuntimesOwn,
		"`own`: each runtime has an API server; shared: one API server plays all of them; simulated: the garden plays them, each apart")
	flags.DurationVar(&config.Creation, "cluster-creation", 5*time.Second, "how long the creation or a change of a cluster takes at least")
	flags.DurationVar(&config.Deletion, "cluster-deletion", 0, "how long the deletion of a cluster takes at least (default: half of --cluster-creation)")
	flags.StringVar(&config.Kubeconfig, "kubeconfig", "", "`file` to write the kubeconfig of the project's member to (default: kubeconfig in --dir)")
	flags.StringVar(&config.Project, "project", "local", "`name` of the project")
	if err := flags.Parse(arguments); err != nil {
		return Config{}, err
	}
	if flags.NArg() > 0 {
		return Config{}, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	return config.complete()
}

func (c Config) complete() (Config, error) {
	if c.Dir == "" {
		return Config{}, errors.New("--dir is missing")
	}
	var err error
	if c.Dir, err = filepath.Abs(c.Dir); err != nil {
		return Config{}, fmt.Errorf("find the folder of the garden: %w", err)
	}
	if c.Binaries == "" {
		self, err := os.Executable()
		if err != nil {
			return Config{}, fmt.Errorf("find the folder of the executables: %w", err)
		}
		c.Binaries = filepath.Dir(self)
	}
	if c.Deletion == 0 {
		c.Deletion = c.Creation / 2
	}
	if c.Kubeconfig == "" {
		c.Kubeconfig = filepath.Join(c.Dir, "kubeconfig")
	}
	if c.Kubeconfig, err = filepath.Abs(c.Kubeconfig); err != nil {
		return Config{}, fmt.Errorf("find the folder of the kubeconfig: %w", err)
	}
	return c, nil
}

// MarshalText implements encoding.TextMarshaler.
func (m RuntimesMode) MarshalText() ([]byte, error) { return []byte(m), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (m *RuntimesMode) UnmarshalText(text []byte) error {
	switch mode := RuntimesMode(text); mode {
	case RuntimesOwn, RuntimesShared, RuntimesSimulated:
		*m = mode
		return nil
	default:
		return fmt.Errorf("%q is none of %s, %s and %s", text, RuntimesOwn, RuntimesShared, RuntimesSimulated)
	}
}
