//go:build garden

package e2e

import (
	"encoding/json"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/environment-broker/environment-broker/test/harness"
)

// programs consists of a broker and a Provisioner that run as processes, with PostgreSQL databases and a local garden.
type programs struct {
	*testing.T
	platform

	garden localProject
	// toGarden forwards the Provisioner's connections to the garden.
	toGarden *tcpProxy
	// broker and provisioner are the most recently started processes.
	broker, provisioner *harness.Program
	start               map[string]func() *harness.Program
}

func startPrograms(t *testing.T, garden localProject) *programs {
	t.Helper()

	return startProgramsOn(t, garden, harness.Postgres)
}

func startProgramsOn(t *testing.T, garden localProject, database harness.Database) *programs {
	t.Helper()

	toGarden, proxied := proxyGarden(t, garden.kubeconfig)
	brokerProgram, provisionerProgram := harness.Build(t, "broker"), harness.Build(t, "provisioner")
	address, provisionerAddress := harness.FreeAddress(t), harness.FreeAddress(t)
	brokerVariables := append(harness.DatabaseVariables(database(t, "broker")),
		"APP_ADDRESS="+address, "APP_STATUS_ADDRESS="+harness.FreeAddress(t), "APP_AUTH_BASIC_USERS="+harness.User+":"+harness.Password+":osb+admin",
		"APP_PROVISIONER_URL=http://"+provisionerAddress+"/graphql", "APP_SHUTDOWN_DELAY=0s")
	provisionerVariables := append(harness.DatabaseVariables(database(t, "provisioner")),
		"APP_ADDRESS="+provisionerAddress, "APP_STATUS_ADDRESS="+harness.FreeAddress(t),
		"APP_GARDENER_PROJECT="+garden.name, "APP_GARDENER_KUBECONFIG_PATH="+proxied, "APP_SHUTDOWN_DELAY=0s")

	p := &programs{
		T: t, platform: newPlatform(t, "http://"+address), garden: garden, toGarden: toGarden,
		start: map[string]func() *harness.Program{
			"broker":      func() *harness.Program { return harness.Launch(t, brokerVariables, brokerProgram) },
			"provisioner": func() *harness.Program { return harness.Launch(t, provisionerVariables, provisionerProgram) },
		},
	}
	p.provisioner, p.broker = p.start["provisioner"](), p.start["broker"]()
	p.Until("the broker", func() bool {
		_, err := p.Try("GET", "/v2/catalog", nil)

		return err == nil
	})

	return p
}

// proxyGarden runs a proxy in front of a kubeconfig's API server. It returns the proxy and the path of a copy of the kubeconfig that
// refers to the proxy instead.
func proxyGarden(t *testing.T, kubeconfig string) (proxy *tcpProxy, path string) {
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

	proxy = newTCPProxy(t, server.Host)
	cluster.Server = "https://" + proxy.address()
	path = filepath.Join(t.TempDir(), "kubeconfig")

	if err := clientcmd.WriteToFile(*config, path); err != nil {
		t.Fatal(err)
	}

	return proxy, path
}

func (p *programs) shoots() []gardencorev1beta1.Shoot {
	p.Helper()

	return harness.Shoots(p.T, p.garden)
}

// waitForShoot waits for a Shoot whose last operation has the given state.
func (p *programs) waitForShoot(state gardencorev1beta1.LastOperationState) {
	p.Helper()
	p.Until("a Shoot whose last operation is "+string(state), func() bool {
		for _, shoot := range p.shoots() {
			if last := shoot.Status.LastOperation; last != nil && last.State == state {
				return true
			}
		}

		return false
	})
}

// Programs that the test kills.
const (
	killBroker      = "broker"
	killProvisioner = "provisioner"
)

func (p *programs) running(victim string) **harness.Program {
	if victim == killBroker {
		return &p.broker
	}

	return &p.provisioner
}

// killAndRestart kills a program with SIGKILL and starts it again.
func (p *programs) killAndRestart(victim string) {
	(*p.running(victim)).Kill()
	p.restart(victim)
}

func (p *programs) restart(victim string) { *p.running(victim) = p.start[victim]() }

// TestKilledPrograms kills the broker and the Provisioner at three points during the creation of an instance. The operation
// must succeed with exactly one Shoot, and the deletion must leave no Shoot.
func TestKilledPrograms(t *testing.T) {
	t.Parallel()

	p := startPrograms(t, sharedGarden(t, "simulated"))

	points := map[string]struct {
		reason string
		kill   func(id, victim string)
	}{
		"before the Shoot": {
			reason: "the broker has accepted the order, but Gardener is unavailable",
			kill: func(id, victim string) {
				p.toGarden.block(true)
				p.Create(id, harness.PlanAWS)

				if victim == killProvisioner {
					p.Until("the order, which the Provisioner cannot accept without Gardener", func() bool {
						found := p.Send(http.MethodGet, "/operations?instance_id="+id, nil, http.StatusOK)
						operations, _ := json.Marshal(found.Body)

						return strings.Contains(string(operations), "Gardener is unavailable")
					})
				}

				if shoots := p.shoots(); len(shoots) != 0 {
					p.Errorf("want no Shoot yet, got %d", len(shoots))
				}

				(*p.running(victim)).Kill()
				p.toGarden.block(false)
				p.restart(victim)
			},
		},
		"during the creation": {
			reason: "Gardener is creating the cluster",
			kill: func(id, victim string) {
				harness.InjectClusterFaults(p.T, p.garden, harness.StuckClusters())
				p.Create(id, harness.PlanAWS)
				p.waitForShoot(gardencorev1beta1.LastOperationStateProcessing)
				p.killAndRestart(victim)
				harness.InjectClusterFaults(p.T, p.garden, nil)
			},
		},
		"before the last save": {
			reason: "the cluster is ready, but the killed program has not recorded it",
			kill: func(id, victim string) {
				harness.InjectClusterFaults(p.T, p.garden, harness.StuckClusters())
				p.Create(id, harness.PlanAWS)
				p.waitForShoot(gardencorev1beta1.LastOperationStateProcessing)
				(*p.running(victim)).Signal(syscall.SIGSTOP)
				harness.InjectClusterFaults(p.T, p.garden, nil)
				p.waitForShoot(gardencorev1beta1.LastOperationStateSucceeded)
				p.killAndRestart(victim)
			},
		},
	}

	for name, point := range points {
		for _, victim := range []string{killBroker, killProvisioner} {
			t.Run(victim+" "+name, func(t *testing.T) {
				id := strings.ReplaceAll(victim+"-"+name, " ", "-")

				point.kill(id, victim)
				p.WantSucceeded(id)

				if shoots := p.shoots(); len(shoots) != 1 {
					t.Errorf("%s: want one Shoot, got %d", point.reason, len(shoots))
				}

				p.Delete(id, harness.PlanAWS)
				p.WantGone(id)

				if shoots := p.shoots(); len(shoots) != 0 {
					t.Errorf("%s: %d Shoots remain", point.reason, len(shoots))
				}
			})
		}
	}
}
