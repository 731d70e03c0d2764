package service_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sirupsen/logrus"
	logtest "github.com/sirupsen/logrus/hooks/test"

	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/internal/secret"
	"github.com/environment-broker/environment-broker/provisioner/service"
)

// kubeconfig leads to an address at which nothing listens.
const kubeconfig = `{apiVersion: v1, kind: Config, current-context: c, clusters: [{name: c, cluster: {server: "https://127.0.0.1:1"}}],
	users: [{name: u, user: {token: t}}], contexts: [{name: c, context: {cluster: c, user: u}}]}`

// TestStartWithTheVariablesOfKymaProvisioner starts a Provisioner with the defaults of Kyma Provisioner. The
// error names all missing variables. Once these are set, the next error is about the database.
func TestStartWithTheVariablesOfKymaProvisioner(t *testing.T) {
	t.Chdir(t.TempDir())

	fails := func(config service.Config, want, unwanted []string) {
		t.Helper()

		_, err := service.New(t.Context(), config, nil, logging.Discard())
		if err == nil {
			t.Fatal("the service starts")
		}

		for _, text := range want {
			if !strings.Contains(err.Error(), text) {
				t.Errorf("the error does not contain %q: %v", text, err)
			}
		}

		for _, text := range unwanted {
			if strings.Contains(err.Error(), text) {
				t.Errorf("the error contains %q: %v", text, err)
			}
		}
	}

	config := service.DefaultConfig()
	fails(config, []string{"APP_DATABASE_SECRET_KEYS", "openssl rand", "APP_GARDENER_KUBECONFIG_PATH", "./dev/kubeconfig.yaml"}, nil)

	config.Gardener.PollInterval = 0
	fails(config, []string{"APP_DATABASE_SECRET_KEYS", "APP_GARDENER_KUBECONFIG_PATH", "APP_GARDENER_POLL_INTERVAL"}, nil)

	config = service.DefaultConfig()
	config.Database.SecretKeys = secret.NewKey("test")
	config.Database.Port = "1"
	config.Gardener.KubeconfigPath = filepath.Join(t.TempDir(), "kubeconfig.yaml")

	if err := os.WriteFile(config.Gardener.KubeconfigPath, []byte(kubeconfig), 0o600); err != nil {
		t.Fatal(err)
	}

	fails(config, []string{"localhost", "1"}, []string{"APP_DATABASE_SECRET_KEYS", "APP_GARDENER_KUBECONFIG_PATH"})
}

// TestUnusedDirector sets the address of a Director, as for Kyma Provisioner, which has no switch for it.
func TestUnusedDirector(t *testing.T) {
	for address, want := range map[string]bool{service.DefaultConfig().Director.URL: false, "https://director.example.com/graphql": true} {
		log, hook := logtest.NewNullLogger()
		startLogged(t, log, 0, func(config *service.Config) { config.Director.URL = address })

		warned := false
		for _, entry := range hook.AllEntries() {
			warned = warned || entry.Level == logrus.WarnLevel && strings.Contains(entry.Message, "APP_DIRECTOR_ENABLED")
		}

		if warned != want {
			t.Errorf("%s: warned: %t", address, warned)
		}
	}
}
