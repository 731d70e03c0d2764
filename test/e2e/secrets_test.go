package e2e

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/prototext"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	broker "github.com/environment-broker/environment-broker/broker/service"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
	"github.com/environment-broker/environment-broker/internal/replica"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakeavs"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakecleanup"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakecontrolplane"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakeedp"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakegarden"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakeias"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakenotification"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakereconciler"
	"github.com/environment-broker/environment-broker/internal/sandbox/simulator"
	provisioner "github.com/environment-broker/environment-broker/provisioner/service"
	"github.com/environment-broker/environment-broker/test/harness"
)

// Credentials of Service Manager, whose URL-encoded and JSON forms differ from the plain ones.
const (
	firstCredentials  = "btp/f1rst&s3cret="
	secondCredentials = "btp/s3cond&s3cret="
)

// accountKey is the key of the cloud account in Gardener.
const accountKey = "clOud&acc0unt-key="

// secrets are the values that must not be found in clear, by description. It is safe for concurrent use.
type secrets struct {
	mutex  sync.Mutex
	values map[string]string
}

func newSecrets() *secrets {
	return &secrets{values: map[string]string{
		fakeavs.Password: "password of AvS", fakeedp.Secret: "secret of EDP", fakeias.Secret: "secret of IAS",
		fakenotification.Password: "password of the notification service", fakecleanup.Password: "password of the cleanup hook",
		accountKey:       "key of a cloud account",
		firstCredentials: "first credentials of Service Manager", secondCredentials: "second credentials of Service Manager",
		"PRIVATE KEY-----": "private key",
	}}
}

// add adds a value. An empty value is no secret.
func (s *secrets) add(value, description string) {
	if value == "" {
		return
	}

	s.mutex.Lock()
	defer s.mutex.Unlock()

	s.values[value] = description
}

// addKubeconfig adds the credentials of a kubeconfig.
func (s *secrets) addKubeconfig(t *testing.T, kubeconfig []byte, description string) {
	t.Helper()

	config, err := clientcmd.Load(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}

	for _, user := range config.AuthInfos {
		if key := string(user.ClientKeyData); len(key) > 100 {
			s.add(key[40:90], description)
		}

		s.add(user.Token, description)
	}
}

// count returns the number of values whose description has the prefix.
func (s *secrets) count(prefix string) int {
	s.mutex.Lock()
	defer s.mutex.Unlock()

	count := 0

	for _, description := range s.values {
		if strings.HasPrefix(description, prefix) {
			count++
		}
	}

	return count
}

// in returns the descriptions of the secrets that the text contains, in any of their forms.
func (s *secrets) in(text string) []string {
	s.mutex.Lock()
	defer s.mutex.Unlock()

	var found []string

	for value, description := range s.values {
		if slices.ContainsFunc(forms(value), func(form string) bool { return strings.Contains(text, form) }) {
			found = append(found, description)
		}
	}

	slices.Sort(found)

	return found
}

// forms returns the value as it is, URL-encoded, in JSON, and in base64 at each of the three positions in a group of three bytes.
func forms(value string) []string {
	result := []string{value, url.QueryEscape(value), url.PathEscape(value), strings.ReplaceAll(value, "&", `\u0026`), strings.ReplaceAll(value, "&", "&amp;")}

	for before := range 3 {
		padded := append(make([]byte, before), value...)
		whole := len(padded) / 3 * 3 // the last group depends on the bytes that follow
		first := (before + 2) / 3 * 4

		for _, encoding := range []*base64.Encoding{base64.StdEncoding, base64.URLEncoding} {
			result = append(result, encoding.EncodeToString(padded[:whole])[first:])
		}
	}

	return result
}

// quoting passes requests on, records their credentials as secrets, and lets one call of each system fail with a response that
// quotes all secrets.
type quoting struct {
	next    http.Handler
	secrets *secrets

	mutex  sync.Mutex
	quoted map[string]bool
}

func (q *quoting) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if _, password, basic := r.BasicAuth(); basic {
		q.secrets.add(password, "password in a request")
	} else if token, bearer := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); bearer {
		q.secrets.add(token, "token in a request")
	}

	quotes := map[string]int{
		"POST edp": http.StatusInternalServerError, "DELETE avs": http.StatusServiceUnavailable, "PUT ias": http.StatusForbidden,
		"POST notification": http.StatusInternalServerError, "POST reconciler": http.StatusServiceUnavailable,
		"PATCH control-plane": http.StatusInternalServerError, "POST cleanup": http.StatusForbidden,
	}
	system := r.Method + " " + strings.Split(r.URL.Path, "/")[1]

	q.mutex.Lock()
	again := q.quoted[system]
	q.mutex.Unlock()

	if status := quotes[system]; status != 0 && !again && !strings.Contains(r.URL.Path, "token") {
		q.mutex.Lock()
		q.quoted[system] = true
		q.mutex.Unlock()

		body, _ := io.ReadAll(r.Body) // what cannot be read is not quoted

		w.WriteHeader(status)
		fmt.Fprintf(w, `{"message": "rejected: %s %s %s %s %s", "request": %q}`,
			r.Header.Get("Authorization"), fakeavs.Password, fakeedp.Secret, fakeias.Secret, secondCredentials, body)

		return
	}

	q.next.ServeHTTP(w, r)
}

