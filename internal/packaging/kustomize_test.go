package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// kustomized renders a folder of resources/kustomize.
func kustomized(t *testing.T, folder string) []*unstructured.Unstructured {
	t.Helper()

	rendered, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), filepath.Join(resourcesFolder, kustomizeFolder, folder))
	if err != nil {
		t.Fatal(err)
	}

	content, err := rendered.AsYaml()
	if err != nil {
		t.Fatal(err)
	}

	objects, err := parse(content)
	if err != nil {
		t.Fatal(err)
	}

	return objects
}

// TestKustomizationsAreTheChart compares the Pods of the kustomizations with those that the chart creates from the same values.
func TestKustomizationsAreTheChart(t *testing.T) {
	values, err := os.ReadFile(filepath.Join(resourcesFolder, kustomizeValues))
	if err != nil {
		t.Fatal(err)
	}

	files, err := chartFiles(os.DirFS(resourcesFolder))
	if err != nil {
		t.Fatal(err)
	}

	rendered, err := renderChart(files, types.NamespacedName{Namespace: namespace, Name: kustomizeRelease}, string(values))
	if err != nil {
		t.Fatal(err)
	}

	chart := deployments(t, rendered)
	objects := append(kustomized(t, "base"), kustomized(t, "bundler")...)

	for service, got := range deployments(t, objects) {
		if diff := cmp.Diff(chart[service].Spec.Template.Spec, got.Spec.Template.Spec, cmpopts.IgnoreFields(corev1.ConfigMapEnvSource{}, "LocalObjectReference")); diff != "" {
			t.Errorf("%s: -chart +kustomization\n%s", service, diff)
		}
	}

	if len(objects) < len(rendered) {
		t.Errorf("the kustomizations have %d objects, the chart has %d", len(objects), len(rendered))
	}
}

// TestOverlay checks what the example adds to the base: a namespace, an image, replicas, and variables, whose changes replace the
// Pods.
func TestOverlay(t *testing.T) {
	objects := kustomized(t, "example")

	known := map[string]bool{}
	for _, variables := range configurations() {
		for _, each := range variables {
			known[each.Name] = true
		}
	}

	deployed := 0

	for service, deployment := range deployments(t, objects) {
		deployed++
		container := deployment.Spec.Template.Spec.Containers[0]

		if container.Image != "ghcr.io/environment-broker/environment-broker:1.2.3" || deployment.Namespace != namespace {
			t.Errorf("%s has the image %s in the namespace %s", service, container.Image, deployment.Namespace)
		}

		// The name of the ConfigMap contains a hash of its content.
		name := container.EnvFrom[len(container.EnvFrom)-1].ConfigMapRef.Name
		if name == deployment.Name {
			t.Errorf("%s: the name of the ConfigMap does not change with its content", service)
		}

		variables := find[corev1.ConfigMap](t, objects, "ConfigMap", name).Data
		for variable := range variables {
			if !known[variable] {
				t.Errorf("%s: no service has a variable %s", service, variable)
			}
		}

		if host := variables["APP_DATABASE_HOST"]; !strings.HasSuffix(service, "bundler") && (host != "postgres.databases.svc" || variables["APP_STATUS_ADDRESS"] == "") {
			t.Errorf("%s: the overlay is not merged into the base: %v", service, variables)
		}

		want := int32(2)
		if strings.HasSuffix(service, "broker-broker") {
			want = 3
		}

		if *deployment.Spec.Replicas != want {
			t.Errorf("%s has %d replicas, want %d", service, *deployment.Spec.Replicas, want)
		}
	}

	if deployed != len(servicePrefixes()) {
		t.Errorf("the example deploys %d services", deployed)
	}

	for _, binding := range names(objects, "ClusterRoleBinding") {
		for _, subject := range find[rbacv1.ClusterRoleBinding](t, objects, "ClusterRoleBinding", binding).Subjects {
			if subject.Namespace != namespace {
				t.Errorf("the subject of %s is in the namespace %q", binding, subject.Namespace)
			}
		}
	}

	for _, object := range objects {
		if _, helm := object.GetLabels()["helm.sh/chart"]; helm || object.GetLabels()["app.kubernetes.io/managed-by"] != "" {
			t.Errorf("%s %s has labels of Helm", object.GetKind(), object.GetName())
		}
	}
}
