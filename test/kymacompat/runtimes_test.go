package kymacompat

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/test/harness"
)

// TestKymaEnvironmentBroker creates, changes and removes a runtime of each provider with the requests of Kyma Environment
// Broker.
func TestKymaEnvironmentBroker(t *testing.T) {
	specific := map[string]any{
		"aws": &awsConfig{VpcCidr: new("10.250.0.0/16"), AwsZones: []struct {
			Name         *string `json:"name"`
			PublicCidr   *string `json:"publicCidr"`
			InternalCidr *string `json:"internalCidr"`
			WorkerCidr   *string `json:"workerCidr"`
		}{{new("eu-central-1a"), new("10.250.32.0/20"), new("10.250.48.0/20"), new("10.250.0.0/22")}}},
		"azure": &azureConfig{
			VnetCidr: new("10.250.0.0/16"), EnableNatGateway: new(true), IdleConnectionTimeoutMinutes: new(4),
			AzureZones: []struct {
				Name int    `json:"name"`
				Cidr string `json:"cidr"`
			}{{1, "10.250.0.0/19"}, {2, "10.250.32.0/19"}},
		},
		"gcp": &gcpConfig{Zones: []string{"europe-west3-a", "europe-west3-b"}},
		"openstack": &openStackConfig{
			Zones: []string{"eu-de-1a"}, FloatingPoolName: "FloatingIP-external-cp", CloudProfileName: "converged-cloud-cp",
			LoadBalancerProvider: "f5",
		},
	}

	harness.EachDatabase(t, func(t *testing.T, fresh harness.Database) {
		url := startOurProvisioner(t, fresh, 100*time.Millisecond)

		for provider, want := range specific {
			t.Run(provider, func(t *testing.T) {
				c := client{T: t, url: url, tenant: tenant, subAccount: subAccount, sendsGET: provider == "gcp"}
				c.lifecycle(provider, want)
			})
		}
	})
}

func (c client) lifecycle(provider string, specific any) {
	c.Helper()

	ordered := c.order("provision_"+provider, "", "ProvisionNoInstall")
	runtimeID := *ordered.RuntimeID
	c.wantSucceeded(*ordered.ID)

	status := c.status(runtimeID)
	if status.LastOperationStatus.State != "Succeeded" || status.RuntimeConnectionStatus.Status != "Pending" {
		c.Errorf("the status of the runtime is %+v, %+v", status.LastOperationStatus, status.RuntimeConnectionStatus)
	}

	configuration := status.RuntimeConfiguration
	if configuration.Kubeconfig == nil || !strings.Contains(*configuration.Kubeconfig, "client-certificate-data") {
		c.Error("the kubeconfig is missing")
	}

	if diff := cmp.Diff(specific, configuration.ClusterConfig.Specific); diff != "" {
		c.Errorf("the provider-specific part: -want +got\n%s", diff)
	}

	if dns := configuration.ClusterConfig.DNSConfig; (dns != nil) != (provider == "gcp") || dns != nil && dns.Providers[0].Type != "google-clouddns" {
		c.Errorf("the DNS configuration is %+v", dns)
	}

	wantOIDC := &oidc{
		ClientID: "console", GroupsClaim: "groups", IssuerURL: "https://issuer.example.com", SigningAlgs: []string{"RS256"},
		UsernameClaim: "sub", UsernamePrefix: "-",
	}
	if diff := cmp.Diff(wantOIDC, configuration.ClusterConfig.OIDCConfig); diff != "" {
		c.Errorf("the OIDC configuration: -want +got\n%s", diff)
	}

	upgraded := c.order("upgrade_shoot", runtimeID, "UpgradeShoot")
	c.wantSucceeded(*upgraded.ID)

	config := c.status(runtimeID).RuntimeConfiguration.ClusterConfig
	if *config.KubernetesVersion != "1.35.4" || *config.AutoScalerMax != 6 || config.OIDCConfig.ClientID != "cockpit" {
		c.Errorf("after the upgrade the runtime is %+v", config.settings)
	}

	hibernated := c.order("hibernate", runtimeID, "Hibernate")
	c.wantSucceeded(*hibernated.ID)

	var removal string

	c.mustSend(recorded(c.T, "deprovision", runtimeID, ""), &removal)
	c.wantSucceeded(removal)

	gone := c.status(runtimeID)
	if gone.LastOperationStatus.Operation != "DeprovisionNoInstall" || gone.RuntimeConfiguration.Kubeconfig != nil {
		c.Errorf("the status of the removed runtime is %+v", gone)
	}
}

