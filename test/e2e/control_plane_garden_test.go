//go:build garden

package e2e

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/environment-broker/environment-broker/test/apiserver"
	"github.com/environment-broker/environment-broker/test/harness"
)

const (
	planeNamespace = "kcp-system"
	planeUser      = "environment-broker"
	// adminPassword is the value of an override that is stored in a Secret.
	adminPassword = "password-of-operators"
)

// controlPlane is a broker and a Provisioner that run as processes with a fake garden, and a kube-apiserver with the Kyma
// configuration.
type controlPlane struct {
	pair
	*testing.T

	// api is a client for the API server, with admin permissions.
	api client.Client
	// toPlane forwards the broker's connections to the API server.
	toPlane *tcpProxy
}

// startControlPlane starts a controlPlane. The Provisioner gets the additional environment variables and has the releases from
// 1.0.0, the default, to 1.3.0.
func startControlPlane(t *testing.T, variables ...string) *controlPlane {
	t.Helper()

	p := &controlPlane{T: t}

	environment := apiserver.Run(t)

	var err error
	p.api, err = client.New(environment.Config, client.Options{})
	p.must(err)

	user, err := environment.AddUser(envtest.User{Name: planeUser}, nil)
	p.must(err)

	kubeconfig, err := user.KubeConfig()
	p.must(err)

	path := filepath.Join(t.TempDir(), "kubeconfig")
	p.must(os.WriteFile(path, kubeconfig, 0o600))

	p.toPlane, path = proxyGarden(t, path)

	p.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: planeNamespace}})
	p.create(&rbacv1.Role{ObjectMeta: inPlane(planeUser), Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"configmaps", "secrets"}, Verbs: []string{"get", "list"}},
	}})
	p.create(p.permission())

	address, provisioner := harness.FreeAddress(t), harness.FreeAddress(t)
	p.pair = pair{platform: newPlatform(t, "http://"+address), provisioner: "http://" + provisioner}

	harness.Launch(t, append(append(harness.DatabaseVariables(harness.SQLite(t, "provisioner")), variables...),
		"APP_ADDRESS="+provisioner, "APP_STATUS_ADDRESS="+harness.FreeAddress(t), "APP_GARDENER_PROJECT=local", "APP_SHUTDOWN_DELAY=0s",
		"APP_GARDENER_KUBECONFIG_PATH="+harness.ServeGarden(t, harness.StartGarden(t, 200*time.Millisecond)),
		"APP_KYMA_RELEASES_PATH="+planeReleases(t)), harness.Build(t, "provisioner"))
	harness.Launch(t, append(harness.DatabaseVariables(harness.SQLite(t, "broker")),
		"APP_ADDRESS="+address, "APP_STATUS_ADDRESS="+harness.FreeAddress(t), "APP_AUTH_BASIC_USERS="+harness.User+":"+harness.Password+":osb+admin",
		"APP_PROVISIONER_URL=http://"+provisioner+"/graphql", "APP_SHUTDOWN_DELAY=0s", "APP_KYMA_VERSION=1.0.0", "APP_ENABLE_ON_DEMAND_VERSION=true",
		"APP_CONTROL_PLANE_KUBECONFIG_PATH="+path), harness.Build(t, "broker"))
	p.Until("the broker", func() bool {
		_, err := p.Try(http.MethodGet, "/v2/catalog", nil)

		return err == nil
	})

	return p
}

// planeReleases creates a folder with the sample releases and two copies of the newest one, and returns its path.
func planeReleases(t *testing.T) string {
	t.Helper()

	samples, folder := filepath.Join(harness.Root, "resources", "releases"), t.TempDir()

	for version, sample := range map[string]string{"1.0.0": "1.0.0", "1.1.0": "1.1.0", "1.2.0": "1.1.0", "1.3.0": "1.1.0"} {
		copied := filepath.Join(folder, version)
		if err := os.CopyFS(copied, os.DirFS(filepath.Join(samples, sample))); err != nil {
			t.Fatal(err)
		}

		file := filepath.Join(copied, "release.yaml")

		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}

		if err := os.WriteFile(file, []byte(strings.Replace(string(content), "version: "+sample, "version: "+version, 1)), 0o600); err != nil {
			t.Fatal(err)
		}
	}

	return folder
}

