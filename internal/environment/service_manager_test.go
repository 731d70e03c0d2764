package environment_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/internal/environment"
)

// TestOverrideServiceManager checks the values of the btp-operator component, and that an installation without it stays
// unchanged.
func TestOverrideServiceManager(t *testing.T) {
	with := func(credentials *environment.ServiceManager, components ...string) environment.Instance {
		installation := &environment.KymaInstallation{}
		for _, name := range components {
			installation.Add(environment.KymaComponent{Name: name})
		}

		instance := environment.Instance{ID: "instance", ShootName: "c-1234567"}
		instance.Request.Cluster.ServiceManager = credentials
		instance.Request.Cluster.Kyma = &environment.Kyma{Installation: installation}
		instance.OverrideServiceManager()

		return instance
	}
	credentials := &environment.ServiceManager{ClientID: "client", ClientSecret: "secret", URL: "https://sm", TokenURL: "https://tokens"}

	got := with(credentials, "serverless", "btp-operator").Request.Cluster.Kyma.Installation.Components
	want := []environment.KymaComponent{{Name: "serverless"}, {Name: "btp-operator", Configuration: []environment.KymaEntry{
		{Key: "manager.secret.clientid", Value: "client", Secret: true},
		{Key: "manager.secret.clientsecret", Value: "secret", Secret: true},
		{Key: "manager.secret.url", Value: "https://sm"},
		{Key: "manager.secret.sm_url", Value: "https://sm"},
		{Key: "manager.secret.tokenurl", Value: "https://tokens"},
		{Key: "cluster.id", Value: "ff54222c-270f-586b-85a9-f1ee64ee9cc7"},
	}}}

	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}

	for name, instance := range map[string]environment.Instance{
		"no component": with(credentials, "serverless"), "no credentials": with(nil, "btp-operator"),
	} {
		if entries := instance.Request.Cluster.Kyma.Installation.Components[0].Configuration; len(entries) > 0 {
			t.Errorf("%s: got %v", name, entries)
		}
	}

	environment.Instance{Request: environment.Request{Cluster: environment.Cluster{ServiceManager: credentials}}}.OverrideServiceManager() // without Kyma
}
