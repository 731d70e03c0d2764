package service_test

import (
	"context"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/sirupsen/logrus"

	"github.com/environment-broker/environment-broker/internal/clients/provisionerclient"
	"github.com/environment-broker/environment-broker/internal/clients/provisionerclient/wire"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakegarden"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakegarden/gardenlet"
	"github.com/environment-broker/environment-broker/internal/secret"
	"github.com/environment-broker/environment-broker/provisioner/service"
	"github.com/environment-broker/environment-broker/provisioner/shoot"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/auditlog"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	tenant = "tenant-1"
	// patience limits each wait of a test.
	patience = 3 * time.Minute
)

// fixture is a running Provisioner with a fake garden. The tests call its API over HTTP.
type fixture struct {
	*testing.T

	client *provisionerclient.Client
	url    string
	garden *fakegarden.Memory
	config service.Config
	// metrics gathers the metrics of the Provisioner.
	metrics prometheus.Gatherer
	// stop stops the Provisioner.
	stop func()
}

// start starts a Provisioner with SQLite and a fake garden, which takes the given time to create a cluster.
func start(t *testing.T, creation time.Duration, change ...func(*service.Config)) fixture {
	t.Helper()

	return startLogged(t, logging.Discard(), creation, change...)
}

func startLogged(t *testing.T, log logrus.FieldLogger, creation time.Duration, change ...func(*service.Config)) fixture {
	t.Helper()

	memory, err := fakegarden.Open(t.Context(), fakegarden.Options{
		Dir: filepath.Join(t.TempDir(), "garden"), ClusterCreation: creation, Log: logging.Discard(),
	})
	if err != nil {
		t.Fatal(err)
	}

	config := service.DefaultConfig()
	config.Address, config.StatusAddress = "127.0.0.1:0", "127.0.0.1:0"
	config.ShutdownDelay = 0
	config.Database.Driver, config.Database.Path = storage.DriverSQLite, filepath.Join(t.TempDir(), "provisioner.db")
	config.Database.SecretKeys = secret.NewKey("test")
	config.Gardener.Project = fakegarden.DefaultProject

	for _, each := range change {
		each(&config)
	}

	provisioner, err := service.New(t.Context(), config, memory.Client(), log)
	if err != nil {
		t.Fatal(err)
	}

	run(t, memory.Run)
	stop := run(t, provisioner.Run)

	url := "http://" + provisioner.Address() + "/graphql"

	client, err := provisionerclient.New(provisionerclient.Options{URL: url})
	if err != nil {
		t.Fatal(err)
	}

	return fixture{T: t, client: client, url: url, garden: memory, config: config, metrics: provisioner.Metrics(), stop: stop}
}

// run runs the part until the end of the test, or until the returned function is called.
func run(t *testing.T, part func(context.Context) error) (stop func()) {
	t.Helper()

	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)

	go func() { done <- part(ctx) }()

	stop = sync.OnceFunc(func() {
		cancel()

		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)

	return stop
}

func order(name string) *wire.ProvisionRuntimeInput {
	purpose, disk, size := "evaluation", "gp3", 50

	return &wire.ProvisionRuntimeInput{
		RuntimeInput: &wire.RuntimeInput{Name: name},
		ClusterConfig: &wire.ClusterConfigInput{GardenerConfig: &wire.GardenerConfigInput{
			Name: name, KubernetesVersion: "1.35.4", Provider: "aws", TargetSecret: "aws", Region: "eu-central-1",
			MachineType: "m6i.large", DiskType: &disk, VolumeSizeGB: &size, WorkerCidr: "10.250.0.0/16",
			AutoScalerMin: 1, AutoScalerMax: 3, MaxSurge: 1, Purpose: &purpose,
			ProviderSpecificConfig: &wire.ProviderSpecificInput{AwsConfig: &wire.AWSProviderConfigInput{
				VpcCidr: "10.250.0.0/16",
				AwsZones: []*wire.AWSZoneInput{{
					Name: "eu-central-1a", WorkerCidr: "10.250.0.0/19", PublicCidr: "10.250.32.0/20", InternalCidr: "10.250.48.0/20",
				}},
			}},
		}},
	}
}

