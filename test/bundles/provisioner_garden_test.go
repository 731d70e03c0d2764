//go:build garden

package bundles

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/environment-broker/environment-broker/bundle/api/v1alpha1"
	"github.com/environment-broker/environment-broker/bundle/bundletest"
	"github.com/environment-broker/environment-broker/internal/clients/provisionerclient"
	"github.com/environment-broker/environment-broker/internal/clients/provisionerclient/wire"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakegarden"
	components "github.com/environment-broker/environment-broker/provisioner/installation/bundles"
	"github.com/environment-broker/environment-broker/test/harness"
)

// provisionerSample is the number of points that TestProvisionerKilled tests if SOAK_DURATION is not set.
const provisionerSample = 3

// tenant is the tenant that owns the runtime.
const tenant = "acme"

// TestProvisionerKilled kills the Provisioner with SIGKILL before and after its calls to the hub, including reads, and its
// uploads, while it creates, upgrades and removes a runtime.
func TestProvisionerKilled(t *testing.T) {
	t.Parallel()

	seed := harness.Seed(t)
	points := live(t, "")

	for _, kind := range []string{
		"hub GET secrets received", "hub GET bundledeployments received", "hub POST secrets processed", "hub POST bundledeployments processed",
		"hub PUT bundledeployments received", "hub DELETE bundledeployments processed", "hub DELETE secrets processed", "content PUT received",
		"content PUT processed",
	} {
		if !slices.Contains(points, kind+" #1") {
			t.Errorf("there is no point %s", kind)
		}
	}

	atPoints(t, points, provisionerSample, randomOf(seed, "provisioner"), true, func(t *testing.T, point string) bool { return live(t, point) == nil })
}

// life is a runtime whose components a Provisioner installs through the bundle provisioner of a fixture.
type life struct {
	*fixture

	garden *fakegarden.Memory
	client *provisionerclient.Client
}

// live creates, upgrades and removes a runtime, and kills the Provisioner at the given point. It returns the points of the run, or
// nil if the Provisioner was killed.
func live(t *testing.T, point string) []string {
	t.Helper()

	l := &life{fixture: newFixture(t, 1, true), garden: harness.StartGarden(t, 100*time.Millisecond)}
	gate := newGate()
	provisioner := l.startProvisioner(gate)

	var err error
	if l.client, err = provisionerclient.New(provisionerclient.Options{URL: "http://" + provisioner.address + "/graphql"}); err != nil {
		t.Fatal(err)
	}

	gate.record(point, provisioner.kill)

	input := harness.SmallRuntime("c-one")
	input.KymaConfig = &wire.KymaConfigInput{Version: "1.0.0", Components: []*wire.ComponentConfigurationInput{
		{Component: "eventing", Namespace: "kyma-system"}, {Component: "compass-runtime-agent", Namespace: "compass-system"},
	}}

	runtime := l.order("create", func(caller provisionerclient.Caller) (provisionerclient.Operation, error) {
		return l.client.ProvisionRuntime(l.Context(), caller, input)
	}).RuntimeID
	l.want(runtime, "1.0.0", "cluster-essentials", "compass-runtime-agent", "eventing")

	changed := environment.Instance{RuntimeID: runtime}
	changed.Request.Cluster.Kyma = &environment.Kyma{Installation: &environment.KymaInstallation{Version: "1.1.0", Components: []environment.KymaComponent{
		{Name: "serverless", Namespace: "kyma-system"}, {Name: "compass-runtime-agent", Namespace: "compass-system"},
	}}}

	l.order("upgrade", func(caller provisionerclient.Caller) (provisionerclient.Operation, error) {
		return l.client.UpgradeKyma(l.Context(), caller, changed)
	})
	l.want(runtime, "1.1.0", "cluster-essentials", "compass-runtime-agent", "serverless")

	l.order("remove", func(caller provisionerclient.Caller) (provisionerclient.Operation, error) {
		id, err := l.client.DeprovisionRuntime(l.Context(), caller, runtime)

		return provisionerclient.Operation{ID: id}, err
	})
	bundletest.Eventually(l, func() string { return l.onHub(nil, 0) })

	if shoots := harness.Shoots(t, l.garden); len(shoots) > 0 {
		t.Errorf("%d Shoots remain", len(shoots))
	}

	points := gate.found()

	select {
	case <-gate.struck:
		return nil
	default:
		return points
	}
}

