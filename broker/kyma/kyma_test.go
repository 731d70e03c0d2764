package kyma_test

import (
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/environment-broker/environment-broker/broker/catalog"
	"github.com/environment-broker/environment-broker/broker/kyma"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/resources"
)

// controlPlane serves the objects of the namespace kcp-system with the wire format of Kubernetes. Its token is "token".
type controlPlane struct {
	secrets []corev1.Secret
	configs []corev1.ConfigMap
	status  int
	// page, if not empty, is the page of a proxy that responds with status 404 instead of the ConfigMap with the versions.
	page string
}

func (c *controlPlane) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	selector, err := labels.Parse(r.URL.Query().Get("labelSelector"))
	path, own := strings.CutPrefix(r.URL.Path, "/base/api/v1/namespaces/kcp-system/")

	var answer any

	switch {
	case r.Header.Get("Authorization") != "Bearer token":
		w.WriteHeader(http.StatusUnauthorized)

		return
	case c.status != 0:
		w.WriteHeader(c.status)

		return
	case err != nil:
		w.WriteHeader(http.StatusBadRequest)

		return
	case own && path == "configmaps/kyma-versions" && c.page != "":
		w.WriteHeader(http.StatusNotFound)
		_, _ = w.Write([]byte(c.page))

		return
	case own && path == "secrets":
		list := corev1.SecretList{}
		for _, one := range c.secrets {
			if selector.Matches(labels.Set(one.Labels)) {
				list.Items = append(list.Items, one)
			}
		}
		answer = list
	case own && path == "configmaps":
		list := corev1.ConfigMapList{}
		for _, one := range c.configs {
			if selector.Matches(labels.Set(one.Labels)) {
				list.Items = append(list.Items, one)
			}
		}
		answer = list
	case own:
		for _, one := range c.configs {
			if path == "configmaps/"+one.Name {
				answer = one
			}
		}
	}

	if answer == nil {
		w.WriteHeader(http.StatusNotFound)

		answer = metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Code: http.StatusNotFound, Reason: metav1.StatusReasonNotFound}
	}

	content, err := json.Marshal(answer)
	if err != nil {
		w.WriteHeader(http.StatusInternalServerError)

		return
	}

	_, _ = w.Write(content)
}

func config(name string, data map[string]string, labels ...string) corev1.ConfigMap {
	return corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labelled(labels)}, Data: data}
}

func labelled(pairs []string) map[string]string {
	set := map[string]string{}

	for _, pair := range pairs {
		key, value, _ := strings.Cut(pair, "=")
		set[key] = value
	}

	return set
}