func (f fixture) provision(key, name string) provisionerclient.Operation {
	f.Helper()

	operation, err := f.client.ProvisionRuntime(f.Context(), provisionerclient.Caller{Tenant: tenant, IdempotencyKey: key}, order(name))
	if err != nil {
		f.Fatal(err)
	}

	return operation
}

func (f fixture) deprovision(runtimeID string) string {
	f.Helper()

	id, err := f.client.DeprovisionRuntime(f.Context(), provisionerclient.Caller{Tenant: tenant}, runtimeID)
	if err != nil {
		f.Fatal(err)
	}

	return id
}

// await follows the change feed until the operation has ended, and returns the operation's status.
func (f fixture) await(operationID string) provisionerclient.Operation {
	f.Helper()

	ctx, cancel := context.WithTimeout(f.Context(), patience)
	defer cancel()

	feed, err := f.client.Changes(ctx, "", 0)

	for err == nil {
		var status provisionerclient.Operation

		status, err = f.client.OperationStatus(ctx, tenant, operationID)
		if err == nil && (status.State == provisionerclient.StateSucceeded || status.State == provisionerclient.StateFailed) {
			return status
		}

		feed, err = f.client.Changes(ctx, feed.Cursor, 5*time.Second)
	}

	f.Fatalf("operation %s does not end: %v", operationID, err)

	return provisionerclient.Operation{}
}

func (f fixture) succeeded(operationID string) {
	f.Helper()

	if status := f.await(operationID); status.State != provisionerclient.StateSucceeded {
		f.Fatalf("operation %s ended in state %s: %+v", operationID, status.State, status.LastError)
	}
}

func (f fixture) shoot(name string) (*gardencorev1beta1.Shoot, bool) {
	f.Helper()

	shoot := &gardencorev1beta1.Shoot{}
	err := f.garden.Client().Get(f.Context(), client.ObjectKey{Namespace: f.garden.Namespace(), Name: name}, shoot)

	if err != nil && !apierrors.IsNotFound(err) {
		f.Fatal(err)
	}

	return shoot, err == nil
}

func TestRuntimeFromOrderToRemoval(t *testing.T) {
	f := start(t, 200*time.Millisecond)

	ordered := f.provision("key-1", "c-first")
	if ordered.Type != provisionerclient.Type(wire.OperationTypeProvisionnoinstall) || ordered.RuntimeID == "" {
		t.Fatalf("ordered: %+v", ordered)
	}

	if again := f.provision("key-1", "c-first"); again.ID != ordered.ID || again.RuntimeID != ordered.RuntimeID {
		t.Errorf("the same key returned operation %s of runtime %s, want %s of %s", again.ID, again.RuntimeID, ordered.ID, ordered.RuntimeID)
	}

	f.succeeded(ordered.ID)

	shoot, exists := f.shoot("c-first")
	if !exists || shoot.Labels["account"] != tenant || shoot.Annotations["kcp.provisioner.kyma-project.io/runtime-id"] != ordered.RuntimeID {
		t.Errorf("the Shoot has labels %v and annotations %v", shoot.Labels, shoot.Annotations)
	}

	kubeconfig, err := f.client.Kubeconfig(t.Context(), tenant, ordered.RuntimeID)
	if err != nil || !strings.Contains(kubeconfig.Reveal(), "client-certificate-data") {
		t.Errorf("kubeconfig: %d characters, %v", len(kubeconfig.Reveal()), err)
	}

	_, err = f.client.ProvisionRuntime(t.Context(), provisionerclient.Caller{Tenant: "another-tenant"}, order("c-first"))
	if failure.KindOf(err) != failure.Permanent || failure.Of(err).Reason != failure.ReasonAlreadyExists {
		t.Errorf("another tenant's order of the name: got %v", err)
	}

	removal := f.deprovision(ordered.RuntimeID)
	if again := f.deprovision(ordered.RuntimeID); again != removal {
		t.Errorf("the second removal is operation %s, want the running one %s", again, removal)
	}

	f.succeeded(removal)

	if _, exists := f.shoot("c-first"); exists {
		t.Error("the Shoot still exists")
	}

	f.succeeded(f.provision("key-3", "c-first").ID) // the name is free again
}

