package fakeagent

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/environment-broker/environment-broker/internal/logging"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const namespace = "compass-system"

var (
	errLocked      = errors.New("locked")
	errUnavailable = errors.New("unavailable")
	errSpent       = errors.New("spent")
)

// connector accepts each token only once. While an error is set, the matching call fails with this error.
type connector struct {
	mutex          sync.Mutex
	spent          []string
	connectErr     error
	synchronizeErr error
}

func (c *connector) Connect(_ context.Context, url, token string) error {
	c.mutex.Lock()
	defer c.mutex.Unlock()

	exchanged := url + " " + token

	switch {
	case c.connectErr != nil:
		return c.connectErr
	case slices.Contains(c.spent, exchanged):
		return errSpent
	}

	c.spent = append(c.spent, exchanged)

	return nil
}

func (c *connector) Synchronize(context.Context) error {
	c.mutex.Lock()
	defer c.mutex.Unlock()

	return c.synchronizeErr
}

// fail sets the errors of both calls. A call with a nil error succeeds.
func (c *connector) fail(connectErr, synchronizeErr error) {
	c.mutex.Lock()
	defer c.mutex.Unlock()

	c.connectErr, c.synchronizeErr = connectErr, synchronizeErr
}

// connection holds the fields of the CompassConnection status that the agent reports.
type connection struct {
	State, Connecting, Synchronizing string
}

// fixture is a cluster with a Connector. Its agents check the cluster once a second.
type fixture struct {
	*testing.T

	cluster   *fake.FakeDynamicClient
	connector *connector
}

func newFixture(t *testing.T) fixture {
	t.Helper()

	return fixture{T: t, connector: &connector{}, cluster: fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(),
		map[schema.GroupVersionResource]string{
			connectionGroup().WithResource(connectionResource): connectionKind + "List",
			corev1.SchemeGroupVersion.WithResource("secrets"):  "SecretList",
		})}
}

// start starts an agent and waits for its first check. The returned function stops it.
func (f fixture) start() (stop func()) {
	ctx, cancel := context.WithCancel(f.Context())

	var working sync.WaitGroup

	working.Go(func() {
		if err := New(Options{Cluster: f.cluster, Connector: f.connector, Every: time.Second, Log: logging.Discard()}).Run(ctx); err != nil {
			f.Error(err)
		}
	})

	synctest.Wait()

	return func() {
		cancel()
		working.Wait()
	}
}

// checks waits until the agent has checked the cluster the given number of times.
func (f fixture) checks(times int) {
	time.Sleep(time.Duration(times) * time.Second)
	synctest.Wait()
}

func (f fixture) agent() *Agent { return New(Options{Cluster: f.cluster}) }

// reported returns the connection that the agent reported, or the zero value if there is none.
func (f fixture) reported() connection {
	f.Helper()

	found, err := f.agent().connection(f.Context())
	if err != nil {
		f.Fatal(err)
	}

	if found == nil {
		return connection{}
	}

	text := func(fields ...string) string {
		value, _, err := unstructured.NestedString(found.Object, append([]string{"status"}, fields...)...)
		if err != nil {
			f.Fatal(err)
		}

		return value
	}

	return connection{text("connectionState"), text("connectionStatus", "error"), text("synchronizationStatus", "error")}
}

func (f fixture) configure(token string) {
	f.Helper()

	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&corev1.Secret{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{Name: configurationName, Namespace: namespace},
		Data:       map[string][]byte{"CONNECTOR_URL": []byte("https://connector"), "TOKEN": []byte(token)},
	})
	if err != nil {
		f.Fatal(err)
	}

	secrets, secret := corev1.SchemeGroupVersion.WithResource("secrets"), &unstructured.Unstructured{Object: object}

	err = f.cluster.Tracker().Update(secrets, secret, namespace)
	if apierrors.IsNotFound(err) {
		err = f.cluster.Tracker().Create(secrets, secret, namespace)
	}

	if err != nil {
		f.Fatal(err)
	}
}

func (f fixture) disconnect() {
	f.Helper()

	if err := f.cluster.Tracker().Delete(connectionGroup().WithResource(connectionResource), "", connectionName); err != nil {
		f.Fatal(err)
	}
}

func (f fixture) token() string {
	f.Helper()

	found, err := f.cluster.Tracker().Get(corev1.SchemeGroupVersion.WithResource("secrets"), namespace, configurationName)
	if err != nil {
		f.Fatal(err)
	}

	secret, _ := found.(*unstructured.Unstructured)

	data, err := dataOf(secret)
	if err != nil {
		f.Fatal(err)
	}

	return data["TOKEN"]
}

// reconnect requests a new connection like the Provisioner: it writes a new token and then deletes the connection.
func (f fixture) reconnect(token string) {
	f.configure(token)
	f.disconnect()
}

// before makes the cluster call do just before it handles the nth request with the given verb and resource. If err is not nil,
// the request fails with it.
func (f fixture) before(nth int, verb, resource string, do func(), err error) {
	f.cluster.PrependReactor(verb, resource, func(clienttesting.Action) (bool, runtime.Object, error) {
		nth--
		if nth == 0 {
			do()
		}

		return nth == 0 && err != nil, nil, err
	})
}

