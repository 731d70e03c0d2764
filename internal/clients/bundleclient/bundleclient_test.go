package bundleclient_test

import (
	"context"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sirupsen/logrus/hooks/test"
	"go.uber.org/goleak"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/environment-broker/environment-broker/bundle/api/v1alpha1"
	"github.com/environment-broker/environment-broker/internal/clients/bundleclient"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakehub"
)

func TestMain(m *testing.M) {
	// client-go keeps idle connections of each kubeconfig.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("net/http.(*persistConn).readLoop"), goleak.IgnoreAnyFunction("net/http.(*persistConn).writeLoop"))
}

// sensitive is a part of the credentials and of responses. Errors must not contain it.
const sensitive = "hush-hush"

// hub is a simulated API server of the bundle provisioner, and the kubeconfig of its administrator.
type hub struct {
	client.Client

	kubeconfig string
}

func startHub(t *testing.T) hub {
	t.Helper()

	log, _ := test.NewNullLogger()

	opened, err := fakehub.Open(t.Context(), t.TempDir(), log)
	if err != nil {
		t.Fatal(err)
	}

	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)

	go func() { ended <- opened.Run(ctx) }()

	t.Cleanup(func() {
		cancel()

		if err := <-ended; err != nil {
			t.Error(err)
		}
	})

	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}

	api, err := client.New(opened.Config(), client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}

	kubeconfig, err := opened.Kubeconfig()
	if err != nil {
		t.Fatal(err)
	}

	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(path, kubeconfig, 0o600); err != nil {
		t.Fatal(err)
	}

	return hub{api, path}
}

// write writes a kubeconfig for the connection, and returns the path of its file.
func write(t *testing.T, config *rest.Config) string {
	t.Helper()

	content := clientcmdapi.NewConfig()
	content.Clusters["hub"] = &clientcmdapi.Cluster{Server: config.Host, CertificateAuthorityData: config.CAData}
	content.AuthInfos["hub"] = &clientcmdapi.AuthInfo{Token: config.BearerToken}
	content.Contexts["hub"] = &clientcmdapi.Context{Cluster: "hub", AuthInfo: "hub"}
	content.CurrentContext = "hub"

	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*content, path); err != nil {
		t.Fatal(err)
	}

	return path
}

// deployment returns a BundleDeployment of a runtime.
func deployment(name, runtimeID string) *v1alpha1.BundleDeployment {
	source := v1alpha1.BundleSource{Type: v1alpha1.SourceTypeImage, Image: &v1alpha1.ImageSource{Ref: "registry.example.com/" + name}}

	return &v1alpha1.BundleDeployment{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{bundleclient.LabelRuntime: runtimeID}},
		Spec: v1alpha1.BundleDeploymentSpec{
			ProvisionerClassName: "plain", Template: v1alpha1.BundleTemplate{Spec: v1alpha1.TemplateSpec{ProvisionerClassName: "plain", Source: source}},
		},
	}
}

func TestDeployments(t *testing.T) {
	h := startHub(t)

	for i := range 5 {
		if err := h.Create(t.Context(), deployment(fmt.Sprintf("component-%d", i), fmt.Sprintf("runtime-%d", i%2))); err != nil {
			t.Fatal(err)
		}
	}

	reader := &bundleclient.Client{KubeconfigPath: h.kubeconfig}

	if err := reader.Probe(t.Context()); err != nil {
		t.Errorf("probe: %v", err)
	}

	var names []string

	for query, pages := (bundleclient.Query{Limit: 2}), 0; ; pages++ {
		page, err := reader.Deployments(t.Context(), query)
		if err != nil || len(page.Deployments) > 2 || pages > 3 {
			t.Fatalf("page %d: %d, %v", pages, len(page.Deployments), err)
		}

		for _, each := range page.Deployments {
			names = append(names, each.Name)
		}

		if query.Continue = page.Continue; query.Continue == "" {
			break
		}
	}

	if got := strings.Join(names, " "); got != "component-0 component-1 component-2 component-3 component-4" {
		t.Errorf("the pages have %s", got)
	}

	page, err := reader.Deployments(t.Context(), bundleclient.Query{RuntimeID: "runtime-1", Limit: 10})
	if err != nil || len(page.Deployments) != 2 {
		t.Errorf("of a runtime: %d, %v", len(page.Deployments), err)
	}

	for reason, query := range map[string]bundleclient.Query{
		"no value of a label":  {RuntimeID: "a,b=c", Limit: 10},
		"no page of this list": {Continue: "none", Limit: 10},
	} {
		if _, err := reader.Deployments(t.Context(), query); failure.KindOf(err) != failure.Invalid {
			t.Errorf("%s: %v", reason, err)
		}
	}
}