func TestRemovalCancelsARunningCreation(t *testing.T) {
	f := start(t, 200*time.Millisecond)
	f.injectFault(gardenlet.FaultStuck)

	ordered := f.provision("", "c-stuck")
	removal := f.deprovision(ordered.RuntimeID)

	if status := f.await(ordered.ID); status.State != provisionerclient.StateFailed || status.LastError.Reason != "canceled" {
		t.Errorf("the creation ended in state %s: %+v", status.State, status.LastError)
	}

	f.succeeded(removal)

	if _, exists := f.shoot("c-stuck"); exists {
		t.Error("the Shoot still exists")
	}
}

func TestCreationCanceledWhilePendingIsCounted(t *testing.T) {
	f := start(t, 0, func(config *service.Config) { config.Engine.Workers = 0 })
	f.deprovision(f.provision("", "c-unwanted").RuntimeID)

	const ended = "environment_broker_engine_operations_ended_total"

	if err := testutil.GatherAndCompare(f.metrics, strings.NewReader(`
# HELP `+ended+` Operations that ended, by kind and state: succeeded, failed, canceled.
# TYPE `+ended+` counter
`+ended+`{kind="ProvisionNoInstall",state="canceled"} 1
`), ended); err != nil {
		t.Error(err)
	}
}

// TestOrphanedShootIsRemovedAtTheStart creates a Shoot and a ConfigMap of a deleted runtime, as a frozen replica might. A
// starting Provisioner must delete both.
func TestOrphanedShootIsRemovedAtTheStart(t *testing.T) {
	f := start(t, 100*time.Millisecond)

	ordered := f.provision("", "c-late")
	f.succeeded(ordered.ID)

	late, _ := f.shoot("c-late")
	f.succeeded(f.deprovision(ordered.RuntimeID))

	late.ObjectMeta = metav1.ObjectMeta{Name: late.Name, Namespace: late.Namespace, Annotations: late.Annotations}
	delete(late.Annotations, "confirmation.gardener.cloud/deletion")
	late.Status = gardencorev1beta1.ShootStatus{}

	if err := f.garden.Client().Create(t.Context(), late); err != nil {
		t.Fatal(err)
	}

	lateConfigMap := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Name: "c-late.oidc-0123456789", Namespace: late.Namespace, Labels: map[string]string{shoot.LabelRuntimeID: ordered.RuntimeID},
	}}
	if err := f.garden.Client().Create(t.Context(), lateConfigMap); err != nil {
		t.Fatal(err)
	}

	f.stop() // a SQLite file has one replica

	another, err := service.New(t.Context(), f.config, f.garden.Client(), logging.Discard())
	if err != nil {
		t.Fatal(err)
	}

	run(t, another.Run)

	poll := time.NewTicker(20 * time.Millisecond)
	defer poll.Stop()

	for deadline := time.Now().Add(patience); ; <-poll.C {
		_, exists := f.shoot("c-late")
		configMapErr := f.garden.Client().Get(t.Context(), client.ObjectKeyFromObject(lateConfigMap), &corev1.ConfigMap{})

		if !exists && apierrors.IsNotFound(configMapErr) {
			return
		}

		if time.Now().After(deadline) {
			t.Fatalf("the Shoot exists: %t; its other objects: %v", exists, configMapErr)
		}
	}
}

// injectFault makes the gardenlet of the fake garden fail.
func (f fixture) injectFault(fault gardenlet.Fault) {
	f.Helper()

	faults := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.garden.Namespace(), Name: gardenlet.FaultsConfigMap},
		Data:       map[string]string{gardenlet.FaultDefault: string(fault)},
	}
	if err := f.garden.Client().Create(f.Context(), faults); err != nil {
		f.Fatal(err)
	}
}

