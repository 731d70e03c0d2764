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

// Landscape is what files say about all Shoots of the landscape.
type Landscape struct {
	// MaintenanceWindows are by region.
	MaintenanceWindows map[string]gardencorev1beta1.MaintenanceTimeWindow
	AuditLogs          shoot.AuditLogs
}

// readLandscape reads the files that the configuration names, and tells everything that is wrong with them at once.
func readLandscape(config Gardener) (Landscape, error) {
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

// shoots are what all Shoots of the landscape have in common.
func (g Gardener) shoots(landscape Landscape) shoot.Options {
	extensions := g.Extensions
	if slices.Equal(extensions, []string{noExtensions}) {
		extensions = nil
	}

	return shoot.Options{
		Namespace:              namespace(g.Project),
		AuditPolicyConfigMap:   g.AuditLogsPolicyConfigMap,
		AuditLogTenant:         g.AuditLogsTenant,
		AuditLogs:              landscape.AuditLogs,
		AutoUpdateKubernetes:   g.AutoUpdateKubernetes,
		AutoUpdateMachineImage: g.AutoUpdateMachineImage,
		RequireIMDSv2:          g.EnableIMDSv2,
		MaintenanceWindows:     landscape.MaintenanceWindows,
		Extensions:             extensions,
	}
}
