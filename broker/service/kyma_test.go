package service_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/environment-broker/environment-broker/broker/catalog"
	"github.com/environment-broker/environment-broker/broker/service"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/resources"
	"github.com/environment-broker/environment-broker/test/harness"
)

// installers is a row of the table "Who installs Kyma": the values of the variables, and who installs Kyma for plans with the
// kyma or lifecycleManager section. Both are "refused" if the broker does not start.
type installers struct {
	version, installer, url, manager string
	kyma, lifecycleManager           string
}

// documentedInstallers reads the table from the operators' documentation.
func documentedInstallers(t *testing.T) []installers {
	t.Helper()

	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "operator", "kyma.md"))
	if err != nil {
		t.Fatal(err)
	}

	_, section, _ := strings.Cut(string(page), "### Who installs Kyma\n")
	section, _, _ = strings.Cut(section, "\n#")

	var rows []installers

	for line := range strings.Lines(section) {
		cells := strings.Split(strings.NewReplacer("`", "", "the ", "").Replace(line), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}

		if len(cells) == 8 && !strings.HasPrefix(cells[1], "APP_") && !strings.HasPrefix(cells[1], "-") {
			rows = append(rows, installers{cells[1], cells[2], cells[3], cells[4], cells[5], cells[6]})
		}
	}

	return rows
}

// matches reports whether the row applies to the values of the variables.
func (i installers) matches(values ...string) bool {
	for position, cell := range []string{i.version, i.installer, i.url, i.manager} {
		if cell != "any" && cell != values[position] {
			return false
		}
	}

	return true
}

// TestInstallers checks that the table has each combination of the variables once, and that the broker behaves as the table says.
func TestInstallers(t *testing.T) {
	t.Parallel()

	rows, used := documentedInstallers(t), map[installers]bool{}

	for _, version := range []string{"empty", "set"} {
		for _, installer := range []string{"provisioner", "reconciler"} {
			for _, url := range []string{"empty", "set"} {
				for _, manager := range []string{"false", "true"} {
					combination := []string{version, installer, url, manager}

					matching := slices.DeleteFunc(slices.Clone(rows), func(row installers) bool { return !row.matches(combination...) })
					if len(matching) != 1 {
						t.Fatalf("%d rows are about %v", len(matching), combination)
					}

					used[matching[0]] = true
					matching[0].check(t, combination)
				}
			}
		}
	}

	if len(used) != len(rows) {
		t.Errorf("%d of the %d rows are about combinations that exist", len(used), len(rows))
	}
}

// check compares the row with a broker that has the given combination of values.
func (i installers) check(t *testing.T, combination []string) {
	t.Helper()

	config := service.DefaultConfig()
	config.Kyma.Installer, config.LifecycleManager.Enabled = environment.KymaInstaller(combination[1]), combination[3] == "true"
	config.Kyma.KubeconfigPath = "kubeconfig"

	if combination[0] == "set" {
		config.Kyma.Version = "1.0.0"
	}

	if combination[2] == "set" {
		config.Reconciler.URL = "http://reconciler.example.com"
	}

	text := ""
	if err := config.Check(); err != nil {
		text = err.Error()
	}

	refused := strings.Contains(text, "APP_KYMA_INSTALLER") || strings.Contains(text, "APP_LIFECYCLE_MANAGER_ENABLED")
	if refused != (i.kyma == "refused") {
		t.Errorf("%v: the broker says %q, the table %+v", combination, text, i)
	}

	if refused {
		return
	}

	for section, want := range map[string]string{"kyma": i.kyma, "lifecycleManager": i.lifecycleManager} {
		if got := installerOf(t, config, section); got != want {
			t.Errorf("%v: %s installs Kyma on plans with %s, the table says %s", combination, got, section, want)
		}
	}
}