func (p *controlPlane) must(err error) {
	p.Helper()

	if err != nil {
		p.Fatal(err)
	}
}

func inPlane(name string, labels ...string) metav1.ObjectMeta {
	meta := metav1.ObjectMeta{Namespace: planeNamespace, Name: name, Labels: map[string]string{}}

	for _, label := range labels {
		key, value, _ := strings.Cut(label, "=")
		meta.Labels[key] = value
	}

	return meta
}

func (p *controlPlane) create(object client.Object) {
	p.Helper()
	p.must(p.api.Create(p.Context(), object))
}

// configMap creates or replaces a ConfigMap of the control plane.
func (p *controlPlane) configMap(name string, data map[string]string, labels ...string) {
	p.Helper()

	object := &corev1.ConfigMap{ObjectMeta: inPlane(name, labels...), Data: data}
	p.must(client.IgnoreNotFound(p.api.Delete(p.Context(), object.DeepCopy())))
	p.create(object)
}

// permission returns the RoleBinding that lets the broker's user read the configuration.
func (p *controlPlane) permission() *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{
		ObjectMeta: inPlane(planeUser), RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: planeUser},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: planeUser}},
	}
}

// configure creates the initial configuration in the control plane.
func (p *controlPlane) configure() {
	p.Helper()

	p.configMap("kyma-versions", map[string]string{"GA_account": "1.1.0", "SA_special": "1.2.0"})
	p.configMap("plans-of-the-default", map[string]string{"preview": components("monitoring"), "default": components("serverless")},
		"keb-config=true", "runtime-version-1.0.0=true")
	p.configMap("plans-of-1.2.0", map[string]string{"aws": components(), "default": components("monitoring", "tracing")},
		"keb-config=true", "runtime-version-1.2.0=true")

	for name, data := range map[string]map[string]string{"monitoring": {"adminPassword": adminPassword}, "cluster-essentials": {"logLevel": "error"}} {
		p.create(&corev1.Secret{ObjectMeta: inPlane(name, "runtime-override=true", "component="+name), StringData: data})
	}

	p.configMap("values-of-the-default", map[string]string{"logLevel": "debug"},
		"overrides-version-1.0.0=true", "overrides-plan-preview=true", "component=cluster-essentials")
	p.configMap("values-of-another-plan", map[string]string{"logLevel": "wrong"},
		"overrides-version-1.0.0=true", "overrides-plan-aws=true", "component=cluster-essentials")
}

// components returns the configuration of a plan with the named additional components.
func components(names ...string) string {
	var lines strings.Builder

	lines.WriteString("additional-components:\n")

	for _, name := range names {
		lines.WriteString("- {name: " + name + ", namespace: kyma-system}\n")
	}

	return lines.String()
}

// orderIn orders an instance of plan preview for a subaccount of a global account, and returns the ID of the operation.
func (p *controlPlane) orderIn(id, globalAccount, subAccount, version string) string {
	p.Helper()

	body := harness.Order(harness.PlanPreview)
	body["context"] = map[string]any{"globalaccount_id": globalAccount, "subaccount_id": subAccount}

	if version != "" {
		body["parameters"] = map[string]any{"kymaVersion": version}
	}

	return p.Send(http.MethodPut, harness.InstancePath(id)+harness.Incomplete, body, http.StatusAccepted).Text("operation")
}

// receivedKyma is a runtime's Kyma according to the Provisioner, with values that were read from the runtime's cluster.
type receivedKyma struct {
	Version    string
	Components []string
	// LogLevel is a value from the cluster. LogLevelSecret reports whether the Provisioner treats it as a secret.
	LogLevel       string
	LogLevelSecret bool
	// Retention and Password are values from the cluster. PasswordSecret reports whether the Provisioner treats Password as a
	// secret.
	Retention, Password string
	PasswordSecret      bool
}

