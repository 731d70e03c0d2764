//go:build garden

package bundles

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/environment-broker/environment-broker/bundle/api/v1alpha1"
	"github.com/environment-broker/environment-broker/test/harness"
)

// kinds lists the kinds of objects in the tests' bundles, and the kinds that the bundler could create by mistake.
var kinds = []schema.GroupVersionKind{
	{Version: "v1", Kind: "ConfigMap"},
	{Version: "v1", Kind: "Namespace"},
	{Version: "v1", Kind: "ServiceAccount"},
	{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"},
	{Group: "apps", Version: "v1", Kind: "Deployment"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRoleBinding"},
}

// labelled returns the objects on the cluster that have the labels of the BundleDeployment.
func (f *fixture) labelled() (objects []client.Object) {
	f.Helper()

	for _, kind := range kinds {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(kind)

		if err := f.on.List(ctx(f), list, client.MatchingLabels{v1alpha1.LabelOwnerName: f.name}); err != nil {
			f.Fatal(err)
		}

		for i := range list.Items {
			list.Items[i].SetGroupVersionKind(kind)
			objects = append(objects, &list.Items[i])
		}
	}

	return objects
}

// bundles returns the Bundles of the BundleDeployment.
func (f *fixture) bundles() []v1alpha1.Bundle {
	f.Helper()

	list := &v1alpha1.BundleList{}
	if err := f.hub.List(ctx(f), list, client.MatchingLabels{v1alpha1.LabelOwnerName: f.name}); err != nil {
		f.Fatal(err)
	}

	return list.Items
}

// inventory returns the names of the objects in the inventory, or nil if there is none.
func (f *fixture) inventory() (names []string, err error) {
	secret := &corev1.Secret{}
	if err := f.on.Get(f.Context(), client.ObjectKey{Namespace: metav1.NamespaceSystem, Name: "core.rukpak.io.bundledeployment." + f.name}, secret); err != nil {
		return nil, client.IgnoreNotFound(err)
	}

	reader, err := gzip.NewReader(bytes.NewReader(secret.Data["inventory.json.gz"]))
	if err != nil {
		return nil, err
	}

	var content struct {
		Entries []struct {
			Objects, Former []struct{ Kind, Namespace, Name string }
		}
	}
	if err := json.NewDecoder(reader).Decode(&content); err != nil {
		return nil, err
	}

	names = []string{}

	for _, entry := range content.Entries {
		for _, object := range append(entry.Objects, entry.Former...) {
			names = append(names, object.Kind+" "+object.Namespace+"/"+object.Name)
		}
	}

	slices.Sort(names)

	return names, nil
}

// installed returns "" if exactly the objects of a version are installed and the status has the given reason. Otherwise, it
// returns the problem. The version is empty for objects without a version annotation.
func (f *fixture) installed(version, reason string) string {
	f.Helper()

	deployment := &v1alpha1.BundleDeployment{}
	if err := f.hub.Get(f.Context(), client.ObjectKey{Name: f.name}, deployment); err != nil {
		return err.Error()
	}

	status := deployment.Status

	condition := meta.FindStatusCondition(status.Conditions, v1alpha1.TypeInstalled)
	if condition == nil || condition.Status != metav1.ConditionTrue || condition.Reason != reason || status.ObservedGeneration != deployment.Generation {
		return fmt.Sprintf("the status is %+v", status)
	}

	expected := 1 // the active Bundle
	if reason == v1alpha1.ReasonUpgradeFailed {
		expected++
	}

	bundles := f.bundles()
	active := slices.IndexFunc(bundles, func(one v1alpha1.Bundle) bool { return one.Name == status.ActiveBundle })

	if len(bundles) != expected || active < 0 || bundles[active].Status.Phase != v1alpha1.PhaseUnpacked {
		return fmt.Sprintf("the active Bundle is %q of %d: %+v", status.ActiveBundle, len(bundles), bundles)
	}

	same := bundles[active].Spec.Source.Type == deployment.Spec.Template.Spec.Source.Type &&
		meta.FindStatusCondition(status.Conditions, v1alpha1.TypeHasValidBundle).Status == metav1.ConditionTrue
	if !same {
		return fmt.Sprintf("the active Bundle has the source %+v", bundles[active].Spec.Source)
	}

	return f.consistent(version)
}

// consistent returns "" if all objects have the wanted version, and the inventory lists exactly these objects. Otherwise, it
// returns the problem.
func (f *fixture) consistent(want string) string {
	f.Helper()

	var found []string

	for _, object := range f.labelled() {
		name := object.GetObjectKind().GroupVersionKind().Kind + " " + object.GetNamespace() + "/" + object.GetName()
		found = append(found, name)

		if got := object.GetAnnotations()[version]; got != want {
			return fmt.Sprintf("%s has version %q instead of %q", name, got, want)
		}

		if object.GetDeletionTimestamp() != nil {
			return name + " is being deleted"
		}
	}

	slices.Sort(found)

	listed, err := f.inventory()
	if err != nil {
		return "the inventory: " + err.Error()
	}

	const objects = 4 // the number of objects in each version

	if !slices.Equal(found, listed) || len(found) < objects || want != "" && len(found) != objects {
		return fmt.Sprintf("installed are %v, and the inventory lists %v", found, listed)
	}

	return ""
}

// removed returns "" if nothing is left of the BundleDeployment. Otherwise, it returns the problem.
func (f *fixture) removed() string {
	f.Helper()

	if err := f.hub.Get(f.Context(), client.ObjectKey{Name: f.name}, &v1alpha1.BundleDeployment{}); !apierrors.IsNotFound(err) {
		return fmt.Sprintf("the BundleDeployment is not removed: %v", err)
	}

	listed, err := f.inventory()
	if bundles, objects := f.bundles(), f.labelled(); len(bundles)+len(objects) > 0 || listed != nil || err != nil {
		return fmt.Sprintf("left are %d Bundles, the objects %v, and the inventory %v: %v", len(bundles), objects, listed, err)
	}

	return ""
}

// observe repeatedly reads the content of the active Bundle until stop is called. Whenever a replica responds, the Bundle must
// exist, and its content must have the expected digest. If always is true, a replica must always respond. stop returns how many
// reads succeeded.
func (f *fixture) observe(always bool) (stop func() int64) {
	f.Helper()

	authorities := x509.NewCertPool()
	authorities.AddCert(f.front.Certificate())

	connection := &http.Client{
		Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: authorities, MinVersion: tls.VersionTLS12}}, Timeout: time.Second,
	}
	if always {
		connection.Timeout = harness.Patience // a slow response counts as a response
	}

	done, ended := make(chan struct{}), make(chan struct{})

	var read atomic.Int64

	go func() {
		defer close(ended)
		defer connection.CloseIdleConnections()

		ticker := time.NewTicker(100 * time.Millisecond)
		defer ticker.Stop()

		for {
			active := f.active()

			problem, served := f.serves(connection)
			if always && problem == "" && !served && active != "" && f.active() == active {
				problem = "the content of the active Bundle is not served"
			}

			if problem != "" {
				f.Error(problem)

				return
			}

			if served {
				read.Add(1)
			}

			select {
			case <-done:
				return
			case <-ticker.C:
			}
		}
	}()

	stop = sync.OnceValue(func() int64 {
		close(done)
		<-ended

		return read.Load()
	})
	f.Cleanup(func() { stop() })

	return stop
}

