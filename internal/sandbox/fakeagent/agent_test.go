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
	errLocked = errors.New("locked")
	errAway   = errors.New("away")
	errSpent  = errors.New("spent")
)

// connector takes each token once, unless it is locked.
type connector struct {
	mutex   sync.Mutex
	spent   []string
	refused error
	away    error
}

func (c *connector) Connect(_ context.Context, url, token string) error {
	c.mutex.Lock()
	defer c.mutex.Unlock()

	brought := url + " " + token

	switch {
	case c.refused != nil:
		return c.refused
	case slices.Contains(c.spent, brought):
		return errSpent
	}

	c.spent = append(c.spent, brought)

	return nil
}

func (c *connector) Synchronize(context.Context) error {
	c.mutex.Lock()
	defer c.mutex.Unlock()

	return c.away
}

func (c *connector) say(refused, away error) {
	c.mutex.Lock()
	defer c.mutex.Unlock()

	c.refused, c.away = refused, away
}

// connection is what the agent tells of its own.
type connection struct {
	State, Connecting, Synchronizing string
}

// bench is a cluster with an agent that looks once a second.
type bench struct {
	*testing.T

	cluster   *fake.FakeDynamicClient
	connector *connector
}

// newBench has no agent yet.
func newBench(t *testing.T) bench {
	t.Helper()

	return bench{T: t, connector: &connector{}, cluster: fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(),
		map[schema.GroupVersionResource]string{
			connectionGroup().WithResource(connectionResource): connectionKind + "List",
			corev1.SchemeGroupVersion.WithResource("secrets"):  "SecretList",
		})}
}

// employ starts an agent. What is returned ends it.
func (b bench) employ() (dismiss func()) {
	ctx, stop := context.WithCancel(b.Context())

	var working sync.WaitGroup

	working.Go(func() {
		if err := New(Options{Cluster: b.cluster, Connector: b.connector, Every: time.Second, Log: logging.Discard()}).Run(ctx); err != nil {
			b.Error(err)
		}
	})

	synctest.Wait() // it has looked once

	return func() {
		stop()
		working.Wait()
	}
}

// look lets the agent look so many times.
func (b bench) look(times int) {
	time.Sleep(time.Duration(times) * time.Second)
	synctest.Wait()
}

// agent is that of the bench, for its way to the cluster.
func (b bench) agent() *Agent { return New(Options{Cluster: b.cluster}) }

func (b bench) told() connection {
	b.Helper()

	found, err := b.agent().connection(b.Context())
	if err != nil {
		b.Fatal(err)
	}

	if found == nil {
		return connection{}
	}

	text := func(fields ...string) string {
		value, _, err := unstructured.NestedString(found.Object, append([]string{"status"}, fields...)...)
		if err != nil {
			b.Fatal(err)
		}

		return value
	}

	return connection{text("connectionState"), text("connectionStatus", "error"), text("synchronizationStatus", "error")}
}

func (b bench) configure(token string) {
	b.Helper()

	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&corev1.Secret{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{Name: configurationName, Namespace: namespace},
		Data:       map[string][]byte{"CONNECTOR_URL": []byte("https://connector"), "TOKEN": []byte(token)},
	})
	if err != nil {
		b.Fatal(err)
	}

	secrets, secret := corev1.SchemeGroupVersion.WithResource("secrets"), &unstructured.Unstructured{Object: object}

	err = b.cluster.Tracker().Update(secrets, secret, namespace)
	if apierrors.IsNotFound(err) {
		err = b.cluster.Tracker().Create(secrets, secret, namespace)
	}

	if err != nil {
		b.Fatal(err)
	}
}

func (b bench) disconnect() {
	b.Helper()

	if err := b.cluster.Tracker().Delete(connectionGroup().WithResource(connectionResource), "", connectionName); err != nil {
		b.Fatal(err)
	}
}

// token is that of the configuration.
func (b bench) token() string {
	b.Helper()

	found, err := b.cluster.Tracker().Get(corev1.SchemeGroupVersion.WithResource("secrets"), namespace, configurationName)
	if err != nil {
		b.Fatal(err)
	}

	secret, _ := found.(*unstructured.Unstructured)

	data, err := dataOf(secret)
	if err != nil {
		b.Fatal(err)
	}

	return data["TOKEN"]
}

// reconnect does what the Provisioner does to have an agent connect anew.
func (b bench) reconnect(token string) {
	b.configure(token)
	b.disconnect()
}

// before has something happen before the nth call of a kind from now on. The call fails with the error, if there is one.
func (b bench) before(nth int, verb, resource string, happen func(), err error) {
	b.cluster.PrependReactor(verb, resource, func(clienttesting.Action) (bool, runtime.Object, error) {
		nth--
		if nth == 0 {
			happen()
		}

		return nth == 0 && err != nil, nil, err
	})
}

