package kyma_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/environment-broker/environment-broker/broker/catalog"
	"github.com/environment-broker/environment-broker/broker/kyma"
	"github.com/environment-broker/environment-broker/internal/clients/lifecyclemanager"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/resources"
)

// managed returns a Kyma of a broker with Lifecycle Manager, and an instance that was ordered from it.
func managed(t *testing.T, served *controlPlane) (kyma.Kyma, environment.Instance) {
	t.Helper()

	plans, err := catalog.Load(resources.Catalog(), catalog.Options{KubernetesVersion: "1.34", OperationTimeout: time.Hour, LifecycleManager: true})
	if err != nil {
		t.Fatal(err)
	}

	subject := newKyma(t, served)
	subject.Catalog, subject.Version = plans, ""

	instance := ordered()
	instance.RuntimeID = "r-1"
	instance.Request.Cluster.Kyma.Installer = environment.InstallerLifecycleManager

	return subject, instance
}

// TestTemplates checks where the template comes from: the key of the plan, or default, in the only ConfigMap with the plans, or else the
// file of the plan.
func TestTemplates(t *testing.T) {
	t.Parallel()

	plans := func(name string, data map[string]string) corev1.ConfigMap {
		return config(name, data, "keb-config=true")
	}
	template := func(namespace string) string {
		return "additional-components: []\nkyma-template: |\n  apiVersion: operator.kyma-project.io/v1beta1\n  kind: Kyma\n  metadata: {namespace: " + namespace + "}"
	}

	for name, test := range map[string]struct {
		configs []corev1.ConfigMap
		want    string
		err     string
	}{
		"None":       {nil, "kymas.v1beta2.operator.kyma-project.io/kcp-system/r-1", ""},
		"Plan":       {[]corev1.ConfigMap{plans("a", map[string]string{"preview": template("mine"), "default": template("other")})}, "kymas.v1beta1.operator.kyma-project.io/mine/r-1", ""},
		"Default":    {[]corev1.ConfigMap{plans("a", map[string]string{"default": template("other")})}, "kymas.v1beta1.operator.kyma-project.io/other/r-1", ""},
		"NoTemplate": {[]corev1.ConfigMap{plans("a", map[string]string{"default": "additional-components: []"})}, "kymas.v1beta2.operator.kyma-project.io/kcp-system/r-1", ""},
		"Twice":      {[]corev1.ConfigMap{plans("a", nil), plans("b", nil)}, "", "2 ConfigMaps of the control plane configure the plans: remove all but one"},
		"Malformed":  {[]corev1.ConfigMap{plans("a", map[string]string{"default": "{"})}, "", "is not valid YAML"},
		"Invalid":    {[]corev1.ConfigMap{plans("a", map[string]string{"default": "kyma-template: 'kind: Kyma'"})}, "", "kyma-template of plan preview in the ConfigMap a of the control plane must have a kind, and an apiVersion"},
	} {
		subject, instance := managed(t, &controlPlane{configs: test.configs})

		got, err := subject.Objects(t.Context(), instance)
		if test.err != "" {
			if !failure.Is(err, failure.Permanent) || !strings.Contains(err.Error(), test.err) {
				t.Errorf("%s: got %v, want %q", name, err, test.err)
			}

			continue
		}

		if err != nil || got.Kyma.String() != test.want || got.Channel() != "regular" {
			t.Errorf("%s: got %s with channel %q, %v", name, got.Kyma, got.Channel(), err)
		}
	}
}

// TestTemplateBesideReconciler checks that the template comes from the ConfigMap for the default version, if there is one.
func TestTemplateBesideReconciler(t *testing.T) {
	t.Parallel()

	var configs []corev1.ConfigMap

	for _, version := range []string{"1.0.0", "2.0.0"} {
		text := "kyma-template: |\n  apiVersion: operator.kyma-project.io/v1beta2\n  kind: Kyma\n  metadata: {namespace: for-" + strings.ReplaceAll(version, ".", "-") + "}"
		configs = append(configs, config("plans-"+version, map[string]string{"default": text}, "keb-config=true", "runtime-version-"+version+"=true"))
	}

	subject, instance := managed(t, &controlPlane{configs: configs})
	subject.Version = "2.0.0"

	if got, err := subject.Objects(t.Context(), instance); err != nil || got.Kyma.Namespace != "for-2-0-0" {
		t.Errorf("got %s, %v", got.Kyma, err)
	}
}

// TestCompleteWithLifecycleManager checks that the Provisioner installs nothing, and that no version is chosen.
func TestCompleteWithLifecycleManager(t *testing.T) {
	t.Parallel()

	subject, instance := managed(t, &controlPlane{configs: []corev1.ConfigMap{config("kyma-versions", map[string]string{"SA_sub": "2.0.0"})}})

	completed, err := subject.Complete(t.Context(), instance)
	if err != nil || completed.Version != "" || completed.Installation != nil || completed.Installer != environment.InstallerLifecycleManager {
		t.Errorf("got %+v, %v", completed, err)
	}

	instance.Request.Cluster.Kyma.Installer = ""
	if _, err := subject.Complete(t.Context(), instance); !failure.Is(err, failure.Permanent) {
		t.Errorf("an instance of the Provisioner: %v", err)
	}
}

// TestTransport checks that other clients reach the control plane with its address and its credentials.
func TestTransport(t *testing.T) {
	t.Parallel()

	subject, instance := managed(t, &controlPlane{})

	objects, err := subject.Objects(t.Context(), instance)
	if err != nil {
		t.Fatal(err)
	}

	client := lifecyclemanager.New(subject.ControlPlane, kyma.CallTimeout)
	if _, err := client.Status(t.Context(), objects.Kyma); !failure.Is(err, failure.NotFound) {
		t.Errorf("got %v", err)
	}

	subject.ControlPlane.KubeconfigPath += ".missing"

	if err := client.ApplyKyma(t.Context(), objects); !failure.Is(err, failure.Transient) || !strings.Contains(err.Error(), "APP_CONTROL_PLANE_KUBECONFIG_PATH") {
		t.Errorf("without a kubeconfig: %v", err)
	}

	unavailable, _ := managed(t, &controlPlane{status: http.StatusServiceUnavailable})
	if _, err := unavailable.Objects(t.Context(), instance); !failure.Is(err, failure.Transient) {
		t.Errorf("during an outage: %v", err)
	}
}