// TestRejections sends requests that our Provisioner rejects. Kyma Environment Broker treats error codes from 400 to 499 as
// permanent.
func TestRejections(t *testing.T) {
	url := startOurProvisioner(t, harness.SQLite, time.Hour) // the first operation does not end
	c := client{T: t, url: url, tenant: tenant, subAccount: subAccount}
	ordered := c.order("provision_gcp", "", "ProvisionNoInstall")

	cases := map[string]struct {
		reason string
		body   string
		tenant string
		want   graphQLError
	}{
		"kyma": {
			reason: "Kyma cannot be installed without releases", body: "provision_kyma", tenant: tenant,
			want: permanentError(
				"kymaConfig: this Provisioner has no releases of Kyma: omit kymaConfig, or ask an operator to set APP_KYMA_RELEASES_PATH or APP_KYMA_RELEASES_REPOSITORY",
				"err_provisioner_bad_request", "provisioner"),
		},
		"upgrade of Kyma": {
			reason: "the runtime has no Kyma", body: "upgrade_runtime", tenant: tenant,
			want: conflictError("the runtime "+*ordered.RuntimeID+" was ordered without Kyma: there is nothing to upgrade", "err_db_conflict", "provisioner"),
		},
		"roll back": {
			reason: "there was no upgrade to roll back", body: "roll_back", tenant: tenant, want: conflictError("", "err_db_conflict", "provisioner"),
		},
		"reconnect": {
			reason: "agents connect through Director, which is disabled", body: "reconnect", tenant: tenant,
			want: permanentError("", "err_keb_internal", "provisioner"),
		},
		"busy": {
			reason: "a runtime has one operation at a time", body: "hibernate", tenant: tenant,
			want: conflictError("", "err_db_conflict", "provisioner"),
		},
		"no tenant": {
			reason: "every call needs a tenant", body: "runtime_status",
			want: permanentError("the tenant header is missing: it must contain the account ID", "err_provisioner_bad_request", "provisioner"),
		},
		"another tenant reads": {
			reason: "a runtime of another tenant is invisible", body: "runtime_status", tenant: "other",
			want: permanentError(`this tenant has no runtime "`+*ordered.RuntimeID+`"`, "err_db_not_found", "db - provisioner"),
		},
		"another tenant removes": {
			reason: "a runtime of another tenant cannot be removed", body: "deprovision", tenant: "other",
			want: permanentError(`this tenant has no runtime "`+*ordered.RuntimeID+`"`, "err_db_not_found", "db - provisioner"),
		},
		"another tenant orders": {
			reason: "names of clusters are unique across tenants", body: "provision_gcp", tenant: "other",
			want: conflictError(`a cluster named "c-gcp" already exists: remove it, or use another name`, "err_db_already_exists", "db - provisioner"),
		},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := client{T: t, url: url, tenant: tc.tenant}

			var nothing any

			got := c.send(recorded(t, tc.body, *ordered.RuntimeID, *ordered.ID), &nothing)
			if len(got) != 1 {
				t.Fatalf("%s: got %+v, %v", tc.reason, got, nothing)
			}

			if tc.want.Message == "" {
				tc.want.Message = got[0].Message
			}

			if diff := cmp.Diff(tc.want, got[0]); diff != "" {
				t.Errorf("%s: -want +got\n%s", tc.reason, diff)
			}
		})
	}
}

// conflictError is like permanentError, but returns an error with the code for conflicts.
func conflictError(message, reason, component string) graphQLError {
	problem := permanentError(message, reason, component)
	problem.Extensions.Code = 409

	return problem
}

// permanentError returns an expected error, which Kyma Environment Broker does not retry. With an empty message, the test accepts
// any message.
func permanentError(message, reason, component string) graphQLError {
	problem := graphQLError{Message: message}
	problem.Extensions.Code, problem.Extensions.Reason, problem.Extensions.Component = 400, reason, component

	return problem
}
