//go:build garden

package e2e

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/environment-broker/environment-broker/internal/replica"
	"github.com/environment-broker/environment-broker/provisioner/gardener"
)

// world is a broker and a Provisioner, each a program on PostgreSQL, with the real garden beside them.
type world struct {
	*testing.T
	platform

	garden client.Client
	// road is how the Provisioner reaches the garden.
	road *tcpRoad
	// broker and provisioner are what runs at present.
	broker, provisioner *program
	begin               map[string]func() *program
}

// gardenProgram is the path of the real garden.
func gardenProgram(t *testing.T) string {
	t.Helper()

	program, err := filepath.Abs(filepath.Join(root, ".bin", "garden"))
	if err != nil {
		t.Fatal(err)
	}

	return program
}

// realGarden runs the real garden until the test ends and returns its kubeconfig.
func realGarden(t *testing.T, arguments ...string) string {
	t.Helper()

	line := launch(t, nil, gardenProgram(t), append([]string{"--dir", t.TempDir()}, arguments...)...).line()

	kubeconfig, found := strings.CutPrefix(line, "garden ready kubeconfig=")
	if !found {
		t.Fatalf("the garden said %q", line)
	}

	return kubeconfig
}

func newWorld(t *testing.T, kubeconfig string) *world {
	t.Helper()

	return newWorldOn(t, kubeconfig, onPostgres)
}

func newWorldOn(t *testing.T, kubeconfig string, fresh database) *world {
	t.Helper()

	api, err := gardener.Connect(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}

	road, byRoad := roadToGarden(t, kubeconfig)
	brokerProgram, provisionerProgram := build(t, "broker"), build(t, "provisioner")
	address, provisionerAddress := freeAddress(t), freeAddress(t)
	brokerVariables := append(variables(fresh(t, "broker")),
		"APP_ADDRESS="+address, "APP_STATUS_ADDRESS="+freeAddress(t), "APP_AUTH_BASIC_USERS="+user+":"+password+":osb+admin",
		"APP_PROVISIONER_URL=http://"+provisionerAddress+"/graphql", "APP_SHUTDOWN_DELAY=0s")
	provisionerVariables := append(variables(fresh(t, "provisioner")),
		"APP_ADDRESS="+provisionerAddress, "APP_STATUS_ADDRESS="+freeAddress(t),
		"APP_GARDENER_PROJECT=local", "APP_GARDENER_KUBECONFIG_PATH="+byRoad, "APP_SHUTDOWN_DELAY=0s")

	w := &world{
		T: t, platform: platform{TB: t, url: "http://" + address, user: user, password: password}, garden: api, road: road,
		begin: map[string]func() *program{
			"broker":      func() *program { return launch(t, brokerVariables, brokerProgram) },
			"provisioner": func() *program { return launch(t, provisionerVariables, provisionerProgram) },
		},
	}
	w.provisioner, w.broker = w.begin["provisioner"](), w.begin["broker"]()
	w.until("the broker", func() bool {
		_, err := w.try("GET", "/v2/catalog", nil)

		return err == nil
	})

	return w
}

// roadToGarden opens a road to the garden of the kubeconfig and returns a kubeconfig that leads over it.
func roadToGarden(t *testing.T, kubeconfig string) (*tcpRoad, string) {
	t.Helper()

	config, err := clientcmd.LoadFromFile(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}

	cluster := config.Clusters[config.Contexts[config.CurrentContext].Cluster]

	server, err := url.Parse(cluster.Server)
	if err != nil {
		t.Fatal(err)
	}

	road := newRoad(t, func() string { return server.Host })
	cluster.Server = "https://" + road.address()
	path := filepath.Join(t.TempDir(), "kubeconfig")

	if err := clientcmd.WriteToFile(*config, path); err != nil {
		t.Fatal(err)
	}

	return road, path
}

// variables are the environment variables of a database.
func variables(database replica.Database) []string {
	return []string{
		"APP_DATABASE_DRIVER=" + database.Driver,
		"APP_DATABASE_USER=" + database.User,
		"APP_DATABASE_PASSWORD=" + database.Password.Reveal(),
		"APP_DATABASE_HOST=" + database.Host,
		"APP_DATABASE_PORT=" + database.Port,
		"APP_DATABASE_NAME=" + database.Name,
		"APP_DATABASE_SSL_MODE=" + database.SSLMode,
		"APP_DATABASE_SECRET_KEYS=" + database.SecretKeys.Reveal(),
	}
}

