//go:build garden

package e2e

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/environment-broker/environment-broker/bundle/api/v1alpha1"
	"github.com/environment-broker/environment-broker/provisioner/installation/bundles"
	provisioner "github.com/environment-broker/environment-broker/provisioner/service"
	"github.com/environment-broker/environment-broker/test/harness"
)

// TestSourcesOfPlans orders an instance through the OSB API. The control plane adds a component with a source to the instance's
// plan, and the Provisioner installs the component through a bundle provisioner.
func TestSourcesOfPlans(t *testing.T) {
	t.Parallel()

	h, s := startHub(t), startSources(t)

	const path = "/added.yaml"

	s.contents[path] = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: added-first}\ndata: {size: \"1\"}\n"

	p := startControlPlane(t, append(h.variables(),
		"APP_KYMA_SOURCES_CACHE_PATH="+t.TempDir(), "APP_KYMA_SOURCES_CA_FILE="+s.certificate, "APP_KYMA_SOURCES_NETWORKS=127.0.0.1/32")...)
	p.configMap("plans", map[string]string{"preview": fmt.Sprintf(
		"additional-components: [{name: added, namespace: kyma-system, source: {url: '%s%s#sha256=%x'}}]", s.url, path, sha256.Sum256([]byte(s.contents[path])),
	)}, "keb-config=true", "runtime-version-1.0.0=true")

	p.orderIn("mine", "account", "plain", "")
	p.WantSucceeded("mine")

	added, err := harness.RuntimeClient(t, p.kubeconfig("mine")).CoreV1().ConfigMaps("kyma-system").Get(t.Context(), "added-first", metav1.GetOptions{})
	if err != nil || added.Data["size"] != "1" {
		t.Errorf("the runtime has %+v, %v", added, err)
	}

	if deployments, _, _ := h.objects(t.Context()); !slices.ContainsFunc(deployments, func(one v1alpha1.BundleDeployment) bool {
		return one.Labels[bundles.LabelComponent] == "added" && one.Status.ActiveBundle != ""
	}) {
		t.Errorf("%d BundleDeployments, none of the component", len(deployments))
	}

	p.Delete("mine", harness.PlanPreview)
	p.WantGone("mine")
	h.wantEmpty()
}

// variables returns the environment variables with which a Provisioner uses the hub.
func (h *hub) variables() []string {
	var config provisioner.Config

	h.configure(&config)
	found := config.Kyma.Bundles

	return []string{
		"APP_KYMA_BUNDLES_KUBECONFIG_PATH=" + found.KubeconfigPath, "APP_KYMA_BUNDLES_CONTENT_ADDRESS=" + found.ContentAddress, "APP_KYMA_BUNDLES_CA_FILE=" + found.CAFile,
	}
}