// installerOf returns who installs Kyma on the new runtimes of a plan with one section about Kyma.
func installerOf(t *testing.T, config service.Config, section string) string {
	t.Helper()

	folder := t.TempDir()
	if err := os.CopyFS(folder, resources.Catalog()); err != nil {
		t.Fatal(err)
	}

	file := filepath.Join(folder, "plans", "preview.yaml")

	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}

	other := map[string]string{"kyma": "lifecycleManager", "lifecycleManager": "kyma"}[section]
	text := regexp.MustCompile(`(?m)^`+other+`:\n(  .*\n)+`).ReplaceAllString(string(content), "")
	text = strings.ReplaceAll(text, "  - kymaVersion\n", "")

	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}

	plans, err := catalog.Load(os.DirFS(folder), catalog.Options{
		KubernetesVersion: config.KubernetesVersion, OperationTimeout: config.Engine.OperationTimeout,
		KymaVersion: config.Kyma.Version, KymaInstaller: config.Kyma.Installer, LifecycleManager: config.LifecycleManager.Enabled,
	})
	if err != nil {
		t.Fatal(err)
	}

	plan, known := plans.ByID(harness.PlanPreview)
	if !known {
		t.Fatal("the catalog has no plan preview")
	}

	created, violations := plan.Resolve(environment.Instance{ID: "one", Request: environment.Request{User: "jane", Parameters: []byte(`{}`)}})
	if len(violations) > 0 {
		t.Fatal(violations.Err())
	}

	switch kyma := created.Request.Cluster.Kyma; {
	case kyma == nil:
		return "nobody"
	case kyma.InstalledBy(environment.InstallerLifecycleManager):
		return "Lifecycle Manager"
	case config.Kyma.Installer == environment.InstallerReconciler: // Provision_Initialization records it
		return "Reconciler"
	default:
		return "Provisioner"
	}
}

// TestRefusedInstallers checks the error messages of rejected combinations.
func TestRefusedInstallers(t *testing.T) {
	t.Parallel()

	for reason, test := range map[string]struct {
		change func(*service.Config)
		want   string
	}{
		"Lifecycle Manager needs a control plane": {
			func(c *service.Config) { c.LifecycleManager.Enabled, c.Kyma.KubeconfigPath = true, "" },
			"APP_LIFECYCLE_MANAGER_ENABLED: also set APP_CONTROL_PLANE_KUBECONFIG_PATH",
		},
		"the Provisioner installs Kyma": {
			func(c *service.Config) { c.LifecycleManager.Enabled = true },
			"APP_LIFECYCLE_MANAGER_ENABLED: the Provisioner installs Kyma 1.0.0 on new runtimes, so no other system may do so: set APP_KYMA_INSTALLER=reconciler, " +
				"or unset APP_LIFECYCLE_MANAGER_ENABLED or APP_KYMA_VERSION",
		},
		"the Provisioner installs Kyma although a Reconciler is connected": {
			func(c *service.Config) { c.Reconciler.URL = "http://reconciler.example.com" },
			"APP_RECONCILER_URL: the Provisioner installs Kyma 1.0.0 on new runtimes",
		},
		"the Reconciler has no address": {
			func(c *service.Config) { c.Kyma.Installer = environment.InstallerReconciler }, "APP_KYMA_INSTALLER: reconciler also needs APP_RECONCILER_URL",
		},
		"an unknown installer": {
			func(c *service.Config) { c.Kyma.Installer = "helm" }, `APP_KYMA_INSTALLER: "helm" is neither provisioner nor reconciler`,
		},
		"an invalid address": {
			func(c *service.Config) {
				c.Kyma.Installer, c.Reconciler.URL = environment.InstallerReconciler, "reconciler"
			},
			"APP_RECONCILER_URL: must be an http or https URL",
		},
	} {
		config := service.DefaultConfig()
		config.Kyma.Version, config.Kyma.KubeconfigPath = "1.0.0", "kubeconfig"
		test.change(&config)

		if err := config.Check(); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v, want %q", reason, err, test.want)
		}
	}
}
