package e2e

import (
	"bytes"
	"context"
	"errors"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/internal/secret"
	provisioner "github.com/environment-broker/environment-broker/provisioner/service"
	"github.com/environment-broker/environment-broker/test/harness"
)

// restartEnv starts a Provisioner several times with the same database and garden.
type restartEnv struct {
	*testing.T

	settings provisioner.Config
	garden   project
	// locked prevents the garden from issuing kubeconfigs, so the Provisioner cannot reach any cluster.
	locked atomic.Bool
	log    *logBuffer
}

type logBuffer struct {
	mutex sync.Mutex
	text  bytes.Buffer
}

// Write implements io.Writer.
func (l *logBuffer) Write(line []byte) (int, error) {
	l.mutex.Lock()
	defer l.mutex.Unlock()

	return l.text.Write(line)
}

func (l *logBuffer) String() string {
	l.mutex.Lock()
	defer l.mutex.Unlock()

	return l.text.String()
}

func newRestartEnv(t *testing.T) *restartEnv {
	t.Helper()

	memory := harness.StartGarden(t, 200*time.Millisecond)
	r := &restartEnv{T: t, settings: harness.ProvisionerSettings(harness.SQLite(t, "provisioner")), log: &logBuffer{}}
	r.garden = projectOf(memory)
	r.garden.WithWatch = interceptor.NewClient(memory.Client(), interceptor.Funcs{
		SubResourceCreate: func(ctx context.Context, c client.Client, name string, object, sub client.Object,
			options ...client.SubResourceCreateOption,
		) error {
			if r.locked.Load() {
				return errors.New("kubeconfigs are unavailable")
			}

			return c.SubResource(name).Create(ctx, object, sub, options...)
		},
	})

	return r
}

// run runs a Provisioner with the Kyma settings until the function use returns.
func (r *restartEnv) run(kyma provisioner.Kyma, use func(c clusters)) {
	r.Helper()

	log, err := logging.New("provisioner", logging.Config{Level: "debug", Format: logging.FormatJSON}, r.log)
	if err != nil {
		r.Fatal(err)
	}

	r.settings.Kyma = kyma

	url, stop := harness.StartProvisioner(r.T, r.garden, r.settings, log)
	defer stop()

	use(clusters{T: r.T, url: url, garden: r.garden})
}

// TestKymaFromARegistry installs and upgrades Kyma with releases from an OCI registry that requires credentials. Cached
// releases must not need the registry. Upgrades to other releases must wait while the registry is unavailable or rejects the
// credentials.
func TestKymaFromARegistry(t *testing.T) {
	t.Parallel()

	releases, r := newRegistry(t), newRestartEnv(t)
	firstCache, secondCache := filepath.Join(t.TempDir(), "first"), filepath.Join(t.TempDir(), "second")
	monitoring := component("monitoring", "kyma-system", "retention", "2d", "adminPassword", "hush")
	upgrade := func(runtimeID, version string) map[string]any {
		return map[string]any{"id": runtimeID, "config": map[string]any{"kymaConfig": kymaOf(version, monitoring)}}
	}
	want := func(version string) installed {
		return installed{Reported: version, Essentials: version, Retention: "2d", Password: "hush"}
	}

	const (
		wrongPassword       = secret.String("battery-staple")
		credentialsRejected = "the release registry rejected the credentials. An operator must correct APP_KYMA_RELEASES_USERNAME"
		registryUnavailable = "the release registry does not respond correctly"
	)

	var runtimeID, waiting string

	releases.push("1.0.0")

	r.run(releases.kyma(firstCache, registryPassword), func(c clusters) {
		created := c.mustSend(provisionRuntime, map[string]any{"config": map[string]any{
			"runtimeInput": map[string]any{"name": "mine"}, "kymaConfig": kymaOf("1.0.0", monitoring),
			"clusterConfig": map[string]any{"gardenerConfig": clusterOf("gcp"), "administrators": []string{"jane@example.com"}},
		}})
		runtimeID = created.RuntimeID
		c.wantSucceeded(created.ID)
		c.wantInstalled("a pushed release is installed", want("1.0.0"), c.installed(runtimeID))

		if got := c.send(upgradeRuntime, upgrade(runtimeID, "1.1.0"), &operationStatus{}); !strings.Contains(got, `there is no release "1.1.0"; the releases are 1.0.0`) {
			t.Errorf("upgrading to an unknown release: %q", got)
		}

		releases.push("1.1.0")
		c.wantSucceeded(c.mustSend(upgradeRuntime, upgrade(runtimeID, "1.1.0")).ID)
		c.wantInstalled("a new release needs no restart", want("1.1.0"), c.installed(runtimeID))
	})

	releases.unavailable.Store(true)

	callsBefore := releases.calls.Load()

	r.run(releases.kyma(firstCache, registryPassword), func(c clusters) {
		c.wantSucceeded(c.mustSend(upgradeRuntime, upgrade(runtimeID, "1.0.0")).ID)
		c.wantInstalled("a cached release needs no registry", want("1.0.0"), c.installed(runtimeID))

		if calls := releases.calls.Load() - callsBefore; calls > 0 {
			t.Errorf("the registry got %d requests for a cached release", calls)
		}

		r.locked.Store(true)

		waiting = c.mustSend(upgradeRuntime, upgrade(runtimeID, "1.1.0")).ID
		c.waitForMessage(waiting, "the kubeconfig")
	})

	r.locked.Store(false)
	releases.unavailable.Store(false)

	r.run(releases.kyma(secondCache, wrongPassword), func(c clusters) {
		c.waitForMessage(waiting, "release 1.1.0 cannot be fetched: "+credentialsRejected)
	})

	releases.unavailable.Store(true)

	r.run(releases.kyma(secondCache, registryPassword), func(c clusters) {
		c.waitForMessage(waiting, "release 1.1.0 cannot be fetched: "+registryUnavailable)
		releases.unavailable.Store(false)
		c.wantSucceeded(waiting)
		c.wantInstalled("an upgrade continues when the registry is available again", want("1.1.0"), c.installed(runtimeID))
	})

	r.run(releases.kyma(filepath.Join(t.TempDir(), "third"), wrongPassword), func(c clusters) {
		if got := c.send(upgradeRuntime, upgrade(runtimeID, "1.0.0"), &operationStatus{}); !strings.Contains(got, credentialsRejected) || strings.Contains(got, string(wrongPassword)) {
			t.Errorf("ordering a release without access to the registry: %q", got)
		}
	})

	for _, hidden := range []string{registryPassword, string(wrongPassword)} {
		if strings.Contains(r.log.String(), hidden) {
			t.Errorf("the log contains the password %q", hidden)
		}
	}
}
