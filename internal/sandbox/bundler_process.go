package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/environment-broker/environment-broker/internal/program"
	"github.com/environment-broker/environment-broker/internal/sandbox/freeport"
	"github.com/environment-broker/environment-broker/resources"
)

const (
	// bundlerStop is how long the bundle provisioner process may take to stop before it is killed.
	bundlerStop = 30 * time.Second
	// definitionPoll is the interval at which applyResource checks whether a CustomResourceDefinition is established.
	definitionPoll = 50 * time.Millisecond
)

// serve runs the bundle provisioner until it exits or the context ends. It returns an error in both cases. It starts the process
// on a locked OS thread, because Linux stops the process when the thread that started it ends.
func (b *bundler) serve(ctx context.Context) error {
	status, err := chosenPort(ctx, b.config.BundlesStatusAddress)
	if err != nil {
		return fmt.Errorf("starting the bundle provisioner: %w", err)
	}

	ended := make(chan error, 1)

	go func() {
		runtime.LockOSThread()

		command := exec.CommandContext(ctx, "sh", "-c", b.command)
		command.Env = append(os.Environ(), b.variables(status)...)
		command.Stdout, command.Stderr = b.log, b.log
		command.SysProcAttr = attributes()
		// Signal the whole process group, because the command may still be building the program.
		command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGTERM) }
		command.WaitDelay = bundlerStop
		ended <- command.Run()
	}()

	b.status <- status

	if err := <-ended; err != nil {
		return fmt.Errorf("the bundle provisioner exited unexpectedly: %w", err)
	}

	return errors.New("the bundle provisioner exited unexpectedly, with status 0")
}

// variables returns the environment variables that configure the bundle provisioner. status is the address for its health and
// metrics.
func (b *bundler) variables(status string) []string {
	values := map[string]string{
		"ADDRESS": b.config.BundlesAddress, "STATUS_ADDRESS": status, "SHUTDOWN_DELAY": "0s", "KUBECONFIG_PATH": b.kubeconfig(),
		"NAMESPACE": bundlesNamespace, "STORE_DIR": filepath.Join(b.config.Dir, bundlesFolder), "LEADER_ELECTION": "false", "TLS_SELF_SIGNED": "true",
	}

	variables := make([]string, 0, len(values))
	for name, value := range values {
		variables = append(variables, program.Prefix+name+"="+value)
	}

	return variables
}

// chosenPort replaces port 0 in an address with a free port, because the sandbox must know the port before it starts the bundle
// provisioner.
func chosenPort(ctx context.Context, address string) (string, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil || port != "0" {
		return address, err
	}

	free, err := freeport.Draw(ctx)

	return net.JoinHostPort(host, strconv.Itoa(free)), err
}

// applyResources applies the bundle provisioner's CustomResourceDefinitions and roles, and waits until the API server serves the
// new kinds.
func applyResources(ctx context.Context, api client.Client) error {
	return fs.WalkDir(resources.BundleProvisioner(), ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}

		content, err := fs.ReadFile(resources.BundleProvisioner(), path)
		if err != nil {
			return err
		}

		for document := range strings.SplitSeq(string(content), "\n---\n") {
			object := &unstructured.Unstructured{}
			if err := yaml.Unmarshal([]byte(document), &object.Object); err != nil {
				return fmt.Errorf("decoding %s: %w", path, err)
			}

			if len(object.Object) == 0 {
				continue
			}

			if err := applyResource(ctx, api, object); err != nil {
				return fmt.Errorf("applying %s %s: %w", object.GetKind(), object.GetName(), err)
			}
		}

		return nil
	})
}

// applyResource applies an object. If the object is a CustomResourceDefinition, applyResource waits until it is established.
func applyResource(ctx context.Context, api client.Client, object *unstructured.Unstructured) error {
	if err := api.Apply(ctx, client.ApplyConfigurationFromUnstructured(object), client.FieldOwner("sandbox"), client.ForceOwnership); err != nil {
		return err
	}

	if object.GetKind() != "CustomResourceDefinition" {
		return nil
	}

	return wait.PollUntilContextCancel(ctx, definitionPoll, true, func(ctx context.Context) (bool, error) {
		if err := api.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
			return false, err
		}

		conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
		for _, condition := range conditions {
			if fields, _ := condition.(map[string]any); fields["type"] == "Established" && fields["status"] == "True" {
				return true, nil
			}
		}

		return false, nil
	})
}
