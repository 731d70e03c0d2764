package service_test

import (
	"bytes"
	"encoding/base64"
	"os"
	"path/filepath"
	"regexp"
	"sync"
	"testing"
	"time"

	"github.com/environment-broker/environment-broker/internal/clients/provisionerclient"
	"github.com/environment-broker/environment-broker/internal/clients/provisionerclient/wire"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/provisioner/service"
)

// logBuffer stores a log in memory. It is safe for concurrent use.
type logBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logBuffer) Write(text []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()

	return l.text.Write(text)
}

func (l *logBuffer) bytes() []byte {
	l.mu.Lock()
	defer l.mu.Unlock()

	return bytes.Clone(l.text.Bytes())
}

// withSecrets returns an order with an administrator and with a password for a Kyma component.
func withSecrets(name string) *wire.ProvisionRuntimeInput {
	ordered, secret := order(name), true
	ordered.ClusterConfig.Administrators = []string{"jane@example.com"}
	ordered.KymaConfig = &wire.KymaConfigInput{Version: "1.0.0", Components: []*wire.ComponentConfigurationInput{
		{Component: "monitoring", Namespace: "kyma-system", Configuration: []*wire.ConfigEntryInput{
			{Key: "adminPassword", Value: "hunter2", Secret: &secret},
		}},
		{Component: "compass-runtime-agent", Namespace: "compass-system"},
	}}

	return ordered
}

// TestSecretsAreNeverStoredInClear creates and changes a runtime with every kind of secret and reads its kubeconfig. It then
// searches the database files and the log for the secrets.
func TestSecretsAreNeverStoredInClear(t *testing.T) {
	log := &logBuffer{}

	logger, err := logging.New("provisioner", logging.Config{Level: "debug", Format: logging.FormatJSON}, log)
	if err != nil {
		t.Fatal(err)
	}

	f := startLogged(t, logger, 50*time.Millisecond, func(c *service.Config) {
		c.Kyma.ReleasesPath = filepath.Join("..", "..", "resources", "releases")
	})

	made, err := f.client.ProvisionRuntime(t.Context(), provisionerclient.Caller{Tenant: tenant}, withSecrets("c-first"))
	if err != nil {
		t.Fatal(err)
	}

	f.succeeded(made.ID)

	changed, err := f.client.UpgradeShoot(t.Context(), provisionerclient.Caller{Tenant: tenant}, made.RuntimeID, &wire.UpgradeShootInput{
		GardenerConfig: &wire.GardenerUpgradeInput{}, Administrators: []string{"joe@example.com"},
	})
	if err != nil {
		t.Fatal(err)
	}

	f.succeeded(changed.ID)

	kubeconfig, err := f.client.Kubeconfig(t.Context(), tenant, made.RuntimeID)
	if err != nil {
		t.Fatal(err)
	}

	key := regexp.MustCompile(`client-key-data: (\S{40})`).FindStringSubmatch(kubeconfig.Reveal())
	if key == nil {
		t.Fatal("the kubeconfig has no key")
	}

	f.succeeded(f.deprovision(made.RuntimeID))

	places := map[string][]byte{"log": log.bytes()}

	files, err := filepath.Glob(f.config.Database.Path + "*") // includes SQLite's write-ahead log
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}

	for _, file := range files {
		if places[filepath.Base(file)], err = os.ReadFile(file); err != nil {
			t.Fatal(err)
		}
	}

	for what, text := range map[string]string{
		"an override": "hunter2", "an administrator": "jane@", "a later administrator": "joe@", "the key of a kubeconfig": key[1],
		"the key of the database": f.config.Database.SecretKeys.Reveal(),
	} {
		for place, content := range places {
			for _, form := range []string{text, base64.StdEncoding.EncodeToString([]byte(text))} {
				if at := bytes.Index(content, []byte(form)); at >= 0 {
					t.Errorf("%s is in plaintext in %s: …%q…", what, place, content[max(at-150, 0):min(at+50, len(content))])
				}
			}
		}
	}

	if !bytes.Contains(places["provisioner.db"], []byte("c-first")) && !bytes.Contains(places["provisioner.db-wal"], []byte("c-first")) {
		t.Error("the search did not find the runtime, so it would not find secrets either")
	}
}