func TestFaultsOfGardener(t *testing.T) {
	cases := map[string]struct {
		reason     string
		fault      gardenlet.Fault
		wantState  provisionerclient.State
		wantReason string
	}{
		"quota": {
			reason: "an error that only an operator can fix fails the operation immediately, with Gardener's code",
			fault:  gardenlet.FaultQuota, wantState: provisionerclient.StateFailed, wantReason: "ERR_INFRA_QUOTA_EXCEEDED",
		},
		"rate limit": {
			reason: "a rate limit is temporary",
			fault:  gardenlet.FaultRateLimit, wantState: provisionerclient.StateSucceeded,
		},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			f := start(t, 200*time.Millisecond)

			f.injectFault(c.fault)

			status := f.await(f.provision("", "c-faulty").ID)
			if status.State != c.wantState || status.LastError.Reason != c.wantReason {
				t.Errorf("%s: ended in state %s, %+v", c.reason, status.State, status.LastError)
			}
		})
	}
}

func TestRuntimesOfOtherTenantsAreNotFound(t *testing.T) {
	f := start(t, 100*time.Millisecond)
	ordered := f.provision("", "c-mine")

	calls := map[string]func() error{
		"operation status": func() error {
			_, err := f.client.OperationStatus(t.Context(), "another-tenant", ordered.ID)

			return err
		},
		"runtime status": func() error {
			_, err := f.client.RuntimeStatus(t.Context(), "another-tenant", ordered.RuntimeID)

			return err
		},
		"removal": func() error {
			_, err := f.client.DeprovisionRuntime(t.Context(), provisionerclient.Caller{Tenant: "another-tenant"}, ordered.RuntimeID)

			return err
		},
	}

	for name, call := range calls {
		if err := call(); !failure.Is(err, failure.NotFound) {
			t.Errorf("%s of another tenant: got %v, want not found", name, err)
		}
	}

	f.succeeded(ordered.ID)
}

func TestRefusedConfiguration(t *testing.T) {
	credentials := credentialsFile(t, "http://127.0.0.1/token")
	cases := map[string]struct {
		reason string
		change func(*service.Config)
		want   string
	}{
		"no key":  {"secrets are never stored in plaintext", func(c *service.Config) { c.Database.SecretKeys = "" }, "openssl rand"},
		"exposed": {"an exposed API requires authentication", func(c *service.Config) { c.Address = "0.0.0.0:0" }, "APP_AUTH_BASIC_USERS"},
		"workers": {"the number of workers must not be negative", func(c *service.Config) { c.Engine.Workers = -1 }, "APP_WORKERS"},
		"director": {"Director needs a URL", func(c *service.Config) {
			c.Director.Enabled, c.Director.OAuthPath, c.Director.URL = true, credentials, "director"
		}, "APP_DIRECTOR_URL"},
		"credentials": {"Director needs credentials", func(c *service.Config) {
			c.Director.Enabled, c.Director.OAuthPath = true, "/nowhere"
		}, "APP_DIRECTOR_OAUTH_PATH"},
		"authorities": {"a file of authorities must contain one", func(c *service.Config) {
			c.Director.Enabled, c.Director.OAuthPath, c.Director.CAFile = true, credentials, credentials
		}, "APP_DIRECTOR_CA_FILE"},
		"unchecked": {"skipping verification contradicts a file of authorities", func(c *service.Config) {
			c.Director.CAFile, c.OAuth.SkipDirectorCertVerification = credentials, true
		}, "set only one of them"},
		"director time":  {"a call needs time", func(c *service.Config) { c.Director.Timeout = 0 }, "APP_DIRECTOR_TIMEOUT"},
		"director calls": {"the limit of calls must be positive", func(c *service.Config) { c.Director.Calls = 0 }, "APP_DIRECTOR_CALLS"},
		"no poll": {
			"a wait must be positive: without it an existing cluster would be recorded as deleted",
			func(c *service.Config) { c.Gardener.PollInterval = 0 }, "APP_GARDENER_POLL_INTERVAL",
		},
		"no time": {
			"every operation would fail, long after startup",
			func(c *service.Config) { c.ProvisioningTimeout.ClusterCreation = 0 }, "APP_PROVISIONING_TIMEOUT_CLUSTER_CREATION",
		},
		"no time to delete": {
			"the same", func(c *service.Config) { c.DeprovisioningTimeout.WaitingForClusterDeletion = -1 },
			"APP_DEPROVISIONING_TIMEOUT_WAITING_FOR_CLUSTER_DELETION",
		},
		"no time to hibernate": {
			"the same", func(c *service.Config) { c.HibernationTimeout.WaitingForClusterHibernation = 0 },
			"APP_HIBERNATION_TIMEOUT_WAITING_FOR_CLUSTER_HIBERNATION",
		},
		"short access": {"Gardener would reject a short validity at the first use", func(c *service.Config) { c.Gardener.KubeconfigValidity = time.Minute }, "10m"},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			config := service.DefaultConfig()
			config.Address, config.StatusAddress = "127.0.0.1:0", "127.0.0.1:0"
			config.Database.Driver, config.Database.Path = storage.DriverSQLite, filepath.Join(t.TempDir(), "p.db")
			config.Database.SecretKeys = secret.NewKey("test")
			c.change(&config)

			memory, err := fakegarden.Open(t.Context(), fakegarden.Options{Dir: t.TempDir(), Log: logging.Discard()})
			if err != nil {
				t.Fatal(err)
			}

			_, err = service.New(t.Context(), config, memory.Client(), logging.Discard())
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: got %v, want an error with %q", c.reason, err, c.want)
			}
		})
	}
}

