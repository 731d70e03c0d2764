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

	"github.com/environment-broker/environment-broker/internal/sandbox/fakegarden"
)

// RuntimesMode selects how the API servers of runtimes are provided. The modes trade fidelity for memory and CPU time.
type RuntimesMode string

const (
	// RuntimesOwn runs one kube-apiserver per runtime. Each uses about 200 MiB of memory.
	RuntimesOwn RuntimesMode = "own"
	// RuntimesShared runs one kube-apiserver for all runtimes, so runtimes see each other's objects.
	RuntimesShared RuntimesMode = "shared"
	// RuntimesSimulated runs no kube-apiserver: the garden itself serves a few kinds of objects for each runtime and does not
	// validate them.
	RuntimesSimulated RuntimesMode = "simulated"
)

// Config is the configuration from the command line, with all defaults applied.
type Config struct {
	// Dir is the absolute path of the folder for data, certificates, ports and logs. If the folder was used before, the garden
	// continues with its data.
	Dir string
	// Binaries is the folder that contains etcd, kube-apiserver and gardener-apiserver.
	Binaries string
	Runtimes RuntimesMode
	// Creation is the minimum time to create or change a Shoot, and Deletion the minimum time to delete it. The API server of the
	// runtime can take longer.
	Creation time.Duration
	Deletion time.Duration
	// Kubeconfig is the path of the kubeconfig that the garden writes for the services, which act as a member of the project.
	Kubeconfig string
	// Projects are the names of the projects, at least one. The namespace of a project is garden-<name>.
	Projects []string
}

// Parse parses the command line. For --help and unknown flags, it writes the usage to output. For --help, it returns
// flag.ErrHelp.
func Parse(arguments []string, output io.Writer) (Config, error) {
	var config Config

	flags := flag.NewFlagSet("garden", flag.ContinueOnError)
	flags.SetOutput(output)
	flags.StringVar(&config.Dir, "dir", "", "`folder` for the garden's data; a garden that is restarted in the same folder continues with its data (required)")
	flags.StringVar(&config.Binaries, "bin-dir", "", "`folder` that contains etcd, kube-apiserver and gardener-apiserver (default: the folder of garden itself)")
	flags.StringVar((*string)(&config.Runtimes), "runtimes", string(RuntimesOwn),
		"`own`: a kube-apiserver for each runtime; shared: one for all runtimes; simulated: none, the garden itself serves a few kinds of objects")
	flags.DurationVar(&config.Creation, "cluster-creation", 5*time.Second, "minimum `duration` for creating or changing a cluster")
	flags.DurationVar(&config.Deletion, "cluster-deletion", 0, "minimum `duration` for deleting a cluster (default: half of --cluster-creation)")
	flags.StringVar(&config.Kubeconfig, "kubeconfig", "", "`file` for the kubeconfig of the projects' member (default: kubeconfig in --dir)")
	flags.Func("project", "`name` of a project; repeat the flag for several projects (default: "+fakegarden.DefaultProject+")", func(name string) error {
		config.Projects = append(config.Projects, name)
		return nil
	})
	if err := flags.Parse(arguments); err != nil {
		return Config{}, err
	}
	if flags.NArg() > 0 {
		return Config{}, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	return config.complete()
}

// complete validates the flags and sets the defaults that depend on other flags or on the path of the executable.
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
	if len(c.Projects) == 0 {
		c.Projects = []string{fakegarden.DefaultProject}
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
