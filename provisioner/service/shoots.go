package service

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/apis/utils/timewindow"

	"github.com/environment-broker/environment-broker/provisioner/shoot"
	"github.com/environment-broker/environment-broker/provisioner/validation"
)

// noExtensions is the value of APP_GARDENER_EXTENSIONS for Shoots without extensions. An empty value selects the default
// extensions.
const noExtensions = "none"

// Shoots configures the settings that all Shoots share. A replica reads the files at startup, so a changed file takes effect
// after a restart.
type Shoots struct {
	AuditLogsPolicyConfigMap string   `env:"AUDIT_LOGS_POLICY_CONFIG_MAP"                     help:"ConfigMap with the audit log policy; empty for none"`
	AuditLogsTenant          string   `env:"AUDIT_LOGS_TENANT"                                help:"account under which the audit logs of all clusters are stored; empty for none"`
	AuditLogsConfigPath      string   `env:"AUDIT_LOGS_TENANT_CONFIG_PATH"                    help:"JSON file with the targets of audit logs, read at startup; empty for none"`
	MaintenanceWindowPath    string   `env:"MAINTENANCE_WINDOW_CONFIG_PATH"                   help:"JSON file with the maintenance windows of production clusters, read at startup; if empty, Gardener chooses the windows"`
	Extensions               []string `env:"EXTENSIONS"                                       help:"Gardener extensions for every cluster, comma-separated; the value none disables them"`
	AutoUpdateKubernetes     bool     `env:"DEFAULT_ENABLE_KUBERNETES_VERSION_AUTO_UPDATE"    help:"whether Gardener updates Kubernetes, for orders that do not specify this"`
	AutoUpdateMachineImage   bool     `env:"DEFAULT_ENABLE_MACHINE_IMAGE_VERSION_AUTO_UPDATE" help:"whether Gardener updates machine images, for orders that do not specify this"`
	EnableIMDSv2             bool     `env:"DEFAULT_ENABLE_IMDSV2"                            help:"whether instance metadata on AWS requires tokens, for orders that do not specify this"`

	KubernetesVersion string            `env:"DEFAULT_KUBERNETES_VERSION" help:"Kubernetes version for orders without a version; if empty, each order must contain a version"`
	MachineTypes      map[string]string `env:"DEFAULT_MACHINE_TYPES"      help:"machine types for orders without a machine type, as provider:type,…"`
}

// defaultMachineTypes maps each provider to a small general-purpose machine type. The broker's plans have the same defaults.
func defaultMachineTypes() map[string]string {
	return map[string]string{"aws": "m6i.large", "azure": "Standard_D2s_v5", "gcp": "n2-standard-2", "openstack": "g_c2_m8"}
}

// check returns an error if a default for orders is invalid, if Extensions combines "none" with other values, or if Extensions
// contains the extension for audit logs, which another variable enables.
func (s Shoots) check() error {
	for provider, machine := range s.MachineTypes {
		if known := slices.Sorted(maps.Keys(defaultMachineTypes())); !slices.Contains(known, provider) || machine == "" {
			return fmt.Errorf("APP_GARDENER_DEFAULT_MACHINE_TYPES: %q must have the form provider:type, with one of the providers %s", provider+":"+machine, strings.Join(known, ", "))
		}
	}

	switch {
	case s.KubernetesVersion != "" && !validation.IsKubernetesVersion(s.KubernetesVersion):
		return fmt.Errorf("APP_GARDENER_DEFAULT_KUBERNETES_VERSION: must look like 1.33 or 1.33.2, not %q", s.KubernetesVersion)
	case slices.Contains(s.Extensions, noExtensions) && len(s.Extensions) > 1:
		return errors.New("APP_GARDENER_EXTENSIONS: \"none\" cannot be combined with other values")
	case slices.Contains(s.Extensions, shoot.ExtensionAuditLog):
		return errors.New("APP_GARDENER_EXTENSIONS: " + shoot.ExtensionAuditLog +
			" requires targets, so omit it and set APP_GARDENER_AUDIT_LOGS_TENANT_CONFIG_PATH")
	default:
		return nil
	}
}

