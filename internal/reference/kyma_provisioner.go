package main

import (
	"cmp"
	"strings"
	"time"

	"github.com/environment-broker/environment-broker/internal/config"
	provisioner "github.com/environment-broker/environment-broker/provisioner/service"
)

// kymaVariable is a variable of the Kyma Provisioner.
type kymaVariable struct {
	name string
	// value is the default in the Kyma Provisioner.
	value string
	// dropped is the reason why our Provisioner lacks the variable. It is empty for a variable that our Provisioner has.
	dropped string
	// changed is the reason why our default differs. If it is empty, the page shows our default without a reason.
	changed string
}

// Values and reasons of several variables.
const (
	off        = "false"
	oneChain   = "the limit of the same name without NO_INSTALL applies, with Kyma or without"
	inside     = "no separate timeout: the stage retries the work until its own timeout"
	noReleases = "no downloads in the background: the Provisioner downloads a release when an order names it"
	noRoles    = "operators have no standing roles in clusters: they request a kubeconfig, which is audited"
)

// kymaVariables lists the variables of all versions of the Kyma Provisioner, in the order of its documentation: service, Compass, database,
// timeouts, Gardener, and variables that only old versions have.
func kymaVariables() []kymaVariable {
	return []kymaVariable{
		{name: "APP_ADDRESS", value: "127.0.0.1:3000"},
		{name: "APP_API_ENDPOINT", value: "/graphql"},
		{name: "APP_PLAYGROUND_API_ENDPOINT", value: "/graphql"},
		{name: "APP_LOG_LEVEL", value: "info"},
		{name: "APP_METRICS_ADDRESS", value: "127.0.0.1:9000", dropped: "APP_STATUS_ADDRESS serves health, readiness and metrics"},
		{name: "APP_ENQUEUE_IN_PROGRESS_OPERATIONS", value: "true"},

		{name: "APP_CREDENTIALS_NAMESPACE", value: "compass-system"},
		{name: "APP_OAUTH_CREDENTIALS_SECRET_NAME", value: "compass-provisioner-credentials"},
		{name: "APP_DIRECTOR_URL", value: "https://compass-gateway-auth-oauth.kyma.local/director/graphql"},
		{name: "APP_SKIP_DIRECTOR_CERT_VERIFICATION", value: off},
		{
			name: "APP_DIRECTOR_OAUTH_PATH", value: "./dev/director.yaml",
			changed: "empty: the Secret that APP_OAUTH_CREDENTIALS_SECRET_NAME names holds the credentials, as in early versions",
		},

		{name: "APP_DATABASE_USER", value: "postgres"},
		{name: "APP_DATABASE_PASSWORD", value: "password", changed: "the default is the same, but not shown"},
		{name: "APP_DATABASE_HOST", value: "localhost"},
		{name: "APP_DATABASE_PORT", value: "5432"},
		{name: "APP_DATABASE_NAME", value: "provisioner"},
		{name: "APP_DATABASE_SSL_MODE", value: "disable"},
		{name: "APP_DATABASE_SSL_ROOT_CERT"},
		{name: "APP_DATABASE_SECRET_KEY", dropped: "APP_DATABASE_SECRET_KEYS holds several keys with ids, for AES-GCM in place of AES-CFB"},

		{name: "APP_PROVISIONING_TIMEOUT_CLUSTER_CREATION", value: "60m"},
		{name: "APP_PROVISIONING_TIMEOUT_CLUSTER_DOMAINS", value: "10m"},
		{name: "APP_PROVISIONING_TIMEOUT_BINDINGS_CREATION", value: "5m"},
		{name: "APP_PROVISIONING_TIMEOUT_INSTALLATION_TRIGGERING", value: "20m"},
		{name: "APP_PROVISIONING_TIMEOUT_INSTALLATION", value: "60m"},
		{name: "APP_PROVISIONING_TIMEOUT_UPGRADE", value: "60m"},
		{name: "APP_PROVISIONING_TIMEOUT_UPGRADE_TRIGGERING", value: "20m"},
		{name: "APP_PROVISIONING_TIMEOUT_SHOOT_UPGRADE", value: "30m"},
		{name: "APP_PROVISIONING_TIMEOUT_SHOOT_REFRESH", value: "5m"},
		{name: "APP_PROVISIONING_TIMEOUT_AGENT_CONFIGURATION", value: "15m"},
		{name: "APP_PROVISIONING_TIMEOUT_AGENT_CONNECTION", value: "15m"},
		{name: "APP_PROVISIONING_NO_INSTALL_TIMEOUT_CLUSTER_CREATION", value: "60m", dropped: oneChain},
		{name: "APP_PROVISIONING_NO_INSTALL_TIMEOUT_CLUSTER_DOMAINS", value: "10m", dropped: oneChain},
		{name: "APP_PROVISIONING_NO_INSTALL_TIMEOUT_BINDINGS_CREATION", value: "5m", dropped: oneChain},
		{name: "APP_PROVISIONING_NO_INSTALL_TIMEOUT_AGENT_CONFIGURATION", value: "15m", dropped: oneChain},
		{name: "APP_DEPROVISIONING_TIMEOUT_CLUSTER_CLEANUP", value: "20m"},
		{name: "APP_DEPROVISIONING_TIMEOUT_CLUSTER_DELETION", value: "30m", dropped: inside},
		{name: "APP_DEPROVISIONING_TIMEOUT_WAITING_FOR_CLUSTER_DELETION", value: "60m"},
		{name: "APP_DEPROVISIONING_NO_INSTALL_TIMEOUT_CLUSTER_DELETION", value: "30m", dropped: inside},
		{name: "APP_DEPROVISIONING_NO_INSTALL_TIMEOUT_WAITING_FOR_CLUSTER_DELETION", value: "60m", dropped: oneChain},
		{name: "APP_HIBERNATION_TIMEOUT_WAITING_FOR_CLUSTER_HIBERNATION", value: "60m"},

		{name: "APP_OPERATOR_ROLE_BINDING_L2SUBJECT_NAME", value: "runtimeOperator", dropped: noRoles},
		{name: "APP_OPERATOR_ROLE_BINDING_L3SUBJECT_NAME", value: "runtimeAdmin", dropped: noRoles},
		{name: "APP_OPERATOR_ROLE_BINDING_CREATING_FOR_ADMIN", value: off, dropped: "the administrators that an order names always get their rights"},

		{name: "APP_GARDENER_PROJECT", value: "gardenerProject"},
		{name: "APP_GARDENER_KUBECONFIG_PATH", value: "./dev/kubeconfig.yaml"},
		{name: "APP_GARDENER_AUDIT_LOGS_POLICY_CONFIG_MAP"},
		{name: "APP_GARDENER_AUDIT_LOGS_TENANT"},
		{name: "APP_GARDENER_AUDIT_LOGS_TENANT_CONFIG_PATH"},
		{name: "APP_GARDENER_MAINTENANCE_WINDOW_CONFIG_PATH"},
		{name: "APP_GARDENER_CLUSTER_CLEANUP_RESOURCE_SELECTOR", value: "https://service-manager."},
		{name: "APP_GARDENER_DEFAULT_ENABLE_KUBERNETES_VERSION_AUTO_UPDATE", value: off},
		{name: "APP_GARDENER_DEFAULT_ENABLE_MACHINE_IMAGE_VERSION_AUTO_UPDATE", value: off},
		{name: "APP_GARDENER_DEFAULT_ENABLE_IMDSV2", value: off},
		{name: "APP_GARDENER_FORCE_ALLOW_PRIVILEGED_CONTAINERS", value: off, dropped: "Gardener no longer has this field"},
		{name: "APP_GARDENER_ENABLE_DUMP_SHOOT_SPEC", value: off, dropped: "was a test aid"},

		{name: "APP_LATEST_DOWNLOADED_RELEASES", value: "5", dropped: noReleases},
		{name: "APP_DOWNLOAD_PRE_RELEASES", value: "true", dropped: noReleases},
		{name: "APP_SUPPORT_ON_DEMAND_RELEASES", value: off, dropped: noReleases},
		{name: "APP_PROVISIONER", value: "gardener", dropped: "Gardener is the only way to create clusters"},
		{name: "APP_RUN_AWS_CONFIG_MIGRATION", value: off, dropped: "was a migration aid"},
	}
}