// count returns the number of systems that have quoted secrets.
func (q *quoting) count() int {
	q.mutex.Lock()
	defer q.mutex.Unlock()

	return len(q.quoted)
}

// lines is a log in memory. It is safe for concurrent use.
type lines struct {
	mutex sync.Mutex
	text  bytes.Buffer
}

func (l *lines) Write(line []byte) (int, error) {
	l.mutex.Lock()
	defer l.mutex.Unlock()

	return l.text.Write(line)
}

func (l *lines) String() string {
	l.mutex.Lock()
	defer l.mutex.Unlock()

	return l.text.String()
}

// TestNoSecretInClear runs the life of an instance with all integrations and searches everything that operators can read for the
// credentials. Each case has another system that installs Kyma.
func TestNoSecretInClear(t *testing.T) {
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "100") // milliseconds between two exports

	for name, c := range map[string]kymaSecrets{
		"Provisioner": {configure: withReleases("1.0.0"), upgrade: "1.1.0"},
		"Reconciler": {installer: fakereconciler.New().Quick(), upgrade: "1.1.0", configure: func(c *broker.Config, _ *provisioner.Config) {
			c.Kyma.Version, c.Kyma.Installer = "1.0.0", environment.InstallerReconciler
		}},
		"Lifecycle Manager": {installer: fakecontrolplane.New(), configure: func(c *broker.Config, _ *provisioner.Config) {
			c.LifecycleManager.Enabled, c.Kyma.Version, c.Kyma.OnDemandVersion = true, "", false
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testNoSecretInClear(t, c)
		})
	}
}

// kymaSecrets is a case of TestNoSecretInClear.
type kymaSecrets struct {
	// installer is the system that installs Kyma, or nil for the Provisioner.
	installer simulator.System
	configure func(*broker.Config, *provisioner.Config)
	// upgrade is the version of an upgrade of Kyma, or empty for none.
	upgrade string
}

