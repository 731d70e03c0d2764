//go:build garden

package installer_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/environment-broker/environment-broker/internal/clients/applier"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/provisioner/installation"
)

func TestWebhookThatDoesNotAnswerYet(t *testing.T) {
	c := newCluster(t)
	c.install(release{"a": configMap("one", "1")}, plan(c.part("a")))
	webhook := "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingWebhookConfiguration\nmetadata: {name: " + c.group() + "}\nwebhooks:\n" +
		"- name: it." + c.group() + "\n  sideEffects: None\n  admissionReviewVersions: [v1]\n  timeoutSeconds: 1\n  clientConfig: {url: \"https://127.0.0.1:1/\"}\n" +
		"  namespaceSelector: {matchLabels: {" + applier.LabelInstallation + ": " + c.runtime + "}}\n" +
		"  rules: [{apiGroups: [\"\"], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [configmaps]}]\n"
	parts, wanted := release{"a": configMap("one", "1"), "w": webhook, "b": configMap("two", "1")}, plan(c.part("a"), c.part("w"), c.part("b"))
	c.calls.meddle(func(request *http.Request) *http.Response {
		if strings.HasSuffix(request.URL.Path, "/configmaps/two") { // The API server starts to use a new webhook with a delay.
			c.awaitWebhook()
		}
		return nil
	})
	progress, err := until(func() (installation.Progress, error) { return c.step(parts, wanted) })
	c.calls.meddle(nil)
	if want := "component 3 of 3 (b): the API server of the cluster reports an error about ConfigMap "; !failure.Is(err, failure.Transient) || !strings.HasPrefix(failure.Of(err).Text, want) ||
		!strings.Contains(failure.Of(err).Detail, "failed calling webhook") {
		t.Fatalf("%+v, %v, want %q", progress, err, want)
	}
	if err := c.Delete(t.Context(), c.object("admissionregistration.k8s.io", "v1", "ValidatingWebhookConfiguration", "", c.group())); err != nil {
		t.Fatal(err)
	}
	// The API server stops calling a deleted webhook with a delay.
	progress, err = until(again(func() (installation.Progress, error) { return c.step(parts, wanted) }, always))
	if err != nil || !progress.Done {
		t.Errorf("%+v, %v", progress, err)
	}
}

// awaitWebhook waits until the API server calls a webhook for ConfigMaps.
func (c *cluster) awaitWebhook() {
	c.Helper()
	clients, err := kubernetes.NewForConfig(rest.CopyConfig(api))
	if err != nil {
		c.Fatal(err)
	}
	probe := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "probe"}}
	ticker := time.NewTicker(30 * time.Millisecond)
	defer ticker.Stop()
	for deadline := time.Now().Add(patience); ; <-ticker.C {
		_, err := clients.CoreV1().ConfigMaps(c.namespace()).Create(c.Context(), probe, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err != nil && strings.Contains(err.Error(), "failed calling webhook") {
			return
		}
		if time.Now().After(deadline) {
			c.Fatalf("the API server does not call the webhook: %v", err)
		}
	}
}