const kymaProvisionerHead = `# Variables of the Kyma Provisioner

<!-- Generated by ` + "`make generate`" + `. Change internal/reference/kyma_provisioner.go instead. -->

The Provisioner keeps the variables of the Kyma Provisioner: the same names with the same defaults. [configuration.md](configuration.md)
explains them and lists the new ones. Names have one spelling, with an underscore between words: ` + "`APP_DATABASE_SSL_MODE`" + `, not
` + "`APP_DATABASE_SSLMODE`" + `. Unknown variables are ignored, so variables that are gone may stay set.

## Kept

| variable | default there | default here, if it differs |
| --- | --- | --- |
`

// kymaProvisionerPage lists the variables of the Kyma Provisioner that our Provisioner has, with changed defaults, and those that it lacks,
// with reasons. The current variables and defaults come from the code, so only the Kyma side is written by hand.
func kymaProvisionerPage() (string, error) {
	var kept, dropped strings.Builder

	present := presentVariables()

	for _, variable := range kymaVariables() {
		ours, isKept := present[variable.name]

		switch {
		case !isKept:
			row(&dropped, variable.name, code(variable.value), variable.dropped)
		case same(variable.value, ours.Default):
			row(&kept, variable.name, code(variable.value), "")
		default:
			row(&kept, variable.name, code(variable.value), cmp.Or(variable.changed, "here "+code(ours.Default)))
		}
	}

	return kymaProvisionerHead + kept.String() +
		"\n## Gone\n\n| variable | default there | why |\n| --- | --- | --- |\n" + dropped.String(), nil
}

// presentVariables returns the variables of our Provisioner by name.
func presentVariables() map[string]config.Variable {
	present := map[string]config.Variable{}
	for _, variable := range config.Variables(config.Prefix, provisioner.DefaultConfig()) {
		present[variable.Name] = variable
	}

	return present
}

// same reports whether two defaults are equal. Durations are compared by value: 60m equals 1h0m0s.
func same(one, other string) bool {
	first, err := time.ParseDuration(one)
	if err != nil {
		return one == other
	}

	second, err := time.ParseDuration(other)

	return err == nil && first == second
}