// newKyma returns a Kyma with the default version 1.0.0 that reads the control plane.
func newKyma(t *testing.T, served *controlPlane) kyma.Kyma {
	t.Helper()

	server := httptest.NewTLSServer(served)
	t.Cleanup(server.Close)

	path := filepath.Join(t.TempDir(), "kubeconfig")
	content := fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: c, clusters: [{name: c, cluster: {server: "%s/base", certificate-authority-data: %s}}],
		users: [{name: u, user: {token: token}}], contexts: [{name: c, context: {cluster: c, user: u}}]}`,
		server.URL, base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})))

	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}

	plans, err := catalog.Load(resources.Catalog(), catalog.Options{KubernetesVersion: "1.34", OperationTimeout: time.Hour, KymaVersion: "1.0.0"})
	if err != nil {
		t.Fatal(err)
	}

	return kyma.Kyma{
		Catalog: plans, Version: "1.0.0", VersionsNamespace: "kcp-system", VersionsName: "kyma-versions",
		ControlPlane: &kyma.ControlPlane{KubeconfigPath: path, Namespace: "kcp-system"},
	}
}

// ordered returns an instance of the preview plan with the eventing module.
func ordered() environment.Instance {
	return environment.Instance{
		PlanID: "5cb3d976-b85c-42ea-a636-79cadda109a9", PlanName: "preview", SubAccountID: "sub", GlobalAccountID: "global",
		Request: environment.Request{Cluster: environment.Cluster{Kyma: &environment.Kyma{Modules: []string{"eventing"}}}},
	}
}

func TestVersions(t *testing.T) {
	t.Parallel()

	for name, test := range map[string]struct {
		versions map[string]string
		ordered  string
		want     string
	}{
		"Default":       {nil, "", "1.0.0"},
		"Others":        {map[string]string{"SA_other": "2.0.0", "GA_other": "2.0.0", "GA_sub": "2.0.0"}, "", "1.0.0"},
		"GlobalAccount": {map[string]string{"GA_global": "2.0.0"}, "", "2.0.0"},
		"SubAccount":    {map[string]string{"GA_global": "2.0.0", "SA_sub": "3.0.0"}, "", "3.0.0"},
		"Ordered":       {map[string]string{"SA_sub": "3.0.0"}, "4.0.0", "4.0.0"},
	} {
		served := &controlPlane{}
		if test.versions != nil {
			served.configs = append(served.configs, config("kyma-versions", test.versions))
		}

		instance := ordered()
		instance.Request.Cluster.Kyma.Version = test.ordered

		got, err := newKyma(t, served).Complete(t.Context(), instance)
		if err != nil || got.Version != test.want || got.Installation.Version != test.want {
			t.Errorf("%s: got %+v, %v, want %s", name, got, err, test.want)
		}
	}
}

func names(kyma *environment.Kyma) []string {
	var names []string
	for _, component := range kyma.Installation.Components {
		names = append(names, component.Name)
	}

	return names
}

func TestAdditionalComponents(t *testing.T) {
	t.Parallel()

	plans := func(version, preview string) corev1.ConfigMap {
		return config("plans-"+version, map[string]string{
			"default": "additional-components: [{name: standard, namespace: kyma-system}]", "preview": preview,
		}, "keb-config=true", "runtime-version-"+version+"=true")
	}
	other := config("plans", map[string]string{"default": "additional-components: [{name: standard, namespace: kyma-system}]"},
		"keb-config=true", "runtime-version-1.0.0=true")
	standard := []string{"cluster-essentials", "compass-runtime-agent", "eventing"}

	for name, test := range map[string]struct {
		configs []corev1.ConfigMap
		version string
		added   []string
		err     string
	}{
		"None":         {nil, "", nil, ""},
		"Plan":         {[]corev1.ConfigMap{plans("1.0.0", "additional-components: [{name: dns, namespace: x}, {name: eventing, namespace: x}]")}, "", []string{"dns"}, ""},
		"DefaultKey":   {[]corev1.ConfigMap{other}, "", []string{"standard"}, ""},
		"OtherVersion": {[]corev1.ConfigMap{plans("pr-7", "additional-components: [{name: seven, namespace: x}]"), other}, "PR-7", []string{"seven"}, ""},
		"Fallback":     {[]corev1.ConfigMap{other}, "PR-7", []string{"standard"}, ""},
		"Twice":        {[]corev1.ConfigMap{other, plans("1.0.0", "")}, "", nil, "2 ConfigMaps"},
		"Source":       {[]corev1.ConfigMap{plans("1.0.0", "additional-components: [{name: dns, namespace: x, source: {url: 'https://x'}}]")}, "", nil, "write https://HOST/FILE#sha256=DIGEST"},
		"Malformed":    {[]corev1.ConfigMap{plans("1.0.0", "{")}, "", nil, "not valid YAML"},
	} {
		instance := ordered()
		instance.Request.Cluster.Kyma.Version = test.version

		got, err := newKyma(t, &controlPlane{configs: test.configs}).Complete(t.Context(), instance)

		switch {
		case test.err != "":
			if !failure.Is(err, failure.Permanent) || !strings.Contains(err.Error(), test.err) {
				t.Errorf("%s: got %v, want %q", name, err, test.err)
			}
		case err != nil:
			t.Errorf("%s: %v", name, err)
		default:
			if diff := cmp.Diff(append(standard[:3:3], test.added...), names(got)); diff != "" {
				t.Errorf("%s: -want +got\n%s", name, diff)
			}
		}
	}
}

// TestSources checks components that do not belong to the release. The Provisioner requires their digest.
func TestSources(t *testing.T) {
	t.Parallel()

	for installer, source := range map[environment.KymaInstaller]string{
		environment.InstallerReconciler:  "https://dns.example.com",
		environment.InstallerProvisioner: "https://dns.example.com/dns.tgz#sha256=" + strings.Repeat("0", 64),
	} {
		subject := newKyma(t, &controlPlane{configs: []corev1.ConfigMap{config("plans", map[string]string{
			"default": "additional-components: [{name: dns, namespace: x, source: {url: '" + source + "'}}]",
		}, "keb-config=true", "runtime-version-1.0.0=true")}})

		instance := ordered()
		instance.Request.Cluster.Kyma.Installer = installer

		got, err := subject.Complete(t.Context(), instance)
		if err != nil {
			t.Fatal(err)
		}

		want := environment.KymaComponent{Name: "dns", Namespace: "x", SourceURL: source}
		if diff := cmp.Diff(want, got.Installation.Components[len(got.Installation.Components)-1]); diff != "" {
			t.Errorf("%s: -want +got\n%s", installer, diff)
		}
	}
}

func TestOverrides(t *testing.T) {
	t.Parallel()

	secrets := func(name string, data map[string][]byte, labels ...string) corev1.Secret {
		return corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labelled(labels)}, Data: data}
	}
	subject := newKyma(t, &controlPlane{
		secrets: []corev1.Secret{
			secrets("all", map[string][]byte{"password": []byte("hush")}, "runtime-override=true"),
			secrets("one", map[string][]byte{"token": []byte("quiet"), "retries": []byte("1")}, "runtime-override=true", "component=eventing"),
			secrets("missing", map[string][]byte{"x": []byte("y")}, "runtime-override=true", "component=not-installed"),
			secrets("unlabelled", map[string][]byte{"x": []byte("y")}),
		},
		configs: []corev1.ConfigMap{
			config("mine", map[string]string{"retries": "7"}, "overrides-version-1.0.0=true", "overrides-plan-preview=true", "component=eventing"),
			config("other-plan", map[string]string{"retries": "8"}, "overrides-version-1.0.0=true", "overrides-plan-aws=true", "component=eventing"),
			config("other-version", map[string]string{"retries": "9"}, "overrides-version-2.0.0=true", "overrides-plan-preview=true", "component=eventing"),
		},
	})

	instance := ordered()

	completed, err := subject.Complete(t.Context(), instance)
	if err != nil {
		t.Fatal(err)
	}

	instance.Request.Cluster.Kyma = completed

	got, err := subject.Overrides(t.Context(), instance)
	if err != nil {
		t.Fatal(err)
	}

	want := map[string]string{"password": "hush secret", "eventing.token": "quiet secret", "eventing.retries": "7"}
	found := map[string]string{}

	add := func(prefix string, entries []environment.KymaEntry) {
		for _, entry := range entries {
			found[prefix+entry.Key] = entry.Value.Reveal()
			if entry.Secret {
				found[prefix+entry.Key] += " secret"
			}
		}
	}

	add("", got.Installation.Configuration)

	for _, component := range got.Installation.Components {
		add(component.Name+".", component.Configuration)
	}

	if diff := cmp.Diff(want, found); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}

	if text := fmt.Sprintf("%+v %#v", *got.Installation, *got.Installation); strings.Contains(text, "hush") || strings.Contains(text, "quiet") {
		t.Errorf("logs would contain secrets: %s", text)
	}

	instance.Request.Cluster.Kyma = got

	if stored, err := json.Marshal(environment.Data{Instance: instance}); err != nil || strings.Contains(string(stored), "hush") || strings.Contains(string(stored), "retries") {
		t.Errorf("the stored data contains overrides: %s, %v", stored, err)
	}

	if len(completed.Installation.Configuration) > 0 {
		t.Error("the overrides changed the completed installation")
	}
}

// TestMalformedVersions checks values of the ConfigMap with spaces around a version, and without a version.
func TestMalformedVersions(t *testing.T) {
	t.Parallel()

	complete := func(value string) (*environment.Kyma, error) {
		configs := []corev1.ConfigMap{config("kyma-versions", map[string]string{"GA_global": value})}

		return newKyma(t, &controlPlane{configs: configs}).Complete(t.Context(), ordered())
	}

	if got, err := complete(" 2.0.0\n"); err != nil || got.Version != "2.0.0" {
		t.Errorf("got %+v, %v", got, err)
	}

	if _, err := complete("2.0.0, 3.0.0"); !failure.Is(err, failure.Permanent) ||
		!strings.Contains(err.Error(), "the value of GA_global in the ConfigMap kyma-versions of the control plane is not a Kyma version") {
		t.Errorf("got %v", err)
	}
}

// TestVersionsBehindAProxy checks that the page of a proxy does not count as a missing ConfigMap: the runtime would get the default
// version instead of its account's.
func TestVersionsBehindAProxy(t *testing.T) {
	t.Parallel()

	for _, page := range []string{"<html>not found</html>", "404 page not found\n", `{"error": "no route"}`} {
		_, err := newKyma(t, &controlPlane{page: page}).Complete(t.Context(), ordered())
		if !failure.Is(err, failure.Transient) || !strings.Contains(err.Error(), "it responds with status 404, but not like an API server") ||
			strings.Contains(err.Error(), page) {
			t.Errorf("%s: %v", page, err)
		}
	}
}

func TestUnavailableControlPlane(t *testing.T) {
	t.Parallel()

	for _, status := range []int{http.StatusForbidden, http.StatusInternalServerError, http.StatusFound} {
		_, err := newKyma(t, &controlPlane{status: status}).Complete(t.Context(), ordered())
		if !failure.Is(err, failure.Transient) || !strings.Contains(err.Error(), "control plane") {
			t.Errorf("status %d: %v", status, err)
		}
	}

	if _, err := newKyma(t, &controlPlane{status: http.StatusForbidden}).Complete(t.Context(), ordered()); !strings.Contains(err.Error(), "allow its user to get and list ConfigMaps") {
		t.Errorf("without permissions: %v", err)
	}

	subject := newKyma(t, &controlPlane{})
	if err := os.Remove(subject.ControlPlane.KubeconfigPath); err != nil {
		t.Fatal(err)
	}

	if _, err := subject.Complete(t.Context(), ordered()); !failure.Is(err, failure.Transient) || !strings.Contains(err.Error(), "APP_CONTROL_PLANE_KUBECONFIG_PATH") {
		t.Errorf("without a kubeconfig: %v", err)
	}

	if subject.ControlPlane.Check() == nil {
		t.Error("a missing kubeconfig is accepted at start")
	}
}