// received reads the Kyma of an instance from the Provisioner and from the cluster.
func (p *controlPlane) received(id, globalAccount string) receivedKyma {
	p.Helper()

	runtime := p.Send(http.MethodGet, "/runtimes/"+id, nil, http.StatusOK)

	var status struct {
		RuntimeConfiguration struct {
			KymaConfig struct {
				Version    string
				Components []struct {
					Component     string
					Configuration []struct {
						Key, Value string
						Secret     bool
					}
				}
			}
		}
	}

	refused, err := caller{url: p.provisioner + "/graphql", tenant: globalAccount}.send(p.Context(),
		`query ($id: String!) { result: runtimeStatus(id: $id) { runtimeConfiguration { kymaConfig { version components { component configuration { key value secret } } } } } }`,
		map[string]any{"id": runtime.Text("runtimeID")}, &status)
	if err != nil || refused != nil {
		p.Fatal(refused, err)
	}

	kyma := status.RuntimeConfiguration.KymaConfig
	found := receivedKyma{Version: kyma.Version}

	for _, component := range kyma.Components {
		found.Components = append(found.Components, component.Component)

		for _, entry := range component.Configuration {
			if entry.Secret && entry.Value != "" {
				p.Errorf("the Provisioner returns the secret value %s of %s", entry.Key, component.Component)
			}

			switch entry.Key {
			case "logLevel":
				found.LogLevelSecret = entry.Secret
			case "adminPassword":
				found.PasswordSecret = entry.Secret
			}
		}
	}

	core := harness.RuntimeClient(p.T, p.kubeconfig(id)).CoreV1()

	settings, err := core.ConfigMaps("kyma-system").Get(p.Context(), "cluster-essentials", metav1.GetOptions{})
	p.must(err)

	monitoring, err := core.ConfigMaps("kyma-system").Get(p.Context(), "monitoring", metav1.GetOptions{})
	p.must(err)

	admin, err := core.Secrets("kyma-system").Get(p.Context(), "monitoring-admin", metav1.GetOptions{})
	p.must(err)

	found.LogLevel, found.Retention, found.Password = settings.Data["logLevel"], monitoring.Data["retention"], string(admin.Data["password"])
	if found.Password == "" {
		found.Password = admin.StringData["password"] // the fake cluster keeps the applied object
	}

	return found
}

// wantKyma checks that the Provisioner and the cluster have the wanted Kyma for an instance.
func (p *controlPlane) wantKyma(reason, id, globalAccount string, want receivedKyma) {
	p.Helper()

	want.Password, want.PasswordSecret = adminPassword, true
	if diff := cmp.Diff(want, p.received(id, globalAccount)); diff != "" {
		p.Errorf("%s: -want +got\n%s", reason, diff)
	}
}

// planned returns the names of the components of plan preview, and the additional ones.
func planned(additional ...string) []string {
	return append([]string{"cluster-essentials", "compass-runtime-agent", "eventing", "serverless"}, additional...)
}