func TestAgent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		defer f.start()()

		for _, step := range []struct {
			reason string
			do     func()
			want   connection
			spent  int
		}{
			{"waits for a token", func() {}, connection{}, 0},
			{"reports a failed connection", func() { f.connector.fail(errLocked, nil); f.configure("one") }, connection{State: connectionFailed, Connecting: "locked"}, 0},
			{"does not send a token a second time", func() { f.connector.fail(nil, nil) }, connection{State: connectionFailed, Connecting: "locked"}, 0},
			{"tries another token", func() { f.configure("two") }, connection{State: connected}, 1},
			{"synchronizes when it is connected", func() {}, connection{State: synchronized}, 1},
			{"ignores a token while it is connected", func() { f.configure("three") }, connection{State: synchronized}, 1},
			{"connects again without a connection", f.disconnect, connection{State: connected}, 2},
			{"reports a failed synchronization", func() { f.connector.fail(nil, errUnavailable) }, connection{State: synchronizationFailed, Synchronizing: "unavailable"}, 2},
			{"repeats a failed synchronization", func() { f.connector.fail(nil, nil) }, connection{State: synchronized}, 2},
		} {
			step.do()
			f.checks(1)

			if diff := cmp.Diff(step.want, f.reported()); diff != "" || len(f.connector.spent) != step.spent {
				t.Errorf("%s: spent %v, -want +got:\n%s", step.reason, f.connector.spent, diff)
			}
		}
	})
}

// TestNoTokenIsSpentTwice checks that an agent connects and never sends a token twice, even if one of its calls fails or a
// client requests a new connection just before a call.
func TestNoTokenIsSpentTwice(t *testing.T) {
	broken := apierrors.NewInternalError(errUnavailable)
	nothing := func() {}

	for name, c := range map[string]struct {
		reason string
		arm    func(f fixture)
	}{
		"undisturbed": {"the agent connects once for each token", func(fixture) {}},
		"creating the connection fails": {
			"the agent knows that it is connected, and reports the connection later",
			func(f fixture) { f.before(1, "create", connectionResource, nothing, broken) },
		},
		"creating the credentials fails": {
			"the agent stores the credentials later",
			func(f fixture) { f.before(1, "create", "secrets", nothing, broken) },
		},
		"updating the credentials fails": {
			"the agent does not use credentials of the first token for the second",
			func(f fixture) { f.before(1, "update", "secrets", nothing, broken) },
		},
		"reading the credentials fails": {
			"the agent cannot know whether it is connected, so it does not connect",
			func(f fixture) { f.before(2, "get", "secrets", nothing, broken) },
		},
		"updating the connection fails": {
			"the agent reports its state later",
			func(f fixture) { f.before(1, "update", connectionResource, nothing, broken) },
		},
		"requested during a check": {
			"the agent sends the new token while there is no connection",
			func(f fixture) { f.before(5, "get", connectionResource, func() { f.reconnect("two") }, nil) },
		},
		"requested before the token is read": {
			"the agent can send the new token while the old connection exists",
			func(f fixture) {
				f.connector.fail(errLocked, nil)
				f.before(3, "list", "secrets", func() { f.connector.fail(nil, nil); f.reconnect("two") }, nil)
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t)
				c.arm(f)
				defer f.start()()

				f.configure("one")

				for _, token := range []string{"one", "two"} {
					if token != f.token() {
						f.reconnect("two")
					}

					f.checks(10)

					if diff := cmp.Diff(connection{State: synchronized}, f.reported()); diff != "" {
						t.Errorf("%s: spent %v, -want +got:\n%s", c.reason, f.connector.spent, diff)
					}
				}

				if !slices.Contains(f.connector.spent, "https://connector two") {
					t.Errorf("%s: spent %v, want the second token among them", c.reason, f.connector.spent)
				}
			})
		})
	}
}

// TestRestartAfterConnect stops an agent between the exchange of its token and the report of the connection. The next agent
// must report the connection without exchanging the token again.
func TestRestartAfterConnect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		stop := f.start()

		f.configure("one")
		f.before(1, "create", connectionResource, func() {}, apierrors.NewInternalError(errUnavailable))
		f.checks(1)
		stop()

		if diff := cmp.Diff(connection{}, f.reported()); diff != "" || len(f.connector.spent) != 1 {
			t.Fatalf("before the report: spent %v, -want +got:\n%s", f.connector.spent, diff)
		}

		defer f.start()()
		f.checks(2)

		if diff := cmp.Diff(connection{State: synchronized}, f.reported()); diff != "" {
			t.Errorf("the second agent must use the credentials of the first one, -want +got:\n%s", diff)
		}
	})
}

// TestMissingDefinition runs an agent in a cluster without the CustomResourceDefinition. The agent must create it.
func TestMissingDefinition(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		defer f.start()()

		f.before(1, "create", connectionResource, func() {}, apierrors.NewNotFound(connectionGroup().WithResource(connectionResource).GroupResource(), ""))
		f.configure("one")
		f.checks(3)

		if _, err := f.cluster.Tracker().Get(definitionResource(), "", definition().GetName()); err != nil {
			t.Error(err)
		}

		if diff := cmp.Diff(connection{State: synchronized}, f.reported()); diff != "" {
			t.Errorf("after the definition is created, -want +got:\n%s", diff)
		}
	})
}
