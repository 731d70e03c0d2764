package fakegarden_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	authenticationv1alpha1 "github.com/gardener/gardener/pkg/apis/authentication/v1alpha1"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/sirupsen/logrus/hooks/test"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/environment-broker/environment-broker/internal/sandbox/fakegarden"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakegarden/conformance"
)

// childVariable contains the garden's folder in the environment of the child process that the test kills.
const childVariable = "GARDEN_TEST_CHILD"

func TestMain(m *testing.M) {
	if dir := os.Getenv(childVariable); dir != "" {
		if err := createUntilKilled(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// createUntilKilled creates Shoots in an endless loop and prints the name of each Shoot that the garden has acknowledged.
func createUntilKilled(dir string) error {
	log, _ := test.NewNullLogger()
	memory, err := fakegarden.Open(context.Background(), fakegarden.Options{Dir: dir, Log: log})
	if err != nil {
		return err
	}
	for i := 0; ; i++ {
		shoot := conformance.Shoot(memory.Namespace(), fmt.Sprintf("c-%d", i))
		if err := memory.Client().Create(context.Background(), shoot); err != nil {
			return err
		}
		fmt.Println(shoot.Name)
	}
}

func TestKillLosesNothingAcknowledged(t *testing.T) {
	const acknowledgements = 100
	dir := t.TempDir()
	child := exec.CommandContext(t.Context(), os.Args[0])
	child.Env = append(os.Environ(), childVariable+"="+dir)
	child.Stderr = os.Stderr
	output, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	var acknowledged []string
	lines := bufio.NewScanner(output)
	for lines.Scan() {
		acknowledged = append(acknowledged, lines.Text())
		if len(acknowledged) == acknowledgements {
			if err := child.Process.Kill(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := child.Wait(); err == nil || len(acknowledged) < acknowledgements {
		t.Fatalf("the process was not killed (%v), after %d acknowledgements", err, len(acknowledged))
	}

	memory, _ := start(t, dir, time.Hour)
	for _, name := range acknowledged {
		key := client.ObjectKey{Namespace: memory.Namespace(), Name: name}
		if err := memory.Client().Get(t.Context(), key, &gardencorev1beta1.Shoot{}); err != nil {
			t.Errorf("an acknowledged shoot was lost: %v", err)
		}
	}
}

func TestRuntimesComeBack(t *testing.T) {
	dir := t.TempDir()
	conformance.KeepPort(t, filepath.Join(dir, "runtimes"))
	memory, stop := start(t, dir, 0)
	shoot := conformance.Shoot(memory.Namespace(), "c-1")
	if err := memory.Client().Create(t.Context(), shoot); err != nil {
		t.Fatal(err)
	}
	awaitSuccess(t, memory, shoot.Name)
	request := &authenticationv1alpha1.AdminKubeconfigRequest{}
	if err := memory.Client().SubResource("adminkubeconfig").Create(t.Context(), shoot, request); err != nil {
		t.Fatal(err)
	}
	stop()

	memory, _ = start(t, dir, 0)
	change := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"purpose":"testing"}}`))
	if err := memory.Client().Patch(t.Context(), shoot, change); err != nil {
		t.Fatal(err)
	}
	awaitSuccess(t, memory, shoot.Name)
	config, err := clientcmd.RESTConfigFromKubeConfig(request.Status.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	runtime, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	if version, err := runtime.ServerVersion(); err != nil || version.GitVersion != "v1.35.4" {
		t.Errorf("with a kubeconfig from before the restart, the runtime returned %v %v", version, err)
	}
}

// awaitSuccess waits until the last operation of a Shoot has succeeded for the current generation.
func awaitSuccess(t *testing.T, memory *fakegarden.Memory, name string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	watching, err := memory.Client().Watch(ctx, &gardencorev1beta1.ShootList{}, client.InNamespace(memory.Namespace()),
		client.MatchingFields{"metadata.name": name})
	if err != nil {
		t.Fatal(err)
	}
	defer watching.Stop()
	for event := range watching.ResultChan() {
		shoot, ok := event.Object.(*gardencorev1beta1.Shoot)
		if ok && shoot.Status.ObservedGeneration == shoot.Generation && shoot.Status.LastOperation != nil &&
			shoot.Status.LastOperation.State == gardencorev1beta1.LastOperationStateSucceeded {
			return
		}
	}
	t.Fatalf("timed out waiting for the operation of shoot %s to succeed", name)
}
