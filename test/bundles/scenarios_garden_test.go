//go:build garden

package bundles

import (
	"bytes"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/environment-broker/environment-broker/bundle/api/v1alpha1"
	"github.com/environment-broker/environment-broker/bundle/bundletest"
	"github.com/environment-broker/environment-broker/bundle/content"
)

// scenario is a change of a BundleDeployment.
type scenario struct {
	name  string
	onHub bool
	// replicas is the number of bundler replicas; 0 means 1.
	replicas int
	// prepare is called before faults are injected, and may be nil. act makes the change.
	prepare, act func(f *fixture)
	// end returns "" if the expected final state is reached. Otherwise, it returns the problem.
	end func(f *fixture) string
}

func scenarios() []scenario {
	firstInstalled := func(f *fixture) string { return f.installed("1", v1alpha1.ReasonInstallationSucceeded) }
	install := func(f *fixture) {
		f.deploy(f.template(f.class(), f.image("1", f.manifests("1"))))
		bundletest.Eventually(f, func() string { return firstInstalled(f) })
	}

	return []scenario{
		{
			name: "install", act: func(f *fixture) { f.deploy(f.template(f.class(), f.image("1", f.manifests("1")))) }, end: firstInstalled,
		},
		{
			name: "pivot", prepare: install, act: func(f *fixture) { f.deploy(f.template(f.class(), f.image("2", f.manifests("2")))) },
			end: func(f *fixture) string { return f.installed("2", v1alpha1.ReasonInstallationSucceeded) },
		},
		{
			name: "failing pivot", prepare: install, act: func(f *fixture) { f.deploy(f.template(f.class(), f.image("2", f.invalid("2")))) },
			end: func(f *fixture) string { return f.installed("1", v1alpha1.ReasonUpgradeFailed) },
		},
		{
			name: "uninstall", prepare: install, end: (*fixture).removed,
			act: func(f *fixture) {
				if err := f.hub.Delete(f.Context(), &v1alpha1.BundleDeployment{ObjectMeta: metav1.ObjectMeta{Name: f.name}}); err != nil {
					f.Fatal(err)
				}
			},
		},
		{name: "upload", act: (*fixture).upload, end: firstInstalled},
		{name: "drift", onHub: true, prepare: install, act: (*fixture).drift, end: firstInstalled},
		{
			name: "registry", act: func(f *fixture) { f.deploy(f.template(f.registryClass(), f.image("1", f.operator()))) },
			end: func(f *fixture) string { return f.installed("", v1alpha1.ReasonInstallationSucceeded) },
		},
	}
}

// drift deletes an installed object, changes another one, and removes the labels of a third one.
func (f *fixture) drift() {
	f.Helper()

	object := func(name string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: f.name + "-" + name}}
	}

	if err := f.on.Delete(f.Context(), object("first")); err != nil {
		f.Fatal(err)
	}

	for name, patch := range map[string]string{
		"second": `{"data": {"version": "drift"}, "metadata": {"annotations": {"version": "drift"}}}`,
		"only-1": fmt.Sprintf(`{"metadata": {"labels": {%q: null, %q: null}}}`, v1alpha1.LabelOwnerKind, v1alpha1.LabelOwnerName),
	} {
		if err := f.on.Patch(f.Context(), object(name), client.RawPatch("application/merge-patch+json", []byte(patch))); err != nil {
			f.Fatal(err)
		}
	}
}

// upload creates a BundleDeployment whose content is uploaded, and repeats the upload until the bundler has accepted it.
func (f *fixture) upload() {
	f.Helper()

	f.deploy(f.template(f.class(), v1alpha1.BundleSource{Type: v1alpha1.SourceTypeUpload, Upload: &v1alpha1.UploadSource{}}))

	connection, err := content.NewClient(content.ClientOptions{Token: f.token, CA: authority(f.front), Timeout: 10 * time.Second})
	if err != nil {
		f.Fatal(err)
	}
	defer connection.Close()

	packed := f.pack(f.manifests("1"))

	bundletest.Eventually(f, func() string {
		bundles := f.bundles()
		if len(bundles) != 1 {
			return fmt.Sprintf("there are %d Bundles", len(bundles))
		}

		if _, err := connection.Upload(f.Context(), f.front.URL, bundles[0].Name, bytes.NewReader(packed), int64(len(packed))); err != nil {
			return err.Error()
		}

		return ""
	})
}