// active returns the name of the active Bundle, or "" if there is none or the hub does not respond.
func (f *fixture) active() string {
	deployment := &v1alpha1.BundleDeployment{}
	if f.hub.Get(ctx(f), client.ObjectKey{Name: f.name}, deployment) != nil || !deployment.DeletionTimestamp.IsZero() {
		return ""
	}

	return deployment.Status.ActiveBundle
}

// serves reads the content of the active Bundle. served reports whether a replica has responded with this content.
func (f *fixture) serves(connection *http.Client) (problem string, served bool) {
	active := f.active()
	if active == "" {
		return "", false
	}

	bundle := &v1alpha1.Bundle{}
	err := f.hub.Get(ctx(f), client.ObjectKey{Name: active}, bundle)

	switch {
	case apierrors.IsNotFound(err) || err == nil && (bundle.Status.ContentURL == "" || !bundle.DeletionTimestamp.IsZero()):
		problem = fmt.Sprintf("the active Bundle %s is lost: %v, %+v", active, err, bundle.Status)
	case err != nil:
		return "", false // the hub is restarting
	default:
		problem, served = f.fetch(connection, bundle)
	}

	if problem != "" && f.active() != active {
		return "", false // another Bundle has been installed in the meantime
	}

	return problem, served
}

// fetch reads the content of a Bundle. served reports whether a replica has responded with this content.
func (f *fixture) fetch(connection *http.Client, bundle *v1alpha1.Bundle) (problem string, served bool) {
	request, err := http.NewRequestWithContext(ctx(f), http.MethodGet, bundle.Status.ContentURL, nil)
	if err != nil {
		return err.Error(), false
	}

	request.Header.Set("Authorization", "Bearer "+f.token)
	request.Header.Set(observer, "yes")

	response, err := connection.Do(request)
	if err != nil {
		return "", false // no replica is running
	}
	defer response.Body.Close()

	sum := sha256.New()

	switch _, err := io.Copy(sum, response.Body); {
	case err != nil, response.StatusCode == http.StatusServiceUnavailable:
		return "", false
	case response.StatusCode != http.StatusOK:
		return fmt.Sprintf("the content of the active Bundle %s is not served: %d", bundle.Name, response.StatusCode), false
	}

	if got := hex.EncodeToString(sum.Sum(nil)); !strings.HasSuffix(bundle.Status.Digest, got) {
		return fmt.Sprintf("the content of Bundle %s has the digest %s instead of %s", bundle.Name, got, bundle.Status.Digest), false
	}

	return "", true
}