func TestAgent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		defer b.employ()()

		for _, step := range []struct {
			reason string
			do     func()
			want   connection
			spent  int
		}{
			{"without a token it waits", func() {}, connection{}, 0},
			{"whom it cannot reach it tells", func() { b.connector.say(errLocked, nil); b.configure("one") }, connection{State: connectionFailed, Connecting: "locked"}, 0},
			{"it tries no token twice", func() { b.connector.say(nil, nil) }, connection{State: connectionFailed, Connecting: "locked"}, 0},
			{"another one it tries", func() { b.configure("two") }, connection{State: connected}, 1},
			{"when it is connected it synchronizes", func() {}, connection{State: synchronized}, 1},
			{"a token that comes now is left alone", func() { b.configure("three") }, connection{State: synchronized}, 1},
			{"without a connection it connects anew", b.disconnect, connection{State: connected}, 2},
			{"what it cannot synchronize it tells", func() { b.connector.say(nil, errAway) }, connection{State: synchronizationFailed, Synchronizing: "away"}, 2},
			{"and tries again", func() { b.connector.say(nil, nil) }, connection{State: synchronized}, 2},
		} {
			step.do()
			b.look(1)

			if diff := cmp.Diff(step.want, b.told()); diff != "" || len(b.connector.spent) != step.spent {
				t.Errorf("%s: spent %v, -want +got:\n%s", step.reason, b.connector.spent, diff)
			}
		}
	})
}

// TestNoTokenIsSpentTwice has something come between the calls of an agent that connects and then connects anew.
func TestNoTokenIsSpentTwice(t *testing.T) {
	broken := apierrors.NewInternalError(errAway)
	nothing := func() {}

	for name, c := range map[string]struct {
		reason string
		arm    func(b bench)
	}{
		"undisturbed": {"it connects once for each token", func(bench) {}},
		"connection not made": {
			"it knows that it is connected, and tells it later",
			func(b bench) { b.before(1, "create", connectionResource, nothing, broken) },
		},
		"credentials not kept": {
			"it keeps them later",
			func(b bench) { b.before(1, "create", "secrets", nothing, broken) },
		},
		"credentials not exchanged": {
			"those for the former token are not those for this one",
			func(b bench) { b.before(1, "update", "secrets", nothing, broken) },
		},
		"credentials not read": {
			"it does not know whether it has connected, and does not try",
			func(b bench) { b.before(2, "get", "secrets", nothing, broken) },
		},
		"state not told": {
			"it tells it later",
			func(b bench) { b.before(1, "update", connectionResource, nothing, broken) },
		},
		"anew while it looks": {
			"with no connection there is always a token that it has not spent",
			func(b bench) { b.before(5, "get", connectionResource, func() { b.reconnect("two") }, nil) },
		},
		"anew before it reads the token": {
			"it may take the new token already for the connection that goes",
			func(b bench) {
				b.connector.say(errLocked, nil)
				b.before(3, "list", "secrets", func() { b.connector.say(nil, nil); b.reconnect("two") }, nil)
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t)
				c.arm(b)
				defer b.employ()()

				b.configure("one")

				for _, token := range []string{"one", "two"} {
					if token != b.token() {
						b.reconnect("two")
					}

					b.look(10)

					if diff := cmp.Diff(connection{State: synchronized}, b.told()); diff != "" {
						t.Errorf("%s: spent %v, -want +got:\n%s", c.reason, b.connector.spent, diff)
					}
				}

				if !slices.Contains(b.connector.spent, "https://connector two") {
					t.Errorf("%s: spent %v, want the second token among them", c.reason, b.connector.spent)
				}
			})
		})
	}
}

// TestAgentThatIsStartedAnew has an agent end after it has spent its token and before it could tell.
func TestAgentThatIsStartedAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		dismiss := b.employ()

		b.configure("one")
		b.before(1, "create", connectionResource, func() {}, apierrors.NewInternalError(errAway))
		b.look(1)
		dismiss()

		if diff := cmp.Diff(connection{}, b.told()); diff != "" || len(b.connector.spent) != 1 {
			t.Fatalf("it has told nothing yet: spent %v, -want +got:\n%s", b.connector.spent, diff)
		}

		defer b.employ()()
		b.look(2)

		if diff := cmp.Diff(connection{State: synchronized}, b.told()); diff != "" {
			t.Errorf("its credentials outlive it, -want +got:\n%s", diff)
		}
	})
}

// TestClusterThatKnowsNoConnections has the agent bring their definition.
func TestClusterThatKnowsNoConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		defer b.employ()()

		b.before(1, "create", connectionResource, func() {}, apierrors.NewNotFound(connectionGroup().WithResource(connectionResource).GroupResource(), ""))
		b.configure("one")
		b.look(3)

		if _, err := b.cluster.Tracker().Get(definitionResource(), "", definition().GetName()); err != nil {
			t.Error(err)
		}

		if diff := cmp.Diff(connection{State: synchronized}, b.told()); diff != "" {
			t.Errorf("it is told once the cluster knows it, -want +got:\n%s", diff)
		}
	})
}
