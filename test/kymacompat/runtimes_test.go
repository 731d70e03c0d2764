package kymacompat

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/test/harness"
)

// TestKymaEnvironmentBroker takes a runtime of each provider from provisioning to deprovisioning, as Kyma Environment Broker does.
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

// lifecycle provisions, upgrades, hibernates and deprovisions a runtime.
func (c client) lifecycle(provider string, specific any) {
	c.Helper()

	ordered := c.ordered("provision_"+provider, "", "ProvisionNoInstall")
	runtimeID := *ordered.RuntimeID
	c.succeeded(*ordered.ID)

	status := c.status(runtimeID)
	if status.LastOperationStatus.State != "Succeeded" || status.RuntimeConnectionStatus.Status != "Pending" {
		c.Errorf("the runtime is told as %+v, %+v", status.LastOperationStatus, status.RuntimeConnectionStatus)
	}

	told := status.RuntimeConfiguration
	if told.Kubeconfig == nil || !strings.Contains(*told.Kubeconfig, "client-certificate-data") {
		c.Error("there is no kubeconfig")
	}

	if diff := cmp.Diff(specific, told.ClusterConfig.Specific); diff != "" {
		c.Errorf("the provider's part: -want +got\n%s", diff)
	}

	if dns := told.ClusterConfig.DNSConfig; (dns != nil) != (provider == "gcp") || dns != nil && dns.Providers[0].Type != "google-clouddns" {
		c.Errorf("the domain is told as %+v", dns)
	}

	wantOIDC := &oidc{
		ClientID: "console", GroupsClaim: "groups", IssuerURL: "https://issuer.example.com", SigningAlgs: []string{"RS256"},
		UsernameClaim: "sub", UsernamePrefix: "-",
	}
	if diff := cmp.Diff(wantOIDC, told.ClusterConfig.OIDCConfig); diff != "" {
		c.Errorf("the identity provider: -want +got\n%s", diff)
	}

	upgraded := c.ordered("upgrade_shoot", runtimeID, "UpgradeShoot")
	c.succeeded(*upgraded.ID)

	config := c.status(runtimeID).RuntimeConfiguration.ClusterConfig
	if *config.KubernetesVersion != "1.35.4" || *config.AutoScalerMax != 6 || config.OIDCConfig.ClientID != "cockpit" {
		c.Errorf("after the upgrade the runtime is %+v", config.settings)
	}

	asleep := c.ordered("hibernate", runtimeID, "Hibernate")
	c.succeeded(*asleep.ID)

	var removal string

	c.must(recorded(c.T, "deprovision", runtimeID, ""), &removal)
	c.succeeded(removal)

	gone := c.status(runtimeID)
	if gone.LastOperationStatus.Operation != "DeprovisionNoInstall" || gone.RuntimeConfiguration.Kubeconfig != nil {
		c.Errorf("after its removal the runtime is told as %+v", gone)
	}
}

// TestRefusals sends requests that are refused. Kyma Environment Broker decides by the code: 400 to 499 is final.
func TestRefusals(t *testing.T) {
	url := startOurProvisioner(t, harness.SQLite, time.Hour) // the first operation does not end
	c := client{T: t, url: url, tenant: tenant, subAccount: subAccount}
	ordered := c.ordered("provision_gcp", "", "ProvisionNoInstall")

	cases := map[string]struct {
		reason string
		body   string
		tenant string
		want   refusal
	}{
		"kyma": {
			reason: "without releases there is no Kyma", body: "provision_kyma", tenant: tenant,
			want: refused("kymaConfig: this Provisioner has no releases of Kyma: leave it out, or have APP_KYMA_RELEASES_PATH name their folder, or "+
				"APP_KYMA_RELEASES_REPOSITORY their repository",
				"err_provisioner_bad_request", "provisioner"),
		},
		"upgrade of Kyma": {
			reason: "there is none to upgrade", body: "upgrade_runtime", tenant: tenant,
			want: refused("the runtime "+*ordered.RuntimeID+" was ordered without Kyma, there is nothing to upgrade", "err_db_conflict", "provisioner"),
		},
		"roll back": {
			reason: "nor was there an upgrade", body: "roll_back", tenant: tenant, want: refused("", "err_db_conflict", "provisioner"),
		},
		"reconnect": {
			reason: "agents connect by way of Director, which is off", body: "reconnect", tenant: tenant,
			want: refused("", "err_keb_internal", "provisioner"),
		},
		"busy": {
			reason: "one operation runs after the other", body: "hibernate", tenant: tenant,
			want: refused("", "err_db_conflict", "provisioner"),
		},
		"no tenant": {
			reason: "every call needs a tenant", body: "runtime_status",
			want: refused("the header tenant is missing: it names the account", "err_provisioner_bad_request", "provisioner"),
		},
		"another tenant reads": {
			reason: "a runtime of another tenant does not exist, and does not change hands", body: "runtime_status", tenant: "other",
			want: refused(`there is no runtime "`+*ordered.RuntimeID+`" of this tenant`, "err_db_not_found", "db - provisioner"),
		},
		"another tenant removes": {
			reason: "nor can it be removed", body: "deprovision", tenant: "other",
			want: refused(`there is no runtime "`+*ordered.RuntimeID+`" of this tenant`, "err_db_not_found", "db - provisioner"),
		},
		"another tenant orders": {
			reason: "the name of a cluster is taken, whoever has it", body: "provision_gcp", tenant: "other",
			want: refused(`a cluster named "c-gcp" exists already: remove it, or use another name`, "err_db_already_exists", "db - provisioner"),
		},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			asker := client{T: t, url: url, tenant: tc.tenant}

			var nothing any

			got := asker.ask(recorded(t, tc.body, *ordered.RuntimeID, *ordered.ID), &nothing)
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

// refused is what Kyma Environment Broker reads for good. Without a message any one will do.
func refused(message, reason, component string) refusal {
	told := refusal{Message: message}
	told.Extensions.Code, told.Extensions.Reason, told.Extensions.Component = 400, reason, component

	return told
}