func (w *world) shoots() []gardencorev1beta1.Shoot {
	w.T.Helper()

	found := &gardencorev1beta1.ShootList{}
	if err := w.garden.List(context.Background(), found, client.InNamespace("garden-local")); err != nil {
		w.T.Fatal(err)
	}

	return found.Items
}

// shootIs waits until there is a Shoot whose last operation has the state.
func (w *world) shootIs(state gardencorev1beta1.LastOperationState) {
	w.T.Helper()
	w.until("a Shoot that is "+string(state), func() bool {
		for _, shoot := range w.shoots() {
			if last := shoot.Status.LastOperation; last != nil && last.State == state {
				return true
			}
		}

		return false
	})
}

// The programs that are killed.
const (
	killBroker      = "broker"
	killProvisioner = "provisioner"
)

func (w *world) of(victim string) **program {
	if victim == killBroker {
		return &w.broker
	}

	return &w.provisioner
}

// killAndRestart ends the program with SIGKILL and starts it anew.
func (w *world) killAndRestart(victim string) {
	(*w.of(victim)).kill()
	w.restart(victim)
}

func (w *world) restart(victim string) { *w.of(victim) = w.begin[victim]() }

// TestKilledPrograms kills broker and Provisioner at three points of a provisioning: the operation succeeds, and there is exactly
// one Shoot; after the deletion there is none.
func TestKilledPrograms(t *testing.T) {
	t.Parallel()

	w := newWorld(t, realGarden(t, "--runtimes=shared", "--cluster-creation=1s"))

	points := map[string]struct {
		reason string
		kill   func(id, victim string)
	}{
		"before the Shoot": {
			reason: "the instance is accepted, and in the Provisioner its runtime, but Gardener was not reached",
			kill: func(id, victim string) {
				w.road.block(true)
				w.create(id, planAWS)

				if victim == killProvisioner {
					w.until("the order", func() bool {
						found := w.send(http.MethodGet, "/runtimes?instance_id="+id, nil, http.StatusOK)
						runtime, _ := json.Marshal(found.Body)

						return strings.Contains(string(runtime), "runtimeID")
					})
				}

				if shoots := w.shoots(); len(shoots) != 0 {
					w.T.Errorf("there are %d Shoots already", len(shoots))
				}

				(*w.of(victim)).kill()
				w.road.block(false)
				w.restart(victim)
			},
		},
		"while it is created": {
			reason: "Gardener is at work",
			kill: func(id, victim string) {
				orderFaults(w.T, w.garden, stuck())
				w.create(id, planAWS)
				w.shootIs(gardencorev1beta1.LastOperationStateProcessing)
				w.killAndRestart(victim)
				orderFaults(w.T, w.garden, nil)
			},
		},
		"before the last save": {
			reason: "the cluster is there, and the program that is killed has not noted it",
			kill: func(id, victim string) {
				orderFaults(w.T, w.garden, stuck())
				w.create(id, planAWS)
				w.shootIs(gardencorev1beta1.LastOperationStateProcessing)
				(*w.of(victim)).signal(syscall.SIGSTOP)
				orderFaults(w.T, w.garden, nil)
				w.shootIs(gardencorev1beta1.LastOperationStateSucceeded)
				w.killAndRestart(victim)
			},
		},
	}

	for name, point := range points {
		for _, victim := range []string{killBroker, killProvisioner} {
			t.Run(victim+" "+name, func(t *testing.T) {
				id := strings.ReplaceAll(victim+"-"+name, " ", "-")

				point.kill(id, victim)
				w.succeeded(id)

				if shoots := w.shoots(); len(shoots) != 1 {
					t.Errorf("%s: there are %d Shoots, want one", point.reason, len(shoots))
				}

				w.remove(id, planAWS)
				w.gone(id)

				if shoots := w.shoots(); len(shoots) != 0 {
					t.Errorf("%s: %d Shoots are left", point.reason, len(shoots))
				}
			})
		}
	}
}
