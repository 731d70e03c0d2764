package accountpool_test

import (
	"errors"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	securityv1alpha1 "github.com/gardener/gardener/pkg/apis/security/v1alpha1"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/environment-broker/environment-broker/internal/clients/gardenclient"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/environment/accountpool"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakegarden"
	"github.com/environment-broker/environment-broker/internal/sandbox/postgrestest"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/accounts"
	"github.com/environment-broker/environment-broker/storage/instances"
	"github.com/environment-broker/environment-broker/storage/operations"
	"github.com/environment-broker/environment-broker/storage/storagetest"
)

func TestMain(m *testing.M) { postgrestest.Main(m) }

// fixture is a pool on a database and a fake garden that is reached over HTTP.
type fixture struct {
	*testing.T

	pool      accountpool.Pool
	db        *storage.DB
	instances *instances.Store
	garden    client.Client
	namespace string
}

// each runs the test on both databases.
func each(t *testing.T, test func(f *fixture)) {
	t.Helper()

	storagetest.EachDatabase(t, func(t *testing.T, db *storage.DB) {
		t.Helper()
		test(newFixture(t, db))
	})
}

// openStores opens the stores, which creates their tables.
func openStores(t *testing.T, db *storage.DB) (*accounts.Store, *instances.Store) {
	t.Helper()

	keys := storagetest.Keys(t)

	if _, err := operations.Open(t.Context(), db, keys); err != nil {
		t.Fatal(err)
	}

	rows, err := instances.Open(t.Context(), db, keys)
	if err != nil {
		t.Fatal(err)
	}

	claims, err := accounts.Open(t.Context(), db, clock.RealClock{})
	if err != nil {
		t.Fatal(err)
	}

	return claims, rows
}

func newFixture(t *testing.T, db *storage.DB) *fixture {
	t.Helper()

	claims, rows := openStores(t, db)

	memory, err := fakegarden.Open(t.Context(), fakegarden.Options{Dir: storagetest.VolatileDir(t), Log: logging.Discard()})
	if err != nil {
		t.Fatal(err)
	}

	server := httptest.NewServer(memory.Handler())
	t.Cleanup(server.Close)

	garden, err := gardenclient.New(&rest.Config{Host: server.URL}, gardenclient.Options{
		Namespace: memory.Namespace(), Kind: gardenclient.CredentialsBinding,
	})
	if err != nil {
		t.Fatal(err)
	}

	return &fixture{
		T: t, pool: accountpool.Pool{Garden: garden, Claims: claims}, db: db, instances: rows,
		garden: memory.Client(), namespace: memory.Namespace(),
	}
}

// add creates an account with the given labels, each with the value true.
func (f *fixture) add(name, accountType string, labels ...string) {
	f.Helper()

	binding := &securityv1alpha1.CredentialsBinding{
		ObjectMeta:     metav1.ObjectMeta{Name: name, Namespace: f.namespace, Labels: map[string]string{gardenclient.LabelType: accountType}},
		Provider:       securityv1alpha1.CredentialsBindingProvider{Type: "aws"},
		CredentialsRef: corev1.ObjectReference{APIVersion: "v1", Kind: "Secret", Name: "aws", Namespace: f.namespace},
	}

	for _, label := range labels {
		binding.Labels[label] = "true"
	}

	if err := f.garden.Create(f.Context(), binding); err != nil {
		f.Fatal(err)
	}
}

// binding returns the account as it is stored in the garden.
func (f *fixture) binding(name string) *securityv1alpha1.CredentialsBinding {
	f.Helper()

	found := &securityv1alpha1.CredentialsBinding{}
	if err := f.garden.Get(f.Context(), client.ObjectKey{Namespace: f.namespace, Name: name}, found); err != nil {
		f.Fatal(err)
	}

	return found
}

