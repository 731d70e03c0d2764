package e2e

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	broker "github.com/environment-broker/environment-broker/broker/service"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakeavs"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakecleanup"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakecontrolplane"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakeedp"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakegarden"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakeias"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakereconciler"
	"github.com/environment-broker/environment-broker/internal/sandbox/simulator"
	provisioner "github.com/environment-broker/environment-broker/provisioner/service"
	"github.com/environment-broker/environment-broker/test/harness"
)

// quoting forwards requests, records their credentials as secrets, and records their payloads. It makes one call to each system
// fail with a response that quotes all secrets.
type quoting struct {
	next    http.Handler
	secrets *secrets

	mutex    sync.Mutex
	quoted   map[string]bool
	payloads map[string]string // by system, without requests for tokens
}

func (q *quoting) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if _, password, basic := r.BasicAuth(); basic {
		q.secrets.add(password, "password in a request")
	} else if token, bearer := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); bearer {
		q.secrets.add(token, "token in a request")
	}

	body, _ := io.ReadAll(r.Body) // the part that cannot be read is ignored
	r.Body = io.NopCloser(bytes.NewReader(body))

	if status := q.receive(r, body); status != 0 {
		w.WriteHeader(status)
		fmt.Fprintf(w, `{"message": "rejected: %s %s %s %s %s", "request": %q}`,
			r.Header.Get("Authorization"), fakeavs.Password, fakeedp.Secret, fakeias.Secret, secondCredentials, body)

		return
	}

	q.next.ServeHTTP(w, r)
}

// receive records the payload of a request. It returns the status of the response if the request must fail with the secrets, or 0.
// Requests for tokens are not recorded and never fail.
func (q *quoting) receive(r *http.Request, body []byte) int {
	name := strings.Split(r.URL.Path, "/")[1]
	if strings.HasSuffix(r.URL.Path, "/token") || name == "simulators" {
		return 0
	}

	quotes := map[string]int{
		"POST edp": http.StatusInternalServerError, "DELETE avs": http.StatusServiceUnavailable, "PUT ias": http.StatusForbidden,
		"POST notification": http.StatusInternalServerError, "POST reconciler": http.StatusServiceUnavailable,
		"PATCH control-plane": http.StatusInternalServerError, "POST cleanup": http.StatusForbidden,
	}
	system := r.Method + " " + name

	q.mutex.Lock()
	defer q.mutex.Unlock()

	q.payloads[name] += r.URL.String() + "\n" + string(body) + "\n"

	if quotes[system] == 0 || q.quoted[system] {
		return 0
	}

	q.quoted[system] = true

	return quotes[system]
}

// leaked returns the secrets that were sent to systems that do not need them. A system that installs Kyma needs the credentials of
// Service Manager and of the cluster: a payload for it may contain the secrets whose descriptions begin with a prefix in needed.
func (q *quoting) leaked(needed map[string][]string) map[string][]string {
	q.mutex.Lock()
	defer q.mutex.Unlock()

	leaked := map[string][]string{}

	for system, payload := range q.payloads {
		for _, description := range q.secrets.in(payload) {
			if !slices.ContainsFunc(needed[system], func(prefix string) bool { return strings.HasPrefix(description, prefix) }) {
				leaked[system] = append(leaked[system], description)
			}
		}
	}

	return leaked
}

// count returns the number of systems that have quoted secrets.
func (q *quoting) count() int {
	q.mutex.Lock()
	defer q.mutex.Unlock()

	return len(q.quoted)
}

// kymaInstaller is a system that installs Kyma.
type kymaInstaller struct {
	// installer is its simulator, or nil for the Provisioner.
	installer simulator.System
	configure func(*broker.Config, *provisioner.Config)
	// upgrade is the Kyma version of an upgrade. If it is empty, there is no upgrade.
	upgrade string
}