// ShootFiles contains the Shoot settings that are read from files. Both fields are empty if no file is configured.
type ShootFiles struct {
	// MaintenanceWindows maps regions to the maintenance windows of their production clusters.
	MaintenanceWindows map[string]gardencorev1beta1.MaintenanceTimeWindow
	// AuditLogs maps providers and regions to the targets of audit logs.
	AuditLogs shoot.AuditLogs
}

// readShootFiles reads and checks the configured files. Its error contains the first problem in each file.
func readShootFiles(config Shoots) (ShootFiles, error) {
	var files ShootFiles

	return files, errors.Join(
		readFile("APP_GARDENER_MAINTENANCE_WINDOW_CONFIG_PATH", config.MaintenanceWindowPath, &files.MaintenanceWindows,
			func() error { return checkWindows(files.MaintenanceWindows) }),
		readFile("APP_GARDENER_AUDIT_LOGS_TENANT_CONFIG_PATH", config.AuditLogsConfigPath, &files.AuditLogs,
			func() error { return checkAuditLogs(files.AuditLogs) }),
	)
}

// readFile decodes the JSON file that a variable names and checks the result. It does nothing if the path is empty. Unknown
// fields are errors, because a misspelled field would otherwise be silently ignored.
func readFile(variable, path string, into any, check func() error) error {
	if path == "" {
		return nil
	}

	text, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("%s: %w", variable, err)
	}

	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()

	if err := decoder.Decode(into); err != nil {
		return fmt.Errorf("%s: %s: %w", variable, path, err)
	}

	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("%s: %s: unexpected data after the object", variable, path)
	}

	if err := check(); err != nil {
		return fmt.Errorf("%s: %s: %w", variable, path, err)
	}

	return nil
}

// checkWindows rejects windows that Gardener would reject. A valid time is HHMMSS with the offset from UTC, for example
// 030000+0100. Gardener limits the length of a window.
func checkWindows(windows map[string]gardencorev1beta1.MaintenanceTimeWindow) error {
	moment := regexp.MustCompile(`^([01][0-9]|2[0-3])[0-5][0-9][0-5][0-9][+-](0[0-9]|1[0-4])[0-5][0-9]$`)

	for _, region := range slices.Sorted(maps.Keys(windows)) {
		for _, text := range []string{windows[region].Begin, windows[region].End} {
			if !moment.MatchString(text) {
				return fmt.Errorf("region %s: begin and end must look like 030000+0100, not %q", region, text)
			}
		}

		window, err := timewindow.ParseMaintenanceTimeWindow(windows[region].Begin, windows[region].End)
		if err != nil {
			return fmt.Errorf("region %s: %w", region, err)
		}

		shortest, longest := gardencorev1beta1.MaintenanceTimeWindowDurationMinimum, gardencorev1beta1.MaintenanceTimeWindowDurationMaximum
		if length := window.Duration(); length < shortest || length > longest {
			return fmt.Errorf("region %s: the time from begin to end must be between %s and %s, not %s", region, shortest, longest, length)
		}
	}

	return nil
}

// checkAuditLogs rejects incomplete targets, with which Gardener would create a Shoot without its audit log.
func checkAuditLogs(logs shoot.AuditLogs) error {
	for _, provider := range slices.Sorted(maps.Keys(logs)) {
		for _, region := range slices.Sorted(maps.Keys(logs[provider])) {
			if log := logs[provider][region]; log.TenantID == "" || log.ServiceURL == "" || log.SecretName == "" {
				return fmt.Errorf("provider %s, region %s: tenantID, serviceURL and secretName must not be empty", provider, region)
			}
		}
	}

	return nil
}

// options returns the options for all Shoots of the project. The given files are the result of readShootFiles.
func (s Shoots) options(project string, files ShootFiles) shoot.Options {
	extensions := s.Extensions
	if slices.Equal(extensions, []string{noExtensions}) {
		extensions = nil
	}

	return shoot.Options{
		Namespace:              namespace(project),
		AuditPolicyConfigMap:   s.AuditLogsPolicyConfigMap,
		AuditLogTenant:         s.AuditLogsTenant,
		AuditLogs:              files.AuditLogs,
		AutoUpdateKubernetes:   s.AutoUpdateKubernetes,
		AutoUpdateMachineImage: s.AutoUpdateMachineImage,
		RequireIMDSv2:          s.EnableIMDSv2,
		MaintenanceWindows:     files.MaintenanceWindows,
		Extensions:             extensions,
	}
}
