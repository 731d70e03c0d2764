package e2e

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	securityv1alpha1 "github.com/gardener/gardener/pkg/apis/security/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	broker "github.com/environment-broker/environment-broker/broker/service"
	"github.com/environment-broker/environment-broker/internal/clients/gardenclient"
	"github.com/environment-broker/environment-broker/internal/environment/accountpool"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakegarden"
	"github.com/environment-broker/environment-broker/internal/sandbox/postgrestest"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/accounts"
	"github.com/environment-broker/environment-broker/storage/instances"
	"github.com/environment-broker/environment-broker/storage/operations"
	"github.com/environment-broker/environment-broker/storage/storagetest"
	"github.com/environment-broker/environment-broker/test/harness"
)

// poolTenants returns the number of tenants that order at the same time, which is also the number of accounts. It is 200 if
// SOAK_DURATION is set, and otherwise only 40, because the number of requests grows with the square of the number of tenants.
func poolTenants(tb testing.TB) int {
	tb.Helper()

	if harness.SoakDuration(tb) == 0 {
		return 40
	}

	return 200
}

// TestAccountPoolOfManyTenants runs testAccountPool with a fake garden, which is called over HTTP.
func TestAccountPoolOfManyTenants(t *testing.T) {
	t.Parallel()

	testAccountPool(t, harness.ServeGarden(t, harness.StartGarden(t, time.Second)), harness.GardenNamespace())
}

// errKilled is returned by a call that was interrupted because its replica was killed.
var errKilled = errors.New("the replica was killed")

// mortal is a transport that kills its replica at one of the requests: before the API server receives the request, or after it has
// executed the request.
type mortal struct {
	http.RoundTripper

	mutex sync.Mutex
	// left is the number of requests until the replica dies. after says whether it dies after the last one or before it.
	left  int
	after bool
	// died is called when the replica dies, with the method of the request.
	died func(method string)
}

// RoundTrip implements http.RoundTripper.
func (m *mortal) RoundTrip(request *http.Request) (*http.Response, error) {
	m.mutex.Lock()
	m.left--
	left := m.left
	m.mutex.Unlock()

	if left == 0 {
		m.died(request.Method)
	}

	if left < 0 || left == 0 && !m.after {
		return nil, errKilled
	}

	response, err := m.RoundTripper.RoundTrip(request)
	if left == 0 && err == nil {
		return nil, errors.Join(errKilled, response.Body.Close())
	}

	return response, err
}

// testAccountPool assigns accounts to two instances of each tenant, on two replicas with connections of their own. Each replica
// dies at a random request of each assignment and release, and another one repeats the work. No account may have two tenants, no
// tenant two accounts, and no account may be lost.
func testAccountPool(t *testing.T, kubeconfig, namespace string) {
	t.Helper()

	api, tenants := poolAPI(t, kubeconfig), poolTenants(t)

	for i := range tenants {
		harness.Until(t, "the account is accepted", func() bool {
			return client.IgnoreAlreadyExists(api.Create(t.Context(), poolAccount(namespace, i))) == nil
		})
	}

	config := postgrestest.Database(t)
	replicas := []*poolReplica{newPoolReplica(t, kubeconfig, namespace, config), newPoolReplica(t, kubeconfig, namespace, config)}
	work := func(do func(pool accountpool.Pool) error) error { return untilDone(replicas, do) }

	var (
		running sync.WaitGroup
		mutex   sync.Mutex
	)

	assigned := map[string]string{}

	for number := range 2 * tenants {
		running.Go(func() {
			instance := fmt.Sprintf("instance-%d", number)

			var name string

			err := work(func(pool accountpool.Pool) (err error) {
				name, err = pool.Assign(t.Context(), accountpool.Request{
					InstanceID: instance, Tenant: poolTenant(number, tenants), Selector: accountpool.Selector{Type: "aws"},
				})

				return err
			})
			if err != nil {
				t.Errorf("%s got no account: %v", instance, err)
			}

			mutex.Lock()
			defer mutex.Unlock()

			assigned[instance] = name
		})
	}

	running.Wait()
	checkAssignments(t, poolAccounts(t, api, namespace), assigned)

	for number := range 2 * tenants {
		running.Go(func() {
			instance := fmt.Sprintf("instance-%d", number)
			if err := work(func(pool accountpool.Pool) error { return pool.Release(t.Context(), instance, "c-"+instance) }); err != nil {
				t.Errorf("%s did not release its account: %v", instance, err)
			}
		})
	}

	running.Wait()
	wantDeaths(t, replicas)

	for _, account := range poolAccounts(t, api, namespace) {
		if account.Labels[gardenclient.LabelDirty] != "true" {
			t.Errorf("the account %s has the labels %v after its release", account.Name, account.Labels)
		}
	}

	if claims, uses, err := replicas[0].claims.List(t.Context()); err != nil || len(claims)+len(uses) > 0 {
		t.Errorf("the claims %v and the uses %v are left, %v", claims, uses, err)
	}
}

// poolAPI returns a client for the garden that never simulates a death.
func poolAPI(t *testing.T, kubeconfig string) client.Client {
	t.Helper()

	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}

	scheme, err := fakegarden.NewScheme()
	if err != nil {
		t.Fatal(err)
	}

	api, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}

	return api
}

func poolTenant(number, tenants int) string { return fmt.Sprintf("tenant-%d", number%tenants) }

func poolAccount(namespace string, number int) *securityv1alpha1.CredentialsBinding {
	return &securityv1alpha1.CredentialsBinding{
		ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprintf("pool-%03d", number), Namespace: namespace, Labels: map[string]string{gardenclient.LabelType: "aws"},
		},
		Provider:       securityv1alpha1.CredentialsBindingProvider{Type: "aws"},
		CredentialsRef: corev1.ObjectReference{APIVersion: "v1", Kind: "Secret", Name: "aws", Namespace: namespace},
	}
}

