//go:build garden

package service_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/environment-broker/environment-broker/bundle/api/v1alpha1"
	"github.com/environment-broker/environment-broker/bundle/bundletest"
)

// leftByRukpak creates the objects that rukpak v0.15 leaves on a cluster when its controllers are stopped: a BundleDeployment with its Bundle and
// an installed object. It returns the BundleDeployment.
func leftByRukpak(t *testing.T, cluster client.Client, namespace, class string) *v1alpha1.BundleDeployment {
	t.Helper()

	source := v1alpha1.BundleSource{Type: v1alpha1.SourceTypeConfigMaps, ConfigMaps: []v1alpha1.ConfigMapSource{{
		ConfigMap: v1alpha1.LocalReference{Name: "content"}, Path: "manifests",
	}}}
	deployment := &v1alpha1.BundleDeployment{
		ObjectMeta: metav1.ObjectMeta{Name: "rukpak-" + namespace},
		Spec: v1alpha1.BundleDeploymentSpec{
			ProvisionerClassName: class, Template: v1alpha1.BundleTemplate{Spec: v1alpha1.TemplateSpec{ProvisionerClassName: class, Source: source}},
		},
	}
	content := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "content"}, Immutable: new(true),
		Data: map[string]string{"a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: installed, namespace: " + namespace + "}\ndata: {key: wanted}\n"},
	}

	for _, object := range []client.Object{content, deployment} {
		if err := cluster.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}

	bundle := &v1alpha1.Bundle{
		ObjectMeta: metav1.ObjectMeta{
			Name: deployment.Name + "-1a2b3c", Finalizers: []string{"core.rukpak.io/delete-cached-bundle"},
			Labels: map[string]string{v1alpha1.LabelOwnerKind: v1alpha1.KindBundleDeployment, v1alpha1.LabelOwnerName: deployment.Name, v1alpha1.LabelTemplateHash: "1a2b3c"},
		},
		Spec: v1alpha1.BundleSpec{ProvisionerClassName: class, Source: source},
	}
	objects := []client.Object{bundle}

	objects = append(objects, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: "installed",
			Labels:      map[string]string{v1alpha1.LabelOwnerKind: v1alpha1.KindBundleDeployment, v1alpha1.LabelOwnerName: deployment.Name},
			Annotations: map[string]string{"meta.helm.sh/release-name": deployment.Name, "meta.helm.sh/release-namespace": "rukpak-system"},
		},
		Data: map[string]string{"key": "former"},
	})

	for _, object := range objects {
		if err := controllerutil.SetControllerReference(deployment, object, cluster.Scheme()); err != nil {
			t.Fatal(err)
		}

		if err := cluster.Create(t.Context(), object, client.FieldOwner("core")); err != nil {
			t.Fatal(err)
		}
	}

	bundle.Status = v1alpha1.BundleStatus{
		Phase: v1alpha1.PhaseUnpacked, ContentURL: "https://core.rukpak-system.svc/bundles/" + bundle.Name + ".tgz", ResolvedSource: &source,
		ObservedGeneration: 1, Conditions: []metav1.Condition{{
			Type: v1alpha1.TypeUnpacked, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonUnpackSuccessful, LastTransitionTime: metav1.Now(),
		}},
	}
	deployment.Status = v1alpha1.BundleDeploymentStatus{ActiveBundle: bundle.Name, ObservedGeneration: 1, Conditions: []metav1.Condition{{
		Type: v1alpha1.TypeInstalled, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonInstallationSucceeded, LastTransitionTime: metav1.Now(),
	}}}

	for _, object := range []client.Object{bundle, deployment} {
		if err := cluster.Status().Update(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}

	return deployment
}

// TestMigrationFromRukpak starts the service on a cluster on which rukpak has installed a BundleDeployment, and deletes it.
func TestMigrationFromRukpak(t *testing.T) {
	cluster, namespace := bundletest.Client(t, api), bundletest.Namespace(t, api)
	config := settings(t, namespace)
	config.Deployments.Enabled, config.Deployments.TokenFile = true, contentToken(t, namespace)
	deployment := leftByRukpak(t, cluster, namespace, config.Deployments.PlainClass)
	former := deployment.Status.ActiveBundle

	start(t, config)

	bundletest.Eventually(t, func() string {
		list := &v1alpha1.BundleList{}
		if err := cluster.List(t.Context(), list, client.MatchingLabels{v1alpha1.LabelOwnerName: deployment.Name}); err != nil {
			return err.Error()
		}

		if len(list.Items) != 1 || list.Items[0].Name == former {
			return "the Bundle of rukpak is not replaced"
		}

		return ""
	})
	reachesInstalled(t, cluster, deployment)

	if deployment.Status.ActiveBundle == former || len(deployment.Status.History) != 1 {
		t.Errorf("the status is %+v", deployment.Status)
	}

	object := &corev1.ConfigMap{}
	if err := cluster.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "installed"}, object); err != nil || object.Data["key"] != "wanted" {
		t.Errorf("the object has %v: %v", object.Data, err)
	}

	if err := cluster.Delete(t.Context(), deployment); err != nil {
		t.Fatal(err)
	}

	bundletest.Eventually(t, func() string {
		if err := cluster.Get(t.Context(), client.ObjectKeyFromObject(object), object); !apierrors.IsNotFound(err) {
			return "the object remains"
		}

		return ""
	})
}
