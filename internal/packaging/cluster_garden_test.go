//go:build garden

package main

import (
	"os"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	k8sruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/environment-broker/environment-broker/bundle/bundletest"
	"github.com/environment-broker/environment-broker/test/apiserver"
)

// cluster is a real API server. It has no nodes, so Pods do not run.
var cluster *rest.Config

func TestMain(m *testing.M) { os.Exit(apiserver.Main(m, &cluster, apiserver.CRDs)) }

// restricted creates the namespace of the release, in which Pod Security enforces the restricted level.
func restricted(t *testing.T) client.Client {
	t.Helper()

	connection := bundletest.Client(t, cluster)

	err := connection.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: namespace, Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"},
	}})
	if client.IgnoreAlreadyExists(err) != nil {
		t.Fatal(err)
	}

	return connection
}

// apply sends the objects to the API server with a server-side apply as a dry run, which rejects unknown fields. It omits kinds
// that other projects define.
func apply(t *testing.T, connection client.Client, objects []*unstructured.Unstructured) {
	t.Helper()

	applied := 0

	for _, object := range objects {
		if strings.Contains(object.GetAPIVersion(), "monitoring.coreos.com/") || strings.Contains(object.GetAPIVersion(), "gateway.networking.k8s.io/") {
			continue
		}

		applied++

		if err := connection.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(object), client.DryRunAll, client.FieldOwner("packaging")); err != nil {
			t.Errorf("%s %s: %v", object.GetKind(), object.GetName(), err)
		}
	}

	if applied < 8 {
		t.Errorf("only %d objects were applied", applied)
	}
}

// createPods creates a Pod from each template as a dry run, so that Pod Security checks it. For Deployments, Pod Security would
// only print warnings.
func createPods(t *testing.T, connection client.Client, objects []*unstructured.Unstructured) {
	t.Helper()

	for _, object := range objects {
		if object.GetKind() != "Deployment" {
			continue
		}

		var deployment appsv1.Deployment
		if err := k8sruntime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &deployment); err != nil {
			t.Fatal(err)
		}

		template := deployment.Spec.Template
		template.Name, template.Namespace = deployment.Name, namespace

		if err := connection.Create(t.Context(), &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}, client.DryRunAll); err != nil {
			t.Errorf("a Pod of %s: %v", deployment.Name, err)
		}
	}
}

// TestAPIServerAcceptsTheChart applies the objects of the chart to a real API server, whose Pod Security enforces the restricted
// level.
func TestAPIServerAcceptsTheChart(t *testing.T) {
	connection := restricted(t)

	for name, changes := range map[string]string{
		"production": "", "evaluation": "",
		"everything": `
broker:
  env: [{name: HTTPS_PROXY, value: "http://proxy:3128"}]
  podLabels: {team: platform}
  podAnnotations: {team: platform}
  nodeSelector: {disk: ssd}
  tolerations: [{key: dedicated, operator: Exists}]
  affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: disk, operator: Exists}]}]}}}
  volumes: [{name: audit, emptyDir: {}}]
  volumeMounts: [{name: audit, mountPath: /audit}]
  service: {type: LoadBalancer, annotations: {team: platform}}
  serviceAccount: {annotations: {team: platform}, automountToken: true}
bundler: {storage: {ephemeral: false, accessMode: ReadWriteMany, storageClassName: shared}}
image: {digest: "sha256:0123456789012345678901234567890123456789012345678901234567890123", pullSecrets: [registry]}
networkPolicy:
  egress: [{to: [{ipBlock: {cidr: 10.0.0.0/8}}], ports: [{port: 8443, protocol: TCP}]}]
ingress: {annotations: {team: platform}}
`,
	} {
		t.Run(name, func(t *testing.T) {
			file := name
			if !slices.Contains([]string{"production", "evaluation"}, name) {
				file = "production"
			}

			objects := mustRender(t, file, changes)
			apply(t, connection, objects)
			createPods(t, connection, objects)
		})
	}
}

// TestAPIServerAcceptsTheKustomization applies the example of a kustomization to the same API server.
func TestAPIServerAcceptsTheKustomization(t *testing.T) {
	connection := restricted(t)
	objects := kustomized(t, "example")
	apply(t, connection, objects)
	createPods(t, connection, objects)
}

// TestPodSecurityRefuses checks that the namespace of the tests refuses Pods without the security context of the chart.
func TestPodSecurityRefuses(t *testing.T) {
	err := restricted(t).Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "unsafe", Namespace: namespace},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "unsafe", Image: "unsafe"}}},
	}, client.DryRunAll)
	if err == nil || !strings.Contains(err.Error(), `violates PodSecurity "restricted`) {
		t.Errorf("the API server responds %v", err)
	}
}
