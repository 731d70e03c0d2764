package provisionerclient

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/internal/clients/provisionerclient/wire"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
)

func instance(provider string, zones ...string) environment.Instance {
	return environment.Instance{
		ID: "instance-1", GlobalAccountID: "account-1", SubAccountID: "sub-1", Provider: provider, Region: "region-1",
		Name: "first", ShootName: "c-1234567", RuntimeID: "runtime-1",
		Request: environment.Request{
			Parameters: json.RawMessage(`{"password":"hush"}`),
			Cluster: environment.Cluster{
				KubernetesVersion: "1.35.4", MachineType: "large", VolumeType: "fast", VolumeSizeGB: 80,
				AutoScalerMin: 2, AutoScalerMax: 9, MaxSurge: 3, MaxUnavailable: 1, Zones: zones, NodesCIDR: "10.250.0.0/16",
				PodsCIDR: "10.96.0.0/13", ServicesCIDR: "10.104.0.0/13", Purpose: "production", LicenceType: "Partner",
				Administrators: []string{"a@example.com", "b@example.com"},
			},
		},
	}
}

func order(provider string, specific *wire.ProviderSpecificInput) *wire.ProvisionRuntimeInput {
	return &wire.ProvisionRuntimeInput{
		RuntimeInput: &wire.RuntimeInput{
			Name: "first-c-1234567", Labels: map[string]any{"broker_instance_id": "instance-1", "global_subaccount_id": "sub-1"},
		},
		ClusterConfig: &wire.ClusterConfigInput{
			Administrators: []string{"a@example.com", "b@example.com"},
			GardenerConfig: &wire.GardenerConfigInput{
				Name: "c-1234567", KubernetesVersion: "1.35.4", Provider: provider, Region: "region-1",
				MachineType: "large", DiskType: new("fast"), VolumeSizeGB: new(80),
				WorkerCidr: "10.250.0.0/16", PodsCidr: new("10.96.0.0/13"), ServicesCidr: new("10.104.0.0/13"),
				AutoScalerMin: 2, AutoScalerMax: 9, MaxSurge: 3, MaxUnavailable: 1,
				Purpose: new("production"), LicenceType: new("Partner"), ProviderSpecificConfig: specific,
			},
		},
	}
}

func TestOrderOfEachProvider(t *testing.T) {
	cases := map[string]struct {
		reason string
		zones  []string
		want   *wire.ProviderSpecificInput
	}{
		"aws": {
			reason: "each zone has ranges for workers, public addresses and internal addresses",
			zones:  []string{"region-1a", "region-1c"},
			want: &wire.ProviderSpecificInput{AwsConfig: &wire.AWSProviderConfigInput{
				VpcCidr: "10.250.0.0/16",
				AwsZones: []*wire.AWSZoneInput{
					{Name: "region-1a", WorkerCidr: "10.250.0.0/19", PublicCidr: "10.250.32.0/20", InternalCidr: "10.250.48.0/20"},
					{Name: "region-1c", WorkerCidr: "10.250.64.0/19", PublicCidr: "10.250.96.0/20", InternalCidr: "10.250.112.0/20"},
				},
			}},
		},
		"azure": {
			reason: "zones are numbered in the chosen order",
			zones:  []string{"3", "1"},
			want: &wire.ProviderSpecificInput{AzureConfig: &wire.AzureProviderConfigInput{
				VnetCidr:   "10.250.0.0/16",
				AzureZones: []*wire.AzureZoneInput{{Name: 3, Cidr: "10.250.0.0/19"}, {Name: 1, Cidr: "10.250.64.0/19"}},
			}},
		},
		"gcp": {
			reason: "all zones share the nodes' range",
			zones:  []string{"region-1-a", "region-1-b"},
			want: &wire.ProviderSpecificInput{GcpConfig: &wire.GCPProviderConfigInput{
				Zones: []string{"region-1-a", "region-1-b"},
			}},
		},
	}

	for provider, c := range cases {
		t.Run(provider, func(t *testing.T) {
			got, err := newOrder(instance(provider, c.zones...), "")
			if err != nil {
				t.Fatalf("%s: %v", c.reason, err)
			}

			if diff := cmp.Diff(order(provider, c.want), got); diff != "" {
				t.Errorf("%s: -want +got:\n%s", c.reason, diff)
			}

			again, err := newOrder(instance(provider, c.zones...), "")
			if err != nil || orderText(t, again) != orderText(t, got) {
				t.Errorf("repeated orders differ: %v\n%s", err, cmp.Diff(got, again))
			}
		})
	}
}

func orderText(t *testing.T, order *wire.ProvisionRuntimeInput) string {
	t.Helper()

	text, err := json.Marshal(order)
	if err != nil {
		t.Fatal(err)
	}

	return string(text)
}

func TestUnsetFieldsAreNotSent(t *testing.T) {
	plain := instance("gcp", "region-1-a")
	plain.Request.Cluster.LicenceType, plain.Request.Cluster.PodsCIDR, plain.Request.Cluster.ServicesCIDR = "", "", ""

	got, err := newOrder(plain, "")
	if err != nil {
		t.Fatal(err)
	}

	config := got.ClusterConfig.GardenerConfig
	if config.LicenceType != nil || config.PodsCidr != nil || config.ServicesCidr != nil || config.TargetSecret != "" {
		t.Errorf("the order sets fields that were not requested: %+v", config)
	}

	if text := orderText(t, got); strings.Contains(text, "hush") {
		t.Errorf("the order contains parameters of the platform: %s", text)
	}
}