func poolAccounts(t *testing.T, api client.Client, namespace string) []securityv1alpha1.CredentialsBinding {
	t.Helper()

	list := &securityv1alpha1.CredentialsBindingList{}
	if err := api.List(t.Context(), list, client.InNamespace(namespace), client.HasLabels{gardenclient.LabelType}); err != nil {
		t.Fatal(err)
	}

	return list.Items
}

// checkAssignments checks that each tenant has exactly one account, which is labeled with the tenant.
func checkAssignments(t *testing.T, accounts []securityv1alpha1.CredentialsBinding, assigned map[string]string) {
	t.Helper()

	tenants := poolTenants(t)

	labeled := map[string]string{}
	for _, account := range accounts {
		labeled[account.Name] = account.Labels[gardenclient.LabelTenant]
	}

	byTenant := map[string]string{}

	for number := range 2 * tenants {
		tenant, name := poolTenant(number, tenants), assigned[fmt.Sprintf("instance-%d", number)]
		if other := byTenant[tenant]; other != "" && other != name {
			t.Errorf("%s has the accounts %s and %s", tenant, other, name)
		}

		if byTenant[tenant] = name; labeled[name] != tenant {
			t.Errorf("the account %s of %s has the tenant %q", name, tenant, labeled[name])
		}
	}
}

// poolPatience is the time limit for the attempts of one instance. It is long, because Gardener's API server checks the
// credentials of an account at each change, with a client that is limited to few requests per second.
const poolPatience = 2 * harness.Patience

// poolReplica is a replica that assigns and releases accounts. It has as many workers as a replica of the broker, and the same
// limit on concurrent calls to Gardener.
type poolReplica struct {
	*testing.T

	claims *accounts.Store
	// kubeconfig is the path of a kubeconfig of the garden, and namespace the namespace of the project.
	kubeconfig, namespace string
	// working contains an element for each running attempt. Its capacity is the number of workers.
	working chan struct{}

	mutex sync.Mutex
	// counts contains the numbers of deaths before and after requests, and of attempts that failed because Gardener was overloaded.
	counts map[string]int
}

func newPoolReplica(t *testing.T, kubeconfig, namespace string, config storage.Config) *poolReplica {
	t.Helper()

	db, keys := storagetest.Open(t, config), storagetest.Keys(t)

	if _, err := operations.Open(t.Context(), db, keys); err != nil {
		t.Fatal(err)
	}

	if _, err := instances.Open(t.Context(), db, keys); err != nil {
		t.Fatal(err)
	}

	claims, err := accounts.Open(t.Context(), db, clock.RealClock{})
	if err != nil {
		t.Fatal(err)
	}

	limit := min(process.DefaultConfig().Workers, broker.DefaultConfig().Gardener.Calls)

	return &poolReplica{T: t, claims: claims, kubeconfig: kubeconfig, namespace: namespace, working: make(chan struct{}, limit), counts: map[string]int{}}
}

func (r *poolReplica) count(what string) {
	r.mutex.Lock()
	defer r.mutex.Unlock()

	r.counts[what]++
}

// attempt calls do once, as soon as a worker is free. The replica dies during most of the first attempts.
func (r *poolReplica) attempt(number int, do func(pool accountpool.Pool) error) error {
	r.Helper()

	r.working <- struct{}{}
	defer func() { <-r.working }()

	err := do(accountpool.Pool{Claims: r.claims, Garden: r.mortalGarden(number)})
	if err != nil && strings.Contains(failure.Of(err).Text, "Gardener is overloaded") {
		r.count("attempts during an overload")
	}

	return err
}

// mortalGarden returns a garden client whose replica dies at a random request. In later attempts, the replica lives longer.
func (r *poolReplica) mortalGarden(attempt int) *gardenclient.Client {
	r.Helper()

	config, err := clientcmd.BuildConfigFromFlags("", r.kubeconfig)
	if err != nil {
		r.Error(err)
	}

	left, after := 1+rand.IntN(4*attempt), rand.IntN(2) == 0

	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return &mortal{RoundTripper: next, left: left, after: after, died: func(method string) {
			r.count(map[bool]string{false: "before ", true: "after "}[after] + method)
		}}
	})

	garden, err := gardenclient.New(config, gardenclient.Options{Namespace: r.namespace, Kind: gardenclient.CredentialsBinding})
	if err != nil {
		r.Error(err)
	}

	return garden
}

// wantDeaths checks that replicas have died both before and after writes to Gardener.
func wantDeaths(t *testing.T, replicas []*poolReplica) {
	t.Helper()

	for number, replica := range replicas {
		t.Logf("replica %d: %v", number, replica.counts)

		if replica.counts["before PATCH"] == 0 || replica.counts["after PATCH"] == 0 {
			t.Errorf("replica %d did not die at every write: %v", number, replica.counts)
		}
	}
}

// untilDone calls do on random replicas, with the same delays as the engine, until it succeeds.
func untilDone(replicas []*poolReplica, do func(pool accountpool.Pool) error) error {
	var (
		err  error
		next time.Time
	)

	retry, number := process.DefaultRetry(), 0

	done := harness.Within(poolPatience, func() bool {
		if time.Now().Before(next) {
			return false
		}

		number++
		err = replicas[rand.IntN(len(replicas))].attempt(number, do)
		next = time.Now().Add(retry.Interval(number))

		return err == nil
	})
	if !done {
		return fmt.Errorf("attempt %d, after %s: %w", number, poolPatience, err)
	}

	return nil
}
