//go:build garden

package bundles

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"

	"github.com/environment-broker/environment-broker/test/apiserver"
	"github.com/environment-broker/environment-broker/test/harness"
	"github.com/environment-broker/environment-broker/test/sources"
)

// cluster is a kube-apiserver. It keeps its address, certificates and tokens when it is restarted.
type cluster struct {
	*envtest.APIServer

	config *rest.Config
	// pidFile is the path of the file with the process ID, and log is the path of the file with the process's output.
	pidFile, log string
}

// hub contains the Bundles, and target contains the installed objects. They share an etcd, in which each uses its own key prefix.
var hub, target *cluster

// bundler is the path of the bundler's binary. This build reports changes of its store.
var bundler string

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	ctrl.SetLogger(logr.Discard())

	stop, err := start()
	defer stop()

	if err != nil {
		fmt.Fprintf(os.Stderr, "starting the programs of .bin, which `make garden` builds: %v\n", err)

		return 1
	}

	return m.Run()
}

// start builds the bundler and starts the clusters.
func start() (stop func(), err error) {
	etcd, err := apiserver.Etcd()
	if err != nil {
		return func() {}, err
	}

	folder, err := os.MkdirTemp("", "bundles-")
	if err != nil {
		return func() {}, err
	}

	built := make(chan error, 1)
	go func() { built <- build(folder) }()

	stop = func() {
		for _, each := range []*cluster{hub, target} {
			if each != nil {
				_ = each.Stop()
			}
		}

		_ = etcd.Stop()
		_ = os.RemoveAll(folder)
	}

	if err := etcd.Start(); err != nil {
		return stop, err
	}

	if hub, err = launch(etcd, folder, "hub"); err != nil {
		return stop, err
	}

	if target, err = launch(etcd, folder, "target"); err != nil {
		return stop, err
	}

	if err := install(hub.config); err != nil {
		return stop, err
	}

	return stop, <-built
}

// build builds the bundler with a store that reports its changes.
func build(folder string) error {
	root, err := filepath.Abs(harness.Root)
	if err != nil {
		return err
	}

	replaced, err := json.Marshal(map[string]any{"Replace": map[string]string{
		filepath.Join(root, "bundle", "store", "before.go"): filepath.Join(root, "test", "bundles", "testdata", "before.go.txt"),
	}})
	if err != nil {
		return err
	}

	overlay := filepath.Join(folder, "overlay.json")
	if err := os.WriteFile(overlay, replaced, 0o600); err != nil {
		return err
	}

	if err := sources.Open(root, "./cmd/bundler"); err != nil {
		return err
	}

	bundler = filepath.Join(folder, "bundler")
	command := exec.Command("go", "build", "-buildvcs=false", "-ldflags", "-s -w", "-overlay", overlay, "-o", bundler, "./cmd/bundler")
	command.Dir = root

	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("building the bundler: %w\n%s", err, output)
	}

	return nil
}

// launch starts a kube-apiserver with its own folder, so that it can be restarted.
func launch(etcd *envtest.Etcd, folder, name string) (*cluster, error) {
	server, err := apiserver.Server()
	if err != nil {
		return nil, err
	}

	binary := server.Path
	server.Path, server.EtcdURL, server.CertDir = filepath.Join(folder, "start-"+name), etcd.URL, filepath.Join(folder, name)
	if err := os.MkdirAll(server.CertDir, 0o700); err != nil {
		return nil, err
	}

	// A test kills the process, but envtest does not reveal its ID, so a script writes the ID to a file.
	pidFile := filepath.Join(folder, name+".pid")
	if err := os.WriteFile(server.Path, fmt.Appendf(nil, "#!/bin/sh\necho $$ > %q\nexec %q \"$@\"\n", pidFile, binary), 0o700); err != nil {
		return nil, err
	}

	log, err := os.Create(filepath.Join(folder, name+".log"))
	if err != nil {
		return nil, err
	}

	server.Err = log
	server.Configure().Set("etcd-prefix", "/"+name)

	if err := server.Start(); err != nil {
		return nil, err
	}

	user, err := (&envtest.ControlPlane{APIServer: server}).AddUser(
		envtest.User{Name: "admin", Groups: []string{"system:masters"}}, &rest.Config{QPS: -1, Timeout: harness.Patience})
	if err != nil {
		return nil, err
	}

	config := user.Config()
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return patient{next} })

	return &cluster{server, config, pidFile, log.Name()}, nil
}

// install applies the objects that operators of the bundle provisioner and of the Provisioner install on the hub.
func install(config *rest.Config) error {
	if _, err := envtest.InstallCRDs(config, envtest.CRDInstallOptions{Paths: []string{filepath.Join(harness.Root, "resources", "crds")}}); err != nil {
		return err
	}

	connection, err := client.New(config, client.Options{})
	if err != nil {
		return err
	}

	for _, name := range []string{"bundles.yaml", "provisioner-bundles.yaml"} {
		text, err := os.ReadFile(filepath.Join(harness.Root, "resources", "rbac", name))
		if err != nil {
			return err
		}

		for _, document := range documents(string(text)) {
			object := newObject()
			if err := yaml.Unmarshal([]byte(document), &object.Object); err != nil {
				return err
			}

			if err := connection.Create(context.Background(), object); err != nil {
				return err
			}
		}
	}

	return nil
}
