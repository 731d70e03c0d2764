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

// restarted is a Provisioner that starts repeatedly with the same database and garden.
type restarted struct {
	*testing.T

	settings provisioner.Config
	garden   client.WithWatch
	// locked denies the Provisioner access to clusters.
	locked atomic.Bool
	log    *logged
}

// logged records the log of a service.
type logged struct {
	mutex sync.Mutex
	text  bytes.Buffer
}

// Write implements io.Writer.
func (l *logged) Write(line []byte) (int, error) {
	l.mutex.Lock()
	defer l.mutex.Unlock()

	return l.text.Write(line)
}

func (l *logged) String() string {
	l.mutex.Lock()
	defer l.mutex.Unlock()

	return l.text.String()
}

func newRestarted(t *testing.T) *restarted {
	t.Helper()

	memory := harness.StartGarden(t, 200*time.Millisecond)
	r := &restarted{T: t, settings: harness.ProvisionerSettings(harness.SQLite(t, "provisioner")), log: &logged{}}
	r.garden = interceptor.NewClient(memory.Client(), interceptor.Funcs{
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

// with runs a Provisioner with the releases until use returns.
func (r *restarted) with(kyma provisioner.Kyma, use func(c clusters)) {
	r.Helper()

	log, err := logging.New("provisioner", "debug", r.log)
	if err != nil {
		r.Fatal(err)
	}

	r.settings.Kyma = kyma

	url, stop := harness.StartProvisioner(r.T, r.garden, r.settings, log)
	defer stop()

	use(clusters{T: r.T, url: url, garden: r.garden})
}

// TestKymaFromARegistry installs and upgrades with releases of an OCI registry that requires credentials, is unavailable for a while,
// and is not needed for cached releases.
func TestKymaFromARegistry(t *testing.T) {
	t.Parallel()

	releases, r := newRegistry(t), newRestarted(t)
	first, second := filepath.Join(t.TempDir(), "first"), filepath.Join(t.TempDir(), "second")
	monitoring := component("monitoring", "kyma-system", "retention", "2d", "adminPassword", "hush")
	upgrade := func(runtimeID, version string) map[string]any {
		return map[string]any{"id": runtimeID, "config": map[string]any{"kymaConfig": kymaOf(version, monitoring)}}
	}
	now := func(version string) installed {
		return installed{Told: version, Essentials: version, Retention: "2d", Password: "hush"}
	}

	const (
		wrong   = secret.String("battery-staple")
		refused = "the release registry rejects our credentials: an operator must correct them, see APP_KYMA_RELEASES_USERNAME"
		away    = "the release registry does not respond correctly"
	)

	var runtimeID, waiting string

	releases.push("1.0.0")

	r.with(releases.kyma(first, registryPassword), func(c clusters) {
		made := c.order(provisionRuntime, map[string]any{"config": map[string]any{
			"runtimeInput": map[string]any{"name": "mine"}, "kymaConfig": kymaOf("1.0.0", monitoring),
			"clusterConfig": map[string]any{"gardenerConfig": clusterOf("gcp"), "administrators": []string{"jane@example.com"}},
		}})
		runtimeID = made.RuntimeID
		c.wantSucceeded(made.ID)
		c.same("a pushed release is installed", now("1.0.0"), c.installed(runtimeID))

		if got := c.ask(upgradeRuntime, upgrade(runtimeID, "1.1.0"), &operationStatus{}); !strings.Contains(got, `there is no release "1.1.0"; there are 1.0.0`) {
			t.Errorf("upgrading to an unknown release: %q", got)
		}

		releases.push("1.1.0")
		c.wantSucceeded(c.order(upgradeRuntime, upgrade(runtimeID, "1.1.0")).ID)
		c.same("a release pushed later needs no restart", now("1.1.0"), c.installed(runtimeID))
	})

	releases.away.Store(true)

	before := releases.calls.Load()

	r.with(releases.kyma(first, registryPassword), func(c clusters) {
		c.wantSucceeded(c.order(upgradeRuntime, upgrade(runtimeID, "1.0.0")).ID)
		c.same("a cached release needs no registry", now("1.0.0"), c.installed(runtimeID))

		if calls := releases.calls.Load() - before; calls > 0 {
			t.Errorf("the registry got %d requests for a cached release", calls)
		}

		r.locked.Store(true)

		waiting = c.order(upgradeRuntime, upgrade(runtimeID, "1.1.0")).ID
		c.waitForMessage(waiting, "the kubeconfig")
	})

	r.locked.Store(false)
	releases.away.Store(false)

	r.with(releases.kyma(second, wrong), func(c clusters) {
		c.waitForMessage(waiting, "release 1.1.0 cannot be fetched: "+refused)
	})

	releases.away.Store(true)

	r.with(releases.kyma(second, registryPassword), func(c clusters) {
		c.waitForMessage(waiting, "release 1.1.0 cannot be fetched: "+away)
		releases.away.Store(false)
		c.wantSucceeded(waiting)
		c.same("an upgrade continues when the registry is available again", now("1.1.0"), c.installed(runtimeID))
	})

	r.with(releases.kyma(filepath.Join(t.TempDir(), "third"), wrong), func(c clusters) {
		if got := c.ask(upgradeRuntime, upgrade(runtimeID, "1.0.0"), &operationStatus{}); !strings.Contains(got, refused) || strings.Contains(got, string(wrong)) {
			t.Errorf("ordering a release without access to the registry: %q", got)
		}
	})

	for _, hidden := range []string{registryPassword, string(wrong)} {
		if strings.Contains(r.log.String(), hidden) {
			t.Errorf("the log contains the password %q", hidden)
		}
	}
}