func TestDeployment(t *testing.T) {
	h := startHub(t)
	reader := &bundleclient.Client{KubeconfigPath: h.kubeconfig}

	stored := deployment("eventing", "runtime-1")
	if err := h.Create(t.Context(), stored); err != nil {
		t.Fatal(err)
	}

	labelled := map[string]string{v1alpha1.LabelOwnerKind: v1alpha1.KindBundleDeployment, v1alpha1.LabelOwnerName: "eventing"}

	for name, owners := range map[string][]metav1.OwnerReference{
		"made": {*metav1.NewControllerRef(stored, v1alpha1.GroupVersion.WithKind(v1alpha1.KindBundleDeployment))}, "pretends": nil,
	} {
		if err := h.Create(t.Context(), &v1alpha1.Bundle{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labelled, OwnerReferences: owners},
			Spec:       v1alpha1.BundleSpec{ProvisionerClassName: "plain", Source: stored.Spec.Template.Spec.Source},
		}); err != nil {
			t.Fatal(err)
		}
	}

	found, bundles, err := reader.Deployment(t.Context(), "eventing")
	if err != nil || found.UID != stored.UID || len(bundles) != 1 || bundles[0].Name != "made" {
		t.Errorf("got %s with %d Bundles, %v", found.Name, len(bundles), err)
	}

	for _, name := range []string{"none", "NONE", "a/b", "a%b", ".", ".."} {
		if _, _, err := reader.Deployment(t.Context(), name); failure.KindOf(err) != failure.NotFound {
			t.Errorf("%s is missing: %v", name, err)
		}
	}
}

// TestFaults reads from servers that do not work, and with unusable kubeconfigs. Errors name the variable or the status, and no secret.
func TestFaults(t *testing.T) {
	respond := func(status int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			_, _ = w.Write([]byte(body))
		}
	}

	for _, test := range []struct {
		reason string
		serve  http.HandlerFunc
		want   string
	}{
		{"the token is wrong", respond(http.StatusUnauthorized, sensitive), "rejects the credentials with status 401"},
		{"the user lacks a role", respond(http.StatusForbidden, sensitive), "rejects the credentials with status 403"},
		{"the kinds are not installed", respond(http.StatusNotFound, sensitive), "does not know the kind BundleDeployment"},
		{"an error of the server", respond(http.StatusInternalServerError, sensitive), "responds with status 500"},
		{"no JSON", respond(http.StatusOK, sensitive), "does not respond"},
		{"a large response", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(`{"apiVersion":"core.rukpak.io/v1alpha1","kind":"BundleDeploymentList","items":[{"metadata":{"name":"`))

			for range 33 {
				_, _ = w.Write([]byte(strings.Repeat("x", 1<<20)))
			}

			_, _ = w.Write([]byte(`"}}]}`))
		}, "more than 33554432 bytes"},
		{"a lost connection", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, "does not respond"},
	} {
		server := httptest.NewTLSServer(test.serve)
		authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
		reader := &bundleclient.Client{KubeconfigPath: write(t, &rest.Config{
			Host: server.URL, BearerToken: sensitive, TLSClientConfig: rest.TLSClientConfig{CAData: authority},
		})}

		_, err := reader.Deployments(t.Context(), bundleclient.Query{Limit: 10})
		if failure.KindOf(err) != failure.Transient || !strings.Contains(fmt.Sprint(err), test.want) || strings.Contains(fmt.Sprint(err), sensitive) {
			t.Errorf("%s: %v", test.reason, err)
		}

		server.Close()
	}

	plain := write(t, &rest.Config{Host: "http://127.0.0.1:9", BearerToken: sensitive})
	rubbish := filepath.Join(t.TempDir(), "rubbish")

	if err := os.WriteFile(rubbish, []byte(sensitive), 0o600); err != nil {
		t.Fatal(err)
	}

	for _, path := range []string{plain, rubbish, filepath.Join(t.TempDir(), "none")} {
		_, err := (&bundleclient.Client{KubeconfigPath: path}).Deployments(t.Context(), bundleclient.Query{Limit: 10})
		if !strings.Contains(fmt.Sprint(err), "APP_CONSOLE_BUNDLES_KUBECONFIG_PATH") || strings.Contains(fmt.Sprint(err), sensitive) {
			t.Errorf("%s: %v", path, err)
		}
	}
}