// TestKymaFromControlPlane creates and upgrades instances whose Kyma is configured by operators in a control plane.
func TestKymaFromControlPlane(t *testing.T) {
	t.Parallel()

	p := startControlPlane(t)
	p.configure()

	orders := map[string]struct {
		account, subAccount, version string
		want                         receivedKyma
	}{
		"by-default": {"other", "plain", "", receivedKyma{
			Version: "1.0.0", Components: planned("monitoring"), LogLevel: "debug", Retention: "1d",
		}},
		"by-account": {"account", "plain", "", receivedKyma{
			Version: "1.1.0", Components: planned("monitoring"), LogLevel: "error", LogLevelSecret: true, Retention: "1d",
		}},
		"by-subaccount": {"account", "special", "", receivedKyma{
			Version: "1.2.0", Components: planned("monitoring", "tracing"), LogLevel: "error", LogLevelSecret: true, Retention: "1d",
		}},
		"by-order": {"account", "special", "1.3.0", receivedKyma{
			Version: "1.3.0", Components: planned("monitoring"), LogLevel: "error", LogLevelSecret: true, Retention: "1d",
		}},
	}

	for id, order := range orders {
		p.orderIn(id, order.account, order.subAccount, order.version)
	}

	for id, order := range orders {
		p.WantSucceeded(id)
		p.wantKyma("a new instance with the version "+id, id, order.account, order.want)
	}

	p.configMap("kyma-versions", map[string]string{"GA_account": "1.2.0"})
	p.configMap("values-of-1.2.0", map[string]string{"retention": "7d"}, "overrides-version-1.2.0=true", "overrides-plan-preview=true", "component=monitoring")
	p.ebctl("upgrade", "kyma", "by-account", "--wait")
	p.wantKyma("an upgrade after a change of the ConfigMaps", "by-account", "account", receivedKyma{
		Version: "1.2.0", Components: planned("monitoring", "tracing"), LogLevel: "error", LogLevelSecret: true, Retention: "7d",
	})

	p.testForbidden()
	p.testUnavailable()
	p.testMalformed()
}

// wantShown waits until last_operation returns the text shown to the platform, and checks that `ebctl operation explain` returns
// the text explained.
func (p *controlPlane) wantShown(id, state, shown, explained string) {
	p.Helper()

	var last harness.Reply

	if !harness.Within(harness.Patience, func() bool {
		last = p.Send(http.MethodGet, harness.InstancePath(id)+"/last_operation", nil, http.StatusOK)

		return last.Text("state") == state && strings.Contains(last.Text("description"), shown)
	}) {
		p.Errorf("last_operation of %s is %s, want %s and %q", id, last.Raw, state, shown)
	}

	if text := p.ebctl("operation", "explain", id); !strings.Contains(text, explained) {
		p.Errorf("the operation of %s is explained as %q, want %q", id, text, explained)
	}
}

// testForbidden removes the broker's permission and restores it.
func (p *controlPlane) testForbidden() {
	p.Helper()
	p.must(p.api.Delete(p.Context(), p.permission()))
	p.orderIn("forbidden", "account", "plain", "")
	p.wantShown("forbidden", "in progress", "delayed, retrying: the control plane rejects the credentials with status 403: an operator must correct "+
		"APP_CONTROL_PLANE_KUBECONFIG_PATH, or allow its user to get and list ConfigMaps and Secrets", "or allow its user to get and list ConfigMaps and Secrets")
	p.create(p.permission())
	p.WantSucceeded("forbidden")
}

// testUnavailable cuts the connections to the API server, and restores them.
func (p *controlPlane) testUnavailable() {
	p.Helper()
	p.toPlane.block(true)
	p.orderIn("unavailable", "account", "plain", "")
	p.wantShown("unavailable", "in progress", "delayed, retrying: the control plane with the Kyma configuration is unavailable: it does not respond",
		"the control plane")
	p.toPlane.block(false)
	p.WantSucceeded("unavailable")
}

// testMalformed orders an instance of a plan whose configuration is malformed, corrects it, and retries the operation.
func (p *controlPlane) testMalformed() {
	p.Helper()

	labels := []string{"keb-config=true", "runtime-version-1.2.0=true"}
	p.configMap("plans-of-1.2.0", map[string]string{"preview": "additional-components: ["}, labels...)
	p.orderIn("malformed", "account", "plain", "")
	p.wantShown("malformed", "failed", "the configuration of plan preview in the ConfigMap plans-of-1.2.0 of the control plane is not valid YAML",
		"Correct the configuration that the problem names.")

	p.configMap("plans-of-1.2.0", map[string]string{"preview": components("monitoring")}, labels...)
	p.ebctl("operation", "retry", "malformed", "--reason=the ConfigMap is corrected", "--wait")
	p.WantSucceeded("malformed")
	p.wantKyma("after the correction", "malformed", "account", receivedKyma{
		Version: "1.2.0", Components: planned("monitoring"), LogLevel: "error", LogLevelSecret: true, Retention: "7d",
	})
}
