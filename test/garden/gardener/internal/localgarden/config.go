package localgarden

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"
)

// RuntimesMode selects what serves as runtime clusters.
type RuntimesMode string

const (
	// RuntimesOwn starts a kube-apiserver for each runtime, of some hundred megabytes.
	RuntimesOwn RuntimesMode = "own"
	// RuntimesShared starts one kube-apiserver for all runtimes.
	RuntimesShared RuntimesMode = "shared"
	// RuntimesSimulated starts no process: the garden serves the objects of each runtime itself, of a few kinds.
	RuntimesSimulated RuntimesMode = "simulated"
)

// Config is the configuration of a garden, from the command line.
type Config struct {
	// Dir is the folder of data, certificates, ports and logs.
	Dir string
	// Binaries is the folder of etcd, kube-apiserver and gardener-apiserver.
	Binaries string
	Runtimes RuntimesMode
	// Creation is the minimal duration of the creation or a change of a Shoot, Deletion that of its deletion: half of Creation by
	// default.
	Creation time.Duration
	Deletion time.Duration
	// Kubeconfig is the path for the kubeconfig of the project's member.
	Kubeconfig string
	Project    string
}

// Parse parses the command line and writes usage to output. It returns flag.ErrHelp for -help.
func Parse(arguments []string, output io.Writer) (Config, error) {
	config := Config{Runtimes: RuntimesOwn}
	flags := flag.NewFlagSet("garden", flag.ContinueOnError)
	flags.SetOutput(output)
	flags.StringVar(&config.Dir, "dir", "", "`folder` of the garden's data; a garden that is started in it again continues with them (required)")
	flags.StringVar(&config.Binaries, "bin-dir", "", "`folder` of etcd, kube-apiserver and gardener-apiserver (default: that of garden itself)")
	flags.TextVar(&config.Runtimes, "runtimes", RuntimesOwn,
		"`own`: a kube-apiserver for each runtime; shared: one for all of them; simulated: none, the garden serves a few kinds of objects")
	flags.DurationVar(&config.Creation, "cluster-creation", 5*time.Second, "minimal `duration` of the creation or a change of a cluster")
	flags.DurationVar(&config.Deletion, "cluster-deletion", 0, "minimal `duration` of the deletion of a cluster (default: half of --cluster-creation)")
	flags.StringVar(&config.Kubeconfig, "kubeconfig", "", "`file` for the kubeconfig of the project's member (default: kubeconfig in --dir)")
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
		return Config{}, fmt.Errorf("finding the folder of the garden: %w", err)
	}
	if c.Binaries == "" {
		self, err := os.Executable()
		if err != nil {
			return Config{}, fmt.Errorf("finding the folder of the executables: %w", err)
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
		return Config{}, fmt.Errorf("finding the folder of the kubeconfig: %w", err)
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
		return fmt.Errorf("%q is not %s, %s or %s", text, RuntimesOwn, RuntimesShared, RuntimesSimulated)
	}
}