// label sets a label of an account, or removes it if the value is empty.
func (f *fixture) label(name, label, value string) {
	f.Helper()

	found := f.binding(name)
	if found.Labels[label] = value; value == "" {
		delete(found.Labels, label)
	}

	if err := f.garden.Update(f.Context(), found); err != nil {
		f.Fatal(err)
	}
}

// addShoot creates a Shoot that uses the account.
func (f *fixture) addShoot(name, account string) {
	f.Helper()

	shoot := &gardencorev1beta1.Shoot{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: f.namespace, Annotations: map[string]string{"confirmation.gardener.cloud/deletion": "true"}},
		Spec: gardencorev1beta1.ShootSpec{
			CredentialsBindingName: &account, Region: "eu-central-1",
			CloudProfile: &gardencorev1beta1.CloudProfileReference{Kind: "CloudProfile", Name: "aws"},
			Kubernetes:   gardencorev1beta1.Kubernetes{Version: "1.35.4"},
			Networking:   &gardencorev1beta1.Networking{Type: new("calico"), Nodes: new("10.250.0.0/16")},
			Provider: gardencorev1beta1.Provider{Type: "aws", Workers: []gardencorev1beta1.Worker{{
				Name: "one", Minimum: 1, Maximum: 1, Zones: []string{"eu-central-1a"},
				Machine: gardencorev1beta1.Machine{Type: "m6i.large", Image: &gardencorev1beta1.ShootMachineImage{Name: "gardenlinux"}},
				Volume:  &gardencorev1beta1.Volume{Type: new("gp3"), VolumeSize: "50Gi"},
			}}},
		},
	}

	if err := f.garden.Create(f.Context(), shoot); err != nil {
		f.Fatal(err)
	}
}

// removeShoot deletes a Shoot. No gardenlet runs, so it is gone at once.
func (f *fixture) removeShoot(name string) {
	f.Helper()

	if err := f.garden.Delete(f.Context(), &gardencorev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: f.namespace}}); err != nil {
		f.Fatal(err)
	}
}

// order stores an instance, which the sweep looks for.
func (f *fixture) order(id string) {
	f.Helper()

	now := time.Now()

	if err := f.db.InTx(f.Context(), func(tx storage.Tx) error {
		return storagetest.Insert(f.Context(), tx, f.instances, environment.Instance{ID: id, ShootName: "c-" + id, CreatedAt: now, UpdatedAt: now})
	}); err != nil {
		f.Fatal(err)
	}
}

func (f *fixture) assign(instance, tenant string, change ...func(*accountpool.Request)) string {
	f.Helper()

	name, err := f.tryAssign(instance, tenant, change...)
	if err != nil {
		f.Fatal(err)
	}

	return name
}

func (f *fixture) tryAssign(instance, tenant string, change ...func(*accountpool.Request)) (string, error) {
	request := accountpool.Request{InstanceID: instance, Tenant: tenant, Selector: accountpool.Selector{Type: "aws"}}
	for _, each := range change {
		each(&request)
	}

	return f.pool.Assign(f.Context(), request)
}

func (f *fixture) wantNoneFree(reason string, err error) {
	f.Helper()

	if !errors.Is(err, accountpool.ErrNoneFree) {
		f.Errorf("%s: got %v", reason, err)
	}
}

func (f *fixture) release(instance string) {
	f.Helper()

	if err := f.pool.Release(f.Context(), instance, "c-"+instance); err != nil {
		f.Fatal(err)
	}
}

// wantLabels compares the labels of an account other than its type.
func (f *fixture) wantLabels(reason, name string, want ...string) {
	f.Helper()

	got := []string{}

	for label, value := range f.binding(name).Labels {
		if label != gardenclient.LabelType {
			got = append(got, label+"="+value)
		}
	}

	slices.Sort(got)

	if diff := cmp.Diff(slices.Sorted(slices.Values(want)), got, cmpopts.EquateEmpty()); diff != "" {
		f.Errorf("%s: labels of %s: -want +got\n%s", reason, name, diff)
	}
}
