package service_test

import (
	"strings"
	"testing"

	"github.com/environment-broker/environment-broker/broker/service"
	"github.com/environment-broker/environment-broker/internal/environment"
)

// TestOneInstaller checks that only one system installs Kyma.
func TestOneInstaller(t *testing.T) {
	t.Parallel()

	for name, test := range map[string]struct {
		version, kubeconfig string
		want                string
	}{
		"Complete":            {"", "kubeconfig", ""},
		"WithoutControlPlane": {"", "", "APP_LIFECYCLE_MANAGER_ENABLED: also set APP_CONTROL_PLANE_KUBECONFIG_PATH"},
		"AndProvisioner":      {"1.1.0", "kubeconfig", "APP_LIFECYCLE_MANAGER_ENABLED: with APP_KYMA_VERSION, the Provisioner installs Kyma, too: unset one of them"},
	} {
		config := service.DefaultConfig()
		config.LifecycleManager.Enabled, config.Kyma.Version, config.Kyma.KubeconfigPath = true, test.version, test.kubeconfig

		text := ""
		if err := config.Check(); err != nil {
			text = err.Error()
		}

		if test.want != "" && !strings.Contains(text, test.want) || test.want == "" && strings.Contains(text, "LIFECYCLE") {
			t.Errorf("%s: got %q, want %q", name, text, test.want)
		}
	}
}

// TestInstaller has a case for each row of the table "Who installs Kyma" in docs/operator/integrations/reconciler.md.
func TestInstaller(t *testing.T) {
	cases := map[string]struct {
		installer    environment.KymaInstaller
		url, version string
		want         string
	}{
		"Provisioner":     {environment.InstallerProvisioner, "", "1.0.0", ""},
		"Nobody":          {environment.InstallerProvisioner, "", "", ""},
		"OnlyRemovals":    {environment.InstallerProvisioner, "http://reconciler.example.com", "", ""},
		"Both":            {environment.InstallerProvisioner, "http://reconciler.example.com", "1.0.0", "APP_RECONCILER_URL: the Provisioner installs Kyma 1.0.0 on new runtimes"},
		"WithoutURL":      {environment.InstallerReconciler, "", "1.0.0", "APP_KYMA_INSTALLER: reconciler also needs APP_RECONCILER_URL"},
		"Reconciler":      {environment.InstallerReconciler, "http://reconciler.example.com", "1.0.0", ""},
		"WithoutVersion":  {environment.InstallerReconciler, "http://reconciler.example.com", "", ""},
		"Unknown":         {"helm", "", "", `APP_KYMA_INSTALLER: "helm" is neither provisioner nor reconciler`},
		"InvalidSettings": {environment.InstallerReconciler, "reconciler", "1.0.0", "APP_RECONCILER_URL: must be an http or https URL"},
	}

	for name, c := range cases {
		config := service.DefaultConfig()
		config.Kyma.Installer, config.Reconciler.URL, config.Kyma.Version = c.installer, c.url, c.version

		err := config.Check()

		text := ""
		if err != nil {
			text = err.Error()
		}

		if c.want != "" && !strings.Contains(text, c.want) ||
			c.want == "" && (strings.Contains(text, "APP_KYMA_INSTALLER") || strings.Contains(text, "APP_RECONCILER")) {
			t.Errorf("%s: got %q, want %q", name, text, c.want)
		}
	}
}
