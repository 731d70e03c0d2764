package environment_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/internal/environment"
)

func TestInstalledBy(t *testing.T) {
	none := (*environment.Kyma)(nil)

	for name, c := range map[string]struct {
		kyma                    *environment.Kyma
		provisioner, reconciler bool
	}{
		"None":        {none, false, false},
		"Former":      {&environment.Kyma{}, true, false},
		"Provisioner": {&environment.Kyma{Installer: environment.InstallerProvisioner}, true, false},
		"Reconciler":  {&environment.Kyma{Installer: environment.InstallerReconciler}, false, true},
	} {
		if c.kyma.InstalledBy(environment.InstallerProvisioner) != c.provisioner || c.kyma.InstalledBy(environment.InstallerReconciler) != c.reconciler {
			t.Errorf("%s: the installer is wrong", name)
		}
	}
}

func TestOverrideBusola(t *testing.T) {
	instance := environment.Instance{ID: "instance-1"}
	instance.OverrideBusola() // a runtime without Kyma

	installation := &environment.KymaInstallation{Components: []environment.KymaComponent{{Name: "istio"}}}
	instance.Request.Cluster.Kyma = &environment.Kyma{Installation: installation}
	instance.OverrideBusola()

	if diff := cmp.Diff([]environment.KymaComponent{{Name: "istio"}}, installation.Components); diff != "" {
		t.Errorf("without the component: -want +got\n%s", diff)
	}

	installation.Add(environment.KymaComponent{Name: "busola-migrator", Configuration: []environment.KymaEntry{
		{Key: "global.istio.gateway.name", Value: "other"},
	}})
	instance.OverrideBusola()
	instance.OverrideBusola()

	want := []environment.KymaEntry{{Key: "global.istio.gateway.name", Value: "kyma-gateway"}, {Key: "deployment.env.kubeconfigID", Value: "instance-1"}}
	if diff := cmp.Diff(want, installation.Components[1].Configuration); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}
