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

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"

	"github.com/environment-broker/environment-broker/provisioner/shoot"
)

// noExtensions is how a configuration says that Shoots get no extension: an empty variable is one that is not set.
const noExtensions = "none"

// Shoots is what all Shoots of the landscape have in common.
type Shoots struct {
	AuditLogsPolicyConfigMap string   `env:"AUDIT_LOGS_POLICY_CONFIG_MAP"                     help:"ConfigMap with the audit log policy; empty for none"`
	AuditLogsTenant          string   `env:"AUDIT_LOGS_TENANT"                                help:"account to which the landscape's audit logging ascribes all clusters; empty for none"`
	AuditLogsConfigPath      string   `env:"AUDIT_LOGS_TENANT_CONFIG_PATH"                    help:"JSON file of where audit logs go, read at the start; empty for nowhere"`
	MaintenanceWindowPath    string   `env:"MAINTENANCE_WINDOW_CONFIG_PATH"                   help:"JSON file of when Gardener may touch clusters for production, read at the start; empty for when it likes"`
	Extensions               []string `env:"EXTENSIONS"                                       help:"extensions of Gardener that every cluster gets, comma-separated; none for none"`
	AutoUpdateKubernetes     bool     `env:"DEFAULT_ENABLE_KUBERNETES_VERSION_AUTO_UPDATE"    help:"whether Gardener updates Kubernetes by itself where an order does not say"`
	AutoUpdateMachineImage   bool     `env:"DEFAULT_ENABLE_MACHINE_IMAGE_VERSION_AUTO_UPDATE" help:"whether Gardener updates machine images by itself where an order does not say"`
	EnableIMDSv2             bool     `env:"DEFAULT_ENABLE_IMDSV2"                            help:"whether machines on AWS demand tokens from whoever reads their metadata where an order does not say"`
}

// check finds extensions that cannot be had like this.
func (s Shoots) check() error {
	switch {
	case slices.Contains(s.Extensions, noExtensions) && len(s.Extensions) > 1:
		return errors.New("APP_GARDENER_EXTENSIONS: none stands alone")
	case slices.Contains(s.Extensions, shoot.ExtensionAuditLog):
		return errors.New("APP_GARDENER_EXTENSIONS: " + shoot.ExtensionAuditLog +
			" needs to know where logs go: leave it out and set APP_GARDENER_AUDIT_LOGS_TENANT_CONFIG_PATH")
	default:
		return nil
	}
}

// Landscape is what files say about all Shoots of the landscape.
type Landscape struct {
	// MaintenanceWindows are by region.
	MaintenanceWindows map[string]gardencorev1beta1.MaintenanceTimeWindow
	AuditLogs          shoot.AuditLogs
}

// readLandscape reads the files that the configuration names, and tells everything that is wrong with them at once.
func readLandscape(config Shoots) (Landscape, error) {
	var landscape Landscape

	return landscape, errors.Join(
		readFile("APP_GARDENER_MAINTENANCE_WINDOW_CONFIG_PATH", config.MaintenanceWindowPath, &landscape.MaintenanceWindows,
			func() error { return checkWindows(landscape.MaintenanceWindows) }),
		readFile("APP_GARDENER_AUDIT_LOGS_TENANT_CONFIG_PATH", config.AuditLogsConfigPath, &landscape.AuditLogs,
			func() error { return checkAuditLogs(landscape.AuditLogs) }),
	)
}

// readFile reads JSON from the file that the variable names, if it names one, and has it checked.
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
		return fmt.Errorf("%s: %s: there is something behind the object", variable, path)
	}

	if err := check(); err != nil {
		return fmt.Errorf("%s: %s: %w", variable, path, err)
	}

	return nil
}

func checkWindows(windows map[string]gardencorev1beta1.MaintenanceTimeWindow) error {
	moment := regexp.MustCompile(`^([01][0-9]|2[0-3])[0-5][0-9][0-5][0-9][+-](0[0-9]|1[0-4])[0-5][0-9]$`)

	for _, region := range slices.Sorted(maps.Keys(windows)) {
		for _, text := range []string{windows[region].Begin, windows[region].End} {
			if !moment.MatchString(text) {
				return fmt.Errorf("region %s: begin and end look like 030000+0100, not %q", region, text)
			}
		}
	}

	return nil
}

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

// options are what every Shoot of the project is made with.
func (s Shoots) options(project string, landscape Landscape) shoot.Options {
	extensions := s.Extensions
	if slices.Equal(extensions, []string{noExtensions}) {
		extensions = nil
	}

	return shoot.Options{
		Namespace:              namespace(project),
		AuditPolicyConfigMap:   s.AuditLogsPolicyConfigMap,
		AuditLogTenant:         s.AuditLogsTenant,
		AuditLogs:              landscape.AuditLogs,
		AutoUpdateKubernetes:   s.AutoUpdateKubernetes,
		AutoUpdateMachineImage: s.AutoUpdateMachineImage,
		RequireIMDSv2:          s.EnableIMDSv2,
		MaintenanceWindows:     landscape.MaintenanceWindows,
		Extensions:             extensions,
	}
}