// use lets the broker reach the installer on the server of the simulators.
func (k kymaSecrets) use(t *testing.T, config *broker.Config, server string) {
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

// add adds the credentials of the kubeconfigs that the installer holds.
func (k kymaSecrets) add(t *testing.T, known *secrets) {
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

// usePool turns on the account pool with one account, whose credentials are in the garden.
func (e env) usePool(hook string) {
	e.Helper()

	garden, account := e.services.Garden.Client(), poolAccount(0)
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

func testNoSecretInClear(t *testing.T, c kymaSecrets) {
	t.Helper()

	known, collected := newSecrets(), &traces{}
	systems := []simulator.System{fakeavs.New(), fakeedp.New(), fakeias.New(), fakenotification.New(), fakecleanup.New()}

	if c.installer != nil {
		systems = append(systems, c.installer)
	}

	quotes := &quoting{next: simulator.NewHandler(systems...), secrets: known, quoted: map[string]bool{}}
	server, collector := httptest.NewServer(quotes), httptest.NewServer(collected)
	t.Cleanup(server.Close)
	t.Cleanup(collector.Close)

	logs := map[string]*lines{"broker": {}, "provisioner": {}}
	options := harness.Options{ClusterCreation: 100 * time.Millisecond}

	var (
		settings replica.Database
		err      error
	)

	config := logging.DefaultConfig()
	config.Level = "debug"

	if options.Log, err = logging.New("broker", config, logs["broker"]); err != nil {
		t.Fatal(err)
	}

	if options.ProvisionerLog, err = logging.New("provisioner", config, logs["provisioner"]); err != nil {
		t.Fatal(err)
	}

	options.Configure = func(config *broker.Config, p *provisioner.Config) {
		c.configure(config, p)
		c.use(t, config, server.URL)

		config.AvS = fakeavs.Config(server.URL + "/avs")
		config.AvS.Tags.Enabled = true
		config.Gardener.ShootDomain = "example.com"
		config.EDP.AuthURL, config.EDP.AdminURL, config.EDP.Namespace, config.EDP.Secret = server.URL+"/edp", server.URL+"/edp", fakeedp.Namespace, fakeedp.Secret
		config.IAS.URL, config.IAS.UserID, config.IAS.UserSecret = server.URL+"/ias", fakeias.User, fakeias.Secret
		config.Notification = fakenotification.Config(server.URL + "/" + systems[3].Name())
		config.Tracing.Endpoint, p.Tracing.Endpoint = collector.URL, collector.URL
		settings = p.Database
	}

	services := harness.Prepare(t, options)
	e := env{platform: newPlatform(t, ""), services: services}
	e.usePool(server.URL + "/" + systems[4].Name())
	e.startBroker()

	databases := []searched{openSearched(t, "broker", services.Settings.Database), openSearched(t, "provisioner", settings)}

	search := func(when string) {
		t.Helper()

		for place, text := range e.readable(databases, collected, server.URL) {
			if found := known.in(text); len(found) > 0 {
				t.Errorf("%s: %s contains %q", when, place, found)
			}
		}

		for service, log := range logs {
			if found := known.in(log.String()); len(found) > 0 || log.String() == "" {
				t.Errorf("%s: the log of the %s contains %q", when, service, found)
			}
		}
	}

	systems[2].(*fakeias.IAS).Add("mine") // as the Kyma Environment Broker did

	order := harness.Order(harness.PlanPreview)
	order["context"] = serviceManagerContext(firstCredentials)
	e.Send(http.MethodPut, harness.InstancePath("mine")+harness.Incomplete, order, http.StatusAccepted)
	e.WantSucceeded("mine")
	known.addKubeconfig(t, e.kubeconfig("mine"), "credentials in a kubeconfig")
	c.add(t, known)

	e.Update("mine", map[string]any{"context": serviceManagerContext(secondCredentials)})
	e.WantSucceeded("mine")
	c.add(t, known)

	if c.upgrade != "" {
		e.wantUpgraded(e.upgrade(environment.KindUpgradeKyma, "mine", operatorapi.Upgrade{Version: c.upgrade}), "Kyma is upgraded to "+c.upgrade)
	} else {
		e.wantUpgraded(e.upgrade(environment.KindUpgradeCluster, "mine", operatorapi.Upgrade{Version: "1.36"}), "")
	}

	c.add(t, known)

	sealed := map[string]int{}
	for _, database := range databases {
		database.find("btp/s3cond", sealed) // the rest differs in JSON
	}

	if len(sealed) == 0 {
		t.Error("no sealed column contains the credentials, so the search proves nothing")
	}

	search("before the deletion")
	e.Delete("mine", harness.PlanPreview)
	e.WantGone("mine")

	for _, want := range []int{http.StatusServiceUnavailable, http.StatusOK} {
		e.Send(http.MethodPost, "/cloudaccounts/pool-000/cleanup", operatorapi.Justification{Reason: "ticket 4711"}, want)
	}

	search("after the deletion")

	if got := quotes.count(); got != len(systems) {
		t.Errorf("%d of %d systems have quoted secrets: %v", got, len(systems), quotes.quoted)
	}

	for _, prefix := range []string{"token in", "password in", "credentials in"} {
		if known.count(prefix) == 0 {
			t.Errorf("no secret is known as %q", prefix+" …")
		}
	}
}

// readable returns all texts that operators can read, by place: columns as stored, responses, spans, metrics and pages.
func (e env) readable(databases []searched, collected *traces, simulators string) map[string]string {
	e.Helper()

	texts := map[string]string{}
	get := func(path string) {
		reply, err := e.Do(harness.Call{Method: http.MethodGet, Path: path})
		if err != nil || reply.Status != http.StatusOK {
			e.Fatalf("GET %s: %d, %v", path, reply.Status, err)
		}

		texts["GET "+path] = reply.Raw
	}

	for _, path := range []string{"/runtimes", "/operations", "/audit", "/platforms", "/processes", "/cloudaccounts"} {
		get(path)
	}

	var list operatorapi.OperationList

	e.decode(texts["GET /operations"], &list)

	for _, operation := range list.Data {
		get("/operations/" + operation.ID)

		texts["explanation of "+operation.ID] = e.explain(operation.ID)
	}

	texts["export of the audit log"] = e.ebctl("audit", "export")

	collected.mutex.Lock()
	for _, span := range collected.spans {
		texts["spans"] += prototext.Format(span)
	}
	collected.mutex.Unlock()

	families, err := e.services.Broker.Metrics.Gather()
	if err != nil {
		e.Fatal(err)
	}

	for _, family := range families {
		texts["metrics"] += prototext.Format(family)
	}

	request, err := http.NewRequestWithContext(e.Context(), http.MethodGet, simulators+"/simulators", http.NoBody)
	if err != nil {
		e.Fatal(err)
	}

	response, err := http.DefaultClient.Do(request)
	if err != nil {
		e.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()

	page, err := io.ReadAll(response.Body)
	if err != nil {
		e.Fatal(err)
	}

	texts["page of the simulators"] = string(page)

	for _, database := range databases {
		database.read(texts)
	}

	for place, text := range texts {
		if text == "" {
			e.Errorf("%s is empty", place)
		}
	}

	return texts
}

// read adds the values of all columns as they are stored, by service and table.
func (s searched) read(texts map[string]string) {
	s.Helper()

	for _, table := range s.tables() {
		rows, err := s.db.Reader().QueryxContext(s.Context(), `SELECT * FROM `+table)
		if err != nil {
			s.Fatal(err)
		}

		for rows.Next() {
			row := map[string]any{}
			if err := rows.MapScan(row); err != nil {
				s.Fatal(err)
			}

			for column, value := range row {
				texts[s.service+" "+table+"."+column] += fmt.Sprintf("%s\n", value)
			}
		}

		if err := rows.Close(); err != nil {
			s.Fatal(err)
		}
	}
}
