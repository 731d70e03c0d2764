package provisionerclient

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/internal/clients/provisionerclient/wire"
	"github.com/environment-broker/environment-broker/internal/environment"
)

// TestKymaInput checks the components of an order.
func TestKymaInput(t *testing.T) {
	const source = "https://example.com/dns.tgz#sha256=00"

	got := kymaInput(&environment.Kyma{Installation: &environment.KymaInstallation{
		Version: "1.0.0", Profile: "Production", Configuration: []environment.KymaEntry{{Key: "domain", Value: "example.com"}},
		Components: []environment.KymaComponent{
			{Name: "eventing", Namespace: "kyma-system", Configuration: []environment.KymaEntry{{Key: "password", Value: "hush", Secret: true}}},
			{Name: "dns", Namespace: "dns-system", SourceURL: source},
		},
	}})
	want := &wire.KymaConfigInput{
		Version: "1.0.0", Profile: new(wire.KymaProfileProduction), Configuration: []*wire.ConfigEntryInput{{Key: "domain", Value: "example.com"}},
		Components: []*wire.ComponentConfigurationInput{
			{Component: "eventing", Namespace: "kyma-system", Configuration: []*wire.ConfigEntryInput{{Key: "password", Value: "hush", Secret: new(true)}}},
			{Component: "dns", Namespace: "dns-system", SourceURL: new(source), Configuration: []*wire.ConfigEntryInput{}},
		},
	}

	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}

	if got := kymaInput(&environment.Kyma{}); got != nil {
		t.Errorf("without an installation: %+v", got)
	}
}
