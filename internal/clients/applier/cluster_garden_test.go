//go:build garden

package applier_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/environment-broker/environment-broker/internal/clients/applier"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/test/apiserver"
)

// api is the configuration of the API server that all tests share.
var api *rest.Config

func TestMain(m *testing.M) { os.Exit(apiserver.Main(m, &api)) }

// fixture is one test's share of the API server: a namespace and names of its own.
type fixture struct {
	*testing.T
	client.Client

	cluster   *applier.Cluster
	namespace string
	applier   *applier.Applier
}

func newFixture(t *testing.T) *fixture {
	t.Helper()

	config := rest.CopyConfig(api)
	config.QPS = -1

	direct, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}

	cluster, err := applier.Connect(config)
	if err != nil {
		t.Fatal(err)
	}

	f := &fixture{t, direct, cluster, "ns-" + uuid.NewString()[:8], applier.New(applier.Options{Now: time.Now})}
	if err := f.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: f.namespace}}); err != nil {
		t.Fatal(err)
	}

	return f
}

// static is a source with fixed objects. Its digest is the text itself.
type static string

func (s static) Digest(context.Context) (string, error) { return string(s), nil }

func (s static) Objects(context.Context) (objects []*unstructured.Unstructured, err error) {
	for text := range strings.SplitSeq(string(s), "---\n") {
		if strings.TrimSpace(text) == "" {
			continue
		}

		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(text), &object.Object); err != nil {
			return nil, err
		}

		objects = append(objects, object)
	}

	return objects, nil
}

func (f *fixture) content(text string) applier.Content {
	return applier.Content{Parts: []applier.Part{{Name: "it", Namespace: f.namespace, Source: static(text)}}, Installed: "installed", SkipUnchanged: true}
}

func (f *fixture) step(owner applier.Owner, text string) (applier.Progress, error) {
	return f.applier.Apply(f.Context(), f.cluster, owner, f.content(text))
}

// apply repeats step until it is done. It continues after transient errors, because the API server needs a moment to serve new kinds.
func (f *fixture) apply(owner applier.Owner, text string) {
	f.Helper()
	f.until(func() (applier.Progress, error) { return f.step(owner, text) })
}

func (f *fixture) remove(owner applier.Owner) {
	f.Helper()
	f.until(func() (applier.Progress, error) { return f.applier.Remove(f.Context(), f.cluster, owner) })
}

func (f *fixture) until(call func() (applier.Progress, error)) {
	f.Helper()

	ticker := time.NewTicker(30 * time.Millisecond)
	defer ticker.Stop()

	for deadline := time.Now().Add(time.Minute); ; <-ticker.C {
		progress, err := call()
		if err == nil && progress.Done {
			return
		}

		if err != nil && !failure.Is(err, failure.Transient) || time.Now().After(deadline) {
			f.Fatalf("not done: %+v, %v", progress, err)
		}
	}
}

// data returns the data of a ConfigMap, or nil if it does not exist.
func (f *fixture) data(name string) map[string]string {
	f.Helper()

	found := f.configMap(name)
	if found == nil {
		return nil
	}

	return found.Data
}

func (f *fixture) configMap(name string) *corev1.ConfigMap {
	f.Helper()

	found := &corev1.ConfigMap{}

	err := f.Get(f.Context(), client.ObjectKey{Namespace: f.namespace, Name: name}, found)
	if apierrors.IsNotFound(err) {
		return nil
	}

	if err != nil {
		f.Fatal(err)
	}

	return found
}

func configMap(name, value string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s}\ndata: {key: %q}\n---\n", name, value)
}