// kymaInstallers returns a case for each system that can install Kyma. Each call creates new simulators.
func kymaInstallers() map[string]kymaInstaller {
	return map[string]kymaInstaller{
		"Provisioner": {configure: withReleases("1.0.0"), upgrade: "1.1.0"},
		"Reconciler": {installer: fakereconciler.New().Quick(), upgrade: "1.1.0", configure: func(c *broker.Config, _ *provisioner.Config) {
			c.Kyma.Version, c.Kyma.Installer = "1.0.0", environment.InstallerReconciler
		}},
		"Lifecycle Manager": {installer: fakecontrolplane.New(), configure: func(c *broker.Config, _ *provisioner.Config) {
			c.LifecycleManager.Enabled, c.Kyma.Version, c.Kyma.OnDemandVersion = true, "", false
		}},
	}
}

// useUpstreams makes the broker use the simulators of AvS, EDP and IAS at the given server URL.
func useUpstreams(config *broker.Config, server string) {
	config.AvS = fakeavs.Config(server + "/avs")
	config.AvS.Tags.Enabled = true
	config.Gardener.ShootDomain = "example.com"
	config.EDP.AuthURL, config.EDP.AdminURL, config.EDP.Namespace, config.EDP.Secret = server+"/edp", server+"/edp", fakeedp.Namespace, fakeedp.Secret
	config.IAS.URL, config.IAS.UserID, config.IAS.UserSecret = server+"/ias", fakeias.User, fakeias.Secret
}

// use makes the broker use the installer's simulator at the given server URL.
func (k kymaInstaller) use(t *testing.T, config *broker.Config, server string) {
	t.Helper()

	switch k.installer.(type) {
	case *fakereconciler.Reconciler:
		config.Reconciler.URL = server + "/" + k.installer.Name()
	case *fakecontrolplane.ControlPlane:
		config.Kyma.KubeconfigPath = filepath.Join(t.TempDir(), "control-plane")
		if err := os.WriteFile(config.Kyma.KubeconfigPath, fakecontrolplane.Kubeconfig(server+"/"+k.installer.Name()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// add adds the credentials in the kubeconfigs that the installer has received to known.
func (k kymaInstaller) add(t *testing.T, known *secrets) {
	t.Helper()

	switch installer := k.installer.(type) {
	case *fakereconciler.Reconciler:
		for _, cluster := range installer.Clusters() {
			known.addKubeconfig(t, []byte(cluster.Kubeconfig), "kubeconfig of the installer")
		}
	case *fakecontrolplane.ControlPlane:
		for _, object := range installer.Objects("Secret") {
			encoded, _, _ := unstructured.NestedString(object.Object, "data", "config")

			kubeconfig, err := base64.StdEncoding.DecodeString(encoded)
			if err != nil {
				t.Fatal(err)
			}

			known.addKubeconfig(t, kubeconfig, "kubeconfig of the installer")
		}
	}

	if k.installer != nil && known.count("kubeconfig of the installer") == 0 {
		t.Error("the installer has no kubeconfig, so the search proves nothing")
	}
}

// usePool enables the account pool with one account, whose credentials are in the garden. hook is the URL of the cleanup hook.
func (e env) usePool(hook string) {
	e.Helper()

	garden, account := e.services.Garden.Client(), poolAccount(harness.GardenNamespace(), 0)
	account.CredentialsRef.Name = "pool-credentials"

	for _, object := range []client.Object{
		&corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Name: account.CredentialsRef.Name, Namespace: account.Namespace},
			Data:       map[string][]byte{"secretAccessKey": []byte(accountKey)},
		},
		account,
	} {
		if err := garden.Create(e.Context(), object); err != nil {
			e.Fatal(err)
		}
	}

	rules := filepath.Join(e.TempDir(), "rules.yaml")
	if err := os.WriteFile(rules, []byte("rule: [aws, azure, azure_lite, gcp, sap-converged-cloud, free, preview, trial]"), 0o600); err != nil {
		e.Fatal(err)
	}

	settings := &e.services.Settings
	settings.AccountPool.RulesFile, settings.AccountPool.Cleanup = rules, fakecleanup.Config(hook)
	settings.Gardener.Project = fakegarden.DefaultProject
	settings.Gardener.KubeconfigPath = harness.ServeGarden(e.TB, e.services.Garden)
}
