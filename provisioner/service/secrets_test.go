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

	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/internal/provisionerclient"
	"github.com/environment-broker/environment-broker/internal/provisionerclient/wire"
	"github.com/environment-broker/environment-broker/provisioner/service"
)

// lines is a log for concurrent readers and writers.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements io.Writer.
func (l *lines) Write(text []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()

	return l.text.Write(text)
}

func (l *lines) bytes() []byte {
	l.mu.Lock()
	defer l.mu.Unlock()

	return bytes.Clone(l.text.Bytes())
}

// withSecrets returns an order for a cluster with administrators and a Kyma component with a password.
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

// TestSecretsAreNeverStoredInClear creates and changes a cluster with every kind of secret, reads its kubeconfig, and searches
// the whole database and log.
func TestSecretsAreNeverStoredInClear(t *testing.T) {
	log := &lines{}

	logger, err := logging.New("provisioner", "debug", log)
	if err != nil {
		t.Fatal(err)
	}

	l := startLogged(t, logger, 50*time.Millisecond, func(c *service.Config) {
		c.Kyma.ReleasesPath = filepath.Join("..", "..", "resources", "releases")
	})

	made, err := l.client.ProvisionRuntime(t.Context(), provisionerclient.Caller{Tenant: tenant}, withSecrets("c-first"))
	if err != nil {
		t.Fatal(err)
	}

	l.succeeded(made.ID)

	changed, err := l.client.UpgradeShoot(t.Context(), provisionerclient.Caller{Tenant: tenant}, made.RuntimeID, &wire.UpgradeShootInput{
		GardenerConfig: &wire.GardenerUpgradeInput{}, Administrators: []string{"joe@example.com"},
	})
	if err != nil {
		t.Fatal(err)
	}

	l.succeeded(changed.ID)

	kubeconfig, err := l.client.Kubeconfig(t.Context(), tenant, made.RuntimeID)
	if err != nil {
		t.Fatal(err)
	}

	key := regexp.MustCompile(`client-key-data: (\S{40})`).FindStringSubmatch(kubeconfig.Reveal())
	if key == nil {
		t.Fatal("the kubeconfig has no key")
	}

	l.succeeded(l.deprovision(made.RuntimeID))

	places := map[string][]byte{"log": log.bytes()}

	files, err := filepath.Glob(l.config.Database.Path + "*") // with the write-ahead log of SQLite
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
		"the key of the database": l.config.Database.SecretKeys.Reveal(),
	} {
		for place, content := range places {
			for _, form := range []string{text, base64.StdEncoding.EncodeToString([]byte(text))} {
				if at := bytes.Index(content, []byte(form)); at >= 0 {
					t.Errorf("%s is in clear in %s: …%q…", what, place, content[max(at-150, 0):min(at+50, len(content))])
				}
			}
		}
	}

	if !bytes.Contains(places["provisioner.db"], []byte("c-first")) && !bytes.Contains(places["provisioner.db-wal"], []byte("c-first")) {
		t.Error("the search did not find the runtime, so it proves nothing")
	}
}
