package e2e

import (
	"bytes"
	"encoding/base64"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"

	broker "github.com/environment-broker/environment-broker/broker/service"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
	"github.com/environment-broker/environment-broker/internal/program/replica"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakeavs"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakecleanup"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakeedp"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakeias"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakenotification"
	"github.com/environment-broker/environment-broker/internal/sandbox/simulator"
	provisioner "github.com/environment-broker/environment-broker/provisioner/service"
	"github.com/environment-broker/environment-broker/test/harness"
)

// Service Manager credentials whose URL-encoded and JSON forms differ from the plain ones.
const (
	firstCredentials  = "btp/f1rst&s3cret="
	secondCredentials = "btp/s3cond&s3cret="
)

// accountKey is the key of the cloud account in Gardener.
const accountKey = "clOud&acc0unt-key="

// secrets contains the values that must not be found in clear text, by value. Each has a description. It is safe for concurrent use.
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

// add adds a value. It ignores an empty value.
func (s *secrets) add(value, description string) {
	if value == "" {
		return
	}

	s.mutex.Lock()
	defer s.mutex.Unlock()

	s.values[value] = description
}

// addKubeconfig adds the credentials in a kubeconfig.
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

// count returns the number of values whose description has the given prefix.
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

// in returns the descriptions of the secrets that the text contains in any of their forms. It also searches the text without
// backslashes, because JSON inside a JSON string has several backslashes where plain JSON has one.
func (s *secrets) in(text string) []string {
	unescaped := strings.ReplaceAll(text, `\`, "")

	s.mutex.Lock()
	defer s.mutex.Unlock()

	var found []string

	for value, description := range s.values {
		if slices.ContainsFunc(forms(value), func(form string) bool { return strings.Contains(text, form) || strings.Contains(unescaped, form) }) {
			found = append(found, description)
		}
	}

	slices.Sort(found)

	return found
}

// forms returns the value as it is, URL-encoded, in HTML, in JSON without its backslashes, and in base64 at each of the three positions in
// a group of three bytes.
func forms(value string) []string {
	result := []string{value, url.QueryEscape(value), url.PathEscape(value), strings.ReplaceAll(value, "&", "&amp;"), strings.ReplaceAll(value, "&", "u0026")}

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

// TestNoSecretInClear creates, changes and deletes an instance with all integrations, and searches everything that operators can
// read for credentials. In each case, a different system installs Kyma.
func TestNoSecretInClear(t *testing.T) {
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "100") // milliseconds between two exports

	for name, c := range kymaInstallers() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testNoSecretInClear(t, c)
		})
	}
}

func testNoSecretInClear(t *testing.T, c kymaInstaller) {
	t.Helper()

	known, collected := newSecrets(), &traces{}
	systems := []simulator.System{fakeavs.New(), fakeedp.New(), fakeias.New(), fakenotification.New(), fakecleanup.New()}

	if c.installer != nil {
		systems = append(systems, c.installer)
	}

	quotes := &quoting{next: simulator.NewHandler(systems...), secrets: known, quoted: map[string]bool{}, payloads: map[string]string{}}
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

		useUpstreams(config, server.URL)

		config.Notification = fakenotification.Config(server.URL + "/" + systems[3].Name())
		config.Tracing.Endpoint, p.Tracing.Endpoint = collector.URL, collector.URL
		settings = p.Database
	}

	services := harness.Prepare(t, options)
	e := env{platform: newPlatform(t, ""), services: services}
	e.usePool(server.URL + "/" + systems[4].Name())
	e.startBroker()

	databases := []searched{openSearched(t, "broker", services.Settings.Database), openSearched(t, "provisioner", settings)}

	kubeconfigs := []string{"private key", "kubeconfig of", "credentials in"}
	needed := map[string][]string{
		"reconciler":    append(kubeconfigs, "first credentials", "second credentials"),
		"control-plane": kubeconfigs,
	}

	search := func(when string, parameters map[string]string) {
		t.Helper()

		for place, text := range e.readable(databases, collected, server.URL, parameters) {
			if found := known.in(text); len(found) > 0 {
				t.Errorf("%s: %s contains %q", when, place, found)
			}
		}

		for service, log := range logs {
			if found := known.in(log.String()); len(found) > 0 || log.String() == "" {
				t.Errorf("%s: the log of the %s contains %q", when, service, found)
			}
		}

		for system, found := range quotes.leaked(needed) {
			t.Errorf("%s: the payloads for %s contain %q", when, system, found)
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
		e.wantUpgraded(e.upgrade(environment.KindUpgradeKyma, "mine", operatorapi.Upgrade{Version: c.upgrade}), "Kyma was upgraded to "+c.upgrade)
	} else {
		e.wantUpgraded(e.upgrade(environment.KindUpgradeCluster, "mine", operatorapi.Upgrade{Version: "1.36"}), "")
	}

	c.add(t, known)

	sealed := map[string]int{}
	for _, database := range databases {
		database.find("btp/s3cond", sealed) // the rest of the credentials is escaped in JSON
	}

	if len(sealed) == 0 {
		t.Error("no sealed column contains the credentials, so the search proves nothing")
	}

	search("before the deletion", map[string]string{"instance_id": "mine", "account_id": "organization-1"})
	e.Delete("mine", harness.PlanPreview)
	e.WantGone("mine")

	for _, want := range []int{http.StatusServiceUnavailable, http.StatusOK} {
		e.Send(http.MethodPost, "/cloudaccounts/pool-000/cleanup", operatorapi.Justification{Reason: "ticket 4711"}, want)
	}

	search("after the deletion", nil)

	if got := quotes.count(); got != len(systems) {
		t.Errorf("%d of %d systems have quoted secrets: %v", got, len(systems), quotes.quoted)
	}

	for _, prefix := range []string{"token in", "password in", "credentials in"} {
		if known.count(prefix) == 0 {
			t.Errorf("no secret is known as %q", prefix+" …")
		}
	}
}
