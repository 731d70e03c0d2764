package localgarden

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// RuntimesMode selects the API servers of runtimes. The modes trade fidelity for memory and CPU time.
type RuntimesMode string

const (
	// RuntimesOwn starts a kube-apiserver for each runtime. Each takes about 200 MiB.
	RuntimesOwn RuntimesMode = "own"
	// RuntimesShared starts one kube-apiserver for all runtimes, which therefore see each other's objects.
	RuntimesShared RuntimesMode = "shared"
	// RuntimesSimulated starts no process: the garden itself serves objects of a few kinds for each runtime, and validates none
	// of them.
	RuntimesSimulated RuntimesMode = "simulated"
)

// Config is the configuration of a garden from the command line, with all defaults filled in.
type Config struct {
	// Dir is the absolute path of the folder with data, certificates, ports and logs. A garden in a used folder continues with
	// its data.
	Dir string
	// Binaries is the folder of etcd, kube-apiserver and gardener-apiserver.
	Binaries string
	Runtimes RuntimesMode
	// Creation is the minimal time for the creation or a change of a Shoot, Deletion the minimal time for its deletion. The API
	// server of the runtime may take longer.
	Creation time.Duration
	Deletion time.Duration
	// Kubeconfig is the path of the kubeconfig that the garden writes for the services, which are members of the project.
	Kubeconfig string
	// Project is the name of the only project. Its namespace is garden-<name>.
	Project string
}

// Parse parses the command line. It writes the usage of the flags to output for --help and for unknown flags, and returns
// flag.ErrHelp for --help.
func Parse(arguments []string, output io.Writer) (Config, error) {
	var config Config

	flags := flag.NewFlagSet("garden", flag.ContinueOnError)
	flags.SetOutput(output)
	flags.StringVar(&config.Dir, "dir", "", "`folder` of the garden's data; a garden that is started in it again continues with them (required)")
	flags.StringVar(&config.Binaries, "bin-dir", "", "`folder` of etcd, kube-apiserver and gardener-apiserver (default: that of garden itself)")
	flags.StringVar((*string)(&config.Runtimes), "runtimes", string(RuntimesOwn),
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

// complete checks the flags and fills in the defaults that depend on other flags or on the executable.
func (c Config) complete() (Config, error) {
	if c.Dir == "" {
		return Config{}, errors.New("--dir is missing")
	}
	if modes := []RuntimesMode{RuntimesOwn, RuntimesShared, RuntimesSimulated}; !slices.Contains(modes, c.Runtimes) {
		return Config{}, fmt.Errorf("--runtimes: %q is not %s, %s or %s", c.Runtimes, RuntimesOwn, RuntimesShared, RuntimesSimulated)
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