// TestStuckClusterReportsGardenersMessage checks that the status contains Gardener's message while Gardener has not finished a
// cluster.
func TestStuckClusterReportsGardenersMessage(t *testing.T) {
	f := start(t, 200*time.Millisecond)
	f.injectFault(gardenlet.FaultStuck)

	ordered := f.provision("", "c-stuck")

	poll := time.NewTicker(20 * time.Millisecond)
	defer poll.Stop()

	for deadline := time.Now().Add(patience); ; <-poll.C {
		status, err := f.client.OperationStatus(t.Context(), tenant, ordered.ID)
		if err != nil {
			t.Fatal(err)
		}

		if strings.Contains(status.Message, "Stage WaitingForClusterCreation: Gardener is at ") {
			return
		}

		if time.Now().After(deadline) {
			t.Fatalf("the message is %q", status.Message)
		}
	}
}

// TestRefusedClientsAreAudited sends a request without credentials, and a request from a user without permissions. The audit
// log must contain both.
func TestRefusedClientsAreAudited(t *testing.T) {
	memory, err := fakegarden.Open(t.Context(), fakegarden.Options{Dir: t.TempDir(), Log: logging.Discard()})
	if err != nil {
		t.Fatal(err)
	}

	config := service.DefaultConfig()
	config.Address, config.StatusAddress, config.ShutdownDelay = "127.0.0.1:0", "127.0.0.1:0", 0
	config.Database.Driver, config.Database.Path = storage.DriverSQLite, filepath.Join(t.TempDir(), "provisioner.db")
	config.Database.SecretKeys = secret.NewKey("test")
	config.AuthBasicUsers = "viewer-1:secret:viewer"

	provisioner, err := service.New(t.Context(), config, memory.Client(), logging.Discard())
	if err != nil {
		t.Fatal(err)
	}

	run(t, provisioner.Run)

	for user, want := range map[string]int{"": http.StatusUnauthorized, "viewer-1": http.StatusForbidden} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+provisioner.Address()+"/graphql",
			strings.NewReader(`{"query":"mutation { deprovisionRuntime(id: \"r1\") }"}`))
		if err != nil {
			t.Fatal(err)
		}

		if user != "" {
			request.SetBasicAuth(user, "secret")
		}

		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}

		response.Body.Close()

		if response.StatusCode != want {
			t.Errorf("user %q: got status %d, want %d", user, response.StatusCode, want)
		}
	}

	entries, err := auditlog.Open(t.Context(), provisioner.DB, 0)
	if err != nil {
		t.Fatal(err)
	}

	found, err := entries.List(t.Context(), auditlog.Filter{Limit: 10})
	if err != nil {
		t.Fatal(err)
	}

	got := map[string]int{}

	for _, entry := range found {
		if entry.Action == auditlog.ActionAccess {
			got[entry.By.User] = entry.Status
		}
	}

	if diff := cmp.Diff(map[string]int{"": http.StatusUnauthorized, "viewer-1": http.StatusForbidden}, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}
