package agent

import (
	"context"
	"errors"
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
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/fake"

	"github.com/environment-broker/environment-broker/internal/logging"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const namespace = "kyma-system"

// connector takes each token once, unless it is away.
type connector struct {
	mutex   sync.Mutex
	spent   []string
	refused error
	away    error
}

func (c *connector) Connect(_ context.Context, url, token string) error {
	c.mutex.Lock()
	defer c.mutex.Unlock()

	if c.refused == nil {
		c.spent = append(c.spent, url+" "+token)
	}

	return c.refused
}

func (c *connector) Synchronize(context.Context, string) error {
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

type bench struct {
	*testing.T

	cluster   dynamic.Interface
	connector *connector
}

func (b bench) told() connection {
	b.Helper()

	found, err := b.connections().Get(b.Context(), connectionName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return connection{}
	}

	if err != nil {
		b.Fatal(err)
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

func (b bench) connections() dynamic.ResourceInterface {
	return b.cluster.Resource(connectionGroup().WithResource(connectionResource))
}

func (b bench) configure(token string) {
	b.Helper()

	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&corev1.Secret{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{Name: secretName, Namespace: namespace},
		Data:       map[string][]byte{"CONNECTOR_URL": []byte("https://connector"), "TOKEN": []byte(token)},
	})
	if err != nil {
		b.Fatal(err)
	}

	secrets := b.cluster.Resource(corev1.SchemeGroupVersion.WithResource("secrets")).Namespace(namespace)
	secret := &unstructured.Unstructured{Object: object}

	if _, err := secrets.Update(b.Context(), secret, metav1.UpdateOptions{}); apierrors.IsNotFound(err) {
		_, err = secrets.Create(b.Context(), secret, metav1.CreateOptions{})
		if err != nil {
			b.Fatal(err)
		}
	}
}

func (b bench) disconnect() {
	b.Helper()

	if err := b.connections().Delete(b.Context(), connectionName, metav1.DeleteOptions{}); err != nil {
		b.Fatal(err)
	}
}

func TestAgent(t *testing.T) {
	locked, away := errors.New("locked"), errors.New("away")

	synctest.Test(t, func(t *testing.T) {
		b := bench{T: t, connector: &connector{}, cluster: fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(),
			map[schema.GroupVersionResource]string{connectionGroup().WithResource(connectionResource): connectionKind + "List"})}

		ctx, stop := context.WithCancel(t.Context())

		var working sync.WaitGroup

		working.Go(func() {
			err := New(Options{
				Cluster: b.cluster, Namespace: namespace, Connector: b.connector, Every: time.Second, Log: logging.Discard(),
			}).Run(ctx)
			if err != nil {
				t.Error(err)
			}
		})

		for _, step := range []struct {
			reason string
			do     func()
			want   connection
			spent  int
		}{
			{"without a token it waits", func() {}, connection{}, 0},
			{"whom it cannot reach it tells", func() { b.connector.say(locked, nil); b.configure("one") }, connection{State: "ConnectionFailed", Connecting: "locked"}, 0},
			{"it tries no token twice", func() { b.connector.say(nil, nil) }, connection{State: "ConnectionFailed", Connecting: "locked"}, 0},
			{"another one it tries", func() { b.configure("two") }, connection{State: "Connected"}, 1},
			{"when it is connected it synchronizes", func() {}, connection{State: "Synchronized"}, 1},
			{"a token that comes now is left alone", func() { b.configure("three") }, connection{State: "Synchronized"}, 1},
			{"without a connection it connects anew", b.disconnect, connection{State: "Connected"}, 2},
			{"what it cannot synchronize it tells", func() { b.connector.say(nil, away) }, connection{State: "SynchronizationFailed", Synchronizing: "away"}, 2},
			{"and tries again", func() { b.connector.say(nil, nil) }, connection{State: "Synchronized"}, 2},
		} {
			step.do()
			time.Sleep(time.Second)
			synctest.Wait()

			if diff := cmp.Diff(step.want, b.told()); diff != "" || len(b.connector.spent) != step.spent {
				t.Errorf("%s: spent %v, -want +got:\n%s", step.reason, b.connector.spent, diff)
			}
		}

		stop()
		working.Wait()
	})
}
