package service

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/internal/program"
	"github.com/environment-broker/environment-broker/provisioner/shoot"
)

func file(t *testing.T, text string) string {
	t.Helper()

	path := filepath.Join(t.TempDir(), "file.json")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}

	return path
}

// TestVariablesReachShoots sets every variable of Shoots and checks the options of package shoot.
func TestVariablesReachShoots(t *testing.T) {
	windows := file(t, `{"eu-central-1": {"begin": "030000+0100", "end": "040000+0100"}}`)
	logs := file(t, `{"aws": {"eu-central-1": {"tenantID": "t", "serviceURL": "https://logs.example.com", "secretName": "s"}}}`)

	set, err := program.ReadSettings(program.Prefix, DefaultConfig(), []string{
		"APP_GARDENER_PROJECT=kyma",
		"APP_GARDENER_AUDIT_LOGS_POLICY_CONFIG_MAP=policy",
		"APP_GARDENER_AUDIT_LOGS_TENANT=tenant",
		"APP_GARDENER_AUDIT_LOGS_TENANT_CONFIG_PATH=" + logs,
		"APP_GARDENER_MAINTENANCE_WINDOW_CONFIG_PATH=" + windows,
		"APP_GARDENER_EXTENSIONS=shoot-dns-service,own",
		"APP_GARDENER_DEFAULT_ENABLE_KUBERNETES_VERSION_AUTO_UPDATE=true",
		"APP_GARDENER_DEFAULT_ENABLE_MACHINE_IMAGE_VERSION_AUTO_UPDATE=true",
		"APP_GARDENER_DEFAULT_ENABLE_IMDSV2=true",
	})
	if err != nil {
		t.Fatal(err)
	}

	if err := set.check(); err != nil {
		t.Fatal(err)
	}

	files, err := readShootFiles(set.Gardener.Shoots)
	if err != nil {
		t.Fatal(err)
	}

	want := shoot.Options{
		Namespace: "garden-kyma", AuditPolicyConfigMap: "policy", AuditLogTenant: "tenant",
		AuditLogs: shoot.AuditLogs{"aws": {"eu-central-1": {TenantID: "t", ServiceURL: "https://logs.example.com", SecretName: "s"}}},
		MaintenanceWindows: map[string]gardencorev1beta1.MaintenanceTimeWindow{
			"eu-central-1": {Begin: "030000+0100", End: "040000+0100"},
		},
		AutoUpdateKubernetes: true, AutoUpdateMachineImage: true, RequireIMDSv2: true,
		Extensions: []string{"shoot-dns-service", "own"},
	}
	if diff := cmp.Diff(want, set.Gardener.Shoots.options(set.Gardener.Project, files)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestDefaultsOfShoots(t *testing.T) {
	files, err := readShootFiles(DefaultConfig().Gardener.Shoots)
	if err != nil {
		t.Fatal(err)
	}

	want := shoot.Options{Namespace: "garden-local", Extensions: []string{
		"shoot-cert-service", "shoot-dns-service", "shoot-networking-filter", "shoot-oidc-service",
	}}
	if diff := cmp.Diff(want, DefaultConfig().Gardener.Shoots.options("local", files)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}

	without := DefaultConfig().Gardener.Shoots
	without.Extensions = []string{"none"}

	if got := without.options("local", files).Extensions; got != nil {
		t.Errorf("without extensions: got %v", got)
	}
}

func TestShootFilesAreRefused(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing.json")
	windows := func(text string) Shoots { return Shoots{MaintenanceWindowPath: file(t, text)} }
	logs := func(text string) Shoots { return Shoots{AuditLogsConfigPath: file(t, text)} }

	const windowVariable, logVariable = "APP_GARDENER_MAINTENANCE_WINDOW_CONFIG_PATH", "APP_GARDENER_AUDIT_LOGS_TENANT_CONFIG_PATH"

	cases := map[string]struct {
		reason string
		config Shoots
		want   []string
	}{
		"Missing": {
			reason: "One error reports both variables.",
			config: Shoots{MaintenanceWindowPath: missing, AuditLogsConfigPath: missing},
			want:   []string{windowVariable, logVariable, missing},
		},
		"NoJSON":   {"The file must be JSON.", windows(`begin: 3`), []string{windowVariable, "invalid character"}},
		"MoreJSON": {"Data after the object would be ignored.", windows(`{} {}`), []string{windowVariable, "unexpected data after"}},
		"Misspelt": {"An unknown field would be ignored.", windows(`{"r": {"start": "030000+0100"}}`), []string{windowVariable, `"start"`}},
		"NoTime":   {"Gardener would reject every Shoot with such a time.", windows(`{"r": {"begin": "03:00", "end": "040000+0100"}}`), []string{"region r", `"03:00"`}},
		"NoHour":   {"Gardener would reject every Shoot with such an hour.", windows(`{"r": {"begin": "240000+0100", "end": "040000+0100"}}`), []string{`"240000+0100"`}},
		"Short": {
			"Gardener would reject every Shoot with such a window.", windows(`{"r": {"begin": "030000+0100", "end": "032959+0100"}}`),
			[]string{"region r", "between 30m0s and 6h0m0s, not 29m59s"},
		},
		"Long": {"Gardener would reject every Shoot with such a window.", windows(`{"r": {"begin": "220000+0100", "end": "040001+0100"}}`), []string{"not 6h0m1s"}},
		"OtherOffset": {
			"The offsets of both times count, so this window is empty.", windows(`{"r": {"begin": "030000+0100", "end": "040000+0200"}}`),
			[]string{"region r", "between 30m0s and 6h0m0s, not"},
		},
		"NoSecret":  {"A target needs credentials.", logs(`{"aws": {"r": {"tenantID": "t", "serviceURL": "u"}}}`), []string{logVariable, "provider aws, region r", "secretName"}},
		"NoRegions": {"The outer keys are providers, the inner keys regions.", logs(`{"aws": {"tenantID": "t"}}`), []string{logVariable, "cannot unmarshal"}},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := readShootFiles(tc.config)
			for _, want := range tc.want {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("%s\nwant …%s…, got %v", tc.reason, want, err)
				}
			}
		})
	}
}

func TestConfigRefusesExtensions(t *testing.T) {
	for extensions, want := range map[string]string{
		"none,own":               "cannot be combined with other values",
		"shoot-auditlog-service": "set APP_GARDENER_AUDIT_LOGS_TENANT_CONFIG_PATH",
	} {
		set := DefaultConfig()
		set.Gardener.Shoots.Extensions = strings.Split(extensions, ",")

		if err := set.check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: want …%s…, got %v", extensions, want, err)
		}
	}
}