// startProvisioner starts a Provisioner with the roles in resources/rbac. Its calls to the hub and its uploads are points of the
// gate.
func (l *life) startProvisioner(gate *gate) *replica {
	l.Helper()

	server := gate.cluster(l, "hub", hub, func() {})
	uploads := gate.content(l, l.server)
	token := bundletest.Token(l, hub.config, l.name, "installer", "bundle-installer", "bundle-installer-namespace")

	return newReplica(l.fixture, harness.Build(l, "provisioner"), append(harness.DatabaseVariables(harness.SQLite(l, "provisioner")),
		"APP_GARDENER_PROJECT="+fakegarden.DefaultProject, "APP_GARDENER_KUBECONFIG_PATH="+harness.ServeGarden(l, l.garden), "APP_SHUTDOWN_DELAY=0s",
		"APP_LEASE_DURATION=2s", "APP_KYMA_RELEASES_PATH="+filepath.Join(harness.Root, "resources", "releases"),
		"APP_KYMA_BUNDLES_KUBECONFIG_PATH="+l.file("hub", l.kubeconfigOf(server, token)), "APP_KYMA_BUNDLES_NAMESPACE="+l.name,
		"APP_KYMA_BUNDLES_CLASS="+l.class(), "APP_KYMA_BUNDLES_CONTENT_ADDRESS="+uploads.URL, "APP_KYMA_BUNDLES_CA_FILE="+l.file("content.crt", authority(uploads)),
	)...)
}

// order repeats an order until the Provisioner has accepted it, and waits until the operation has succeeded.
func (l *life) order(name string, send func(provisionerclient.Caller) (provisionerclient.Operation, error)) (accepted provisionerclient.Operation) {
	l.Helper()

	bundletest.Eventually(l, func() string {
		var err error
		if accepted, err = send(provisionerclient.Caller{Tenant: tenant, IdempotencyKey: name}); err != nil {
			return name + ": " + err.Error()
		}

		return ""
	})

	bundletest.Eventually(l, func() string {
		now, err := l.client.OperationStatus(l.Context(), tenant, accepted.ID)

		switch {
		case err != nil:
			return name + ": " + err.Error()
		case now.State == provisionerclient.StateFailed:
			l.Fatalf("%s: %+v", name, now)
		case now.State != provisionerclient.StateSucceeded:
			return fmt.Sprintf("%s: %+v", name, now)
		}

		return ""
	})

	return accepted
}

// want waits until the runtime and the hub have exactly the named components of the given release.
func (l *life) want(runtime, release string, names ...string) {
	l.Helper()

	kubeconfig, err := l.client.Kubeconfig(l.Context(), tenant, runtime)
	if err != nil {
		l.Fatal(err)
	}

	core := harness.RuntimeClient(l, []byte(kubeconfig.Reveal())).CoreV1()

	bundletest.Eventually(l, func() string {
		found, err := core.ConfigMaps(metav1.NamespaceAll).List(l.Context(), metav1.ListOptions{})
		if err != nil {
			return err.Error()
		}

		var got []string

		for _, one := range found.Items {
			if version, own := one.Data["release"]; own {
				got = append(got, one.Name+" "+version)
			}
		}

		want := make([]string, 0, len(names))
		for _, name := range names {
			want = append(want, name+" "+release)
		}

		if slices.Sort(got); !slices.Equal(got, want) {
			return fmt.Sprintf("the runtime has %s, want %s", got, want)
		}

		return l.onHub(names, 1)
	})

	if shoots := harness.Shoots(l, l.garden); len(shoots) != 1 {
		l.Errorf("%d Shoots", len(shoots))
	}
}

// onHub returns "" if the hub has one BundleDeployment with one unpacked Bundle for each component, and the given number of
// kubeconfigs. Otherwise, it returns the problem.
func (l *life) onHub(names []string, kubeconfigs int) string {
	l.Helper()

	deployments, bundles, secrets := &v1alpha1.BundleDeploymentList{}, &v1alpha1.BundleList{}, &corev1.SecretList{}
	for list, options := range map[client.ObjectList][]client.ListOption{
		deployments: nil, bundles: nil, secrets: {client.InNamespace(l.name), client.HasLabels{components.LabelRuntime}},
	} {
		if err := l.hub.List(l.Context(), list, options...); err != nil {
			return err.Error()
		}
	}

	// The hub also contains objects of other tests, which have other classes.
	active := map[string]string{}

	for _, deployment := range deployments.Items {
		if deployment.Spec.ProvisionerClassName == l.class() && deployment.Labels[components.LabelComponent] != "" {
			active[deployment.Labels[components.LabelComponent]] = deployment.Status.ActiveBundle
		}
	}

	var unpacked []string

	for _, bundle := range bundles.Items {
		if bundle.Spec.ProvisionerClassName == l.class() {
			unpacked = append(unpacked, fmt.Sprintf("%s %s", bundle.Name, bundle.Status.Phase))
		}
	}

	want := []string{}
	for _, name := range active {
		want = append(want, name+" "+string(v1alpha1.PhaseUnpacked))
	}

	slices.Sort(unpacked)
	slices.Sort(want)

	if got := slices.Sorted(maps.Keys(active)); !slices.Equal(got, names) || !slices.Equal(unpacked, want) || len(secrets.Items) != kubeconfigs {
		return fmt.Sprintf("the hub has BundleDeployments of %s with the Bundles %s, want %s; Bundles %s; %d kubeconfigs, want %d",
			got, want, names, unpacked, len(secrets.Items), kubeconfigs)
	}

	return ""
}