func TestOptionalFields(t *testing.T) {
	special := instance("openstack", "region-1a")
	cluster := &special.Request.Cluster
	cluster.VolumeType, cluster.VolumeSizeGB, cluster.EUAccess = "", 0, true
	cluster.OpenStack = &environment.OpenStack{
		CloudProfileName: "profile", FloatingPoolName: "pool", LoadBalancerProvider: "balancer", ExposureClassName: "exposure",
	}
	cluster.OIDC = &environment.OIDC{
		ClientID: "c", IssuerURL: "https://issuer.example.com", GroupsClaim: "g", UsernameClaim: "u", UsernamePrefix: "-",
		SigningAlgs: []string{"RS256"},
	}

	want := order("openstack", &wire.ProviderSpecificInput{OpenStackConfig: &wire.OpenStackProviderConfigInput{
		Zones: []string{"region-1a"}, CloudProfileName: new("profile"), FloatingPoolName: new("pool"), LoadBalancerProvider: "balancer",
	}})
	config := want.ClusterConfig.GardenerConfig
	config.DiskType, config.VolumeSizeGB, config.EuAccess, config.ExposureClassName = nil, nil, new(true), new("exposure")
	config.OidcConfig = &wire.OIDCConfigInput{
		ClientID: "c", IssuerURL: "https://issuer.example.com", GroupsClaim: "g", UsernameClaim: "u", UsernamePrefix: "-",
		SigningAlgs: []string{"RS256"},
	}

	got, err := newOrder(special, "")
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("order: %v, -want +got:\n%s", err, diff)
	}
}

func TestInvalidOrders(t *testing.T) {
	ranged := func(nodes string) environment.Instance {
		changed := instance("aws", "region-1a")
		changed.Request.Cluster.NodesCIDR = nodes

		return changed
	}

	cases := map[string]struct {
		reason   string
		instance environment.Instance
		want     failure.Kind
		wantText string
	}{
		"provider":        {"an unsupported provider is a fault of the plan", instance("acme", "z"), failure.Internal, `"acme"`},
		"no settings":     {"missing OpenStack settings are a fault of the broker", instance("openstack", "z"), failure.Internal, "OpenStack settings"},
		"no provider":     {"an instance without a provider is an internal error", instance(""), failure.Internal, `""`},
		"azure zone":      {"an invalid zone is a fault of the plan", instance("azure", "westeurope-1"), failure.Internal, `"westeurope-1"`},
		"five zones":      {"the user chose too many zones", instance("aws", "a", "b", "c", "d", "e"), failure.Invalid, "4 are possible"},
		"five of azure":   {"the user chose too many zones", instance("azure", "1", "2", "3", "4", "5"), failure.Invalid, "4 are possible"},
		"no range":        {"the catalog accepts no request without a range", ranged(""), failure.Internal, "cannot be divided"},
		"address":         {"an address is not a range", ranged("10.250.0.0"), failure.Internal, "cannot be divided"},
		"IPv6":            {"the zones of the providers use IPv4", ranged("fd00::/48"), failure.Internal, "cannot be divided"},
		"IPv4 in IPv6":    {"the zones of the providers use IPv4", ranged("::ffff:10.250.0.0/112"), failure.Internal, "cannot be divided"},
		"too small":       {"an eighth of 8 addresses cannot be halved", ranged("10.250.0.0/29"), failure.Internal, "cannot be divided"},
		"a single one":    {"one address cannot be divided", ranged("10.250.0.0/32"), failure.Internal, "cannot be divided"},
		"too many digits": {"the range cannot be parsed", ranged("10.250.0.0/160"), failure.Internal, "cannot be divided"},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := newOrder(c.instance, "")
			if got != nil || failure.KindOf(err) != c.want || !strings.Contains(failure.Of(err).Text, c.wantText) {
				t.Errorf("%s: got %v, %v, want %s with %q", c.reason, got, err, c.want, c.wantText)
			}
		})
	}
}

func TestRuntimeName(t *testing.T) {
	accepted := regexp.MustCompile(`^[a-z-][a-z0-9-]{0,35}$`)

	for name, c := range map[string]struct{ reason, want string }{
		"first":    {"the name starts with the name of the instance", "first-c-1234567"},
		"MyOwn":    {"Director rejects upper-case letters", "myown-c-1234567"},
		"0f5b2c7e": {"Director rejects a leading digit", "runtime-0f5b2c7e-c-1234567"},
		"a-name-as-long-as-names-of-instances-may-be-and-no-longer-than-it": {"Director limits names to 36 characters", "a-name-as-long-as-names-of-c-1234567"},
		"a-name-of-twenty-five-abc-":                                        {"a shortened name ends without a hyphen", "a-name-of-twenty-five-abc-c-1234567"},
	} {
		order := instance("aws", "eu-central-1a")
		order.Name = name

		got, err := newOrder(order, "")
		if err != nil {
			t.Fatal(err)
		}

		if sent := got.RuntimeInput.Name; sent != c.want || !accepted.MatchString(sent) {
			t.Errorf("%s: %s becomes %q in Director, want %q", c.reason, name, sent, c.want)
		}
	}
}
