package reconcile_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/broker/reconcile"
	"github.com/environment-broker/environment-broker/internal/clients/edp"
	"github.com/environment-broker/environment-broker/internal/clients/lifecyclemanager"
	"github.com/environment-broker/environment-broker/internal/clients/reconciler"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakecontrolplane"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakeedp"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakereconciler"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/process/deprovisioning"
	"github.com/environment-broker/environment-broker/process/stepstest"
)

// kymaObjects implements Objects of reconcile.Systems. It returns the error if it is set.
type kymaObjects struct{ err error }

func (k kymaObjects) Objects(_ context.Context, instance environment.Instance) (lifecyclemanager.Objects, error) {
	if k.err != nil {
		return lifecyclemanager.Objects{}, k.err
	}

	return lifecyclemanager.ObjectsOf(instance, lifecyclemanager.Settings{}, "kcp-system", "")
}

// outside contains the simulated systems in which instances have objects, and their clients.
type outside struct {
	*testing.T

	edp        *fakeedp.EDP
	reconciler *fakereconciler.Reconciler
	plane      *fakecontrolplane.ControlPlane

	registrations *edp.Client
	clusters      *reconciler.Client
	manager       *lifecyclemanager.Client
}

func newOutside(t *testing.T) outside {
	t.Helper()

	serve := func(system http.Handler) string {
		server := httptest.NewServer(system)
		t.Cleanup(server.Close)

		return server.URL
	}

	o := outside{T: t, edp: fakeedp.New(), reconciler: fakereconciler.New().Quick(), plane: fakecontrolplane.New()}

	registrations := edp.DefaultConfig()
	registrations.AdminURL, registrations.Secret = serve(o.edp), fakeedp.Secret
	registrations.AuthURL = registrations.AdminURL
	o.registrations = edp.New(registrations, http.DefaultTransport)

	clusters := reconciler.DefaultConfig()
	clusters.URL = serve(o.reconciler)
	o.clusters = reconciler.New(clusters, http.DefaultTransport)

	address, err := url.Parse(serve(o.plane))
	if err != nil {
		t.Fatal(err)
	}

	o.manager = lifecyclemanager.New(fakecontrolplane.Transport(address), registrations.Timeout)

	return o
}

// create creates the objects of the instance.
func (o outside) create(owner environment.Instance) {
	o.Helper()

	err := o.registrations.Register(o.Context(), edp.Tenant{Name: owner.SubAccountID})

	if err == nil && owner.InReconciler() {
		_, err = o.clusters.Apply(o.Context(), reconciler.Cluster{
			RuntimeID: owner.RuntimeID, Kubeconfig: `{clusters: [{name: c, cluster: {server: "https://api.example.com"}}]}`,
			Kyma: reconciler.KymaConfig{Components: []reconciler.Component{{Component: "istio"}}},
		})
	}

	if err == nil && owner.InLifecycleManager() {
		var objects lifecyclemanager.Objects
		if objects, err = (kymaObjects{}).Objects(o.Context(), owner); err == nil {
			err = o.manager.ApplySecret(o.Context(), objects, "kubeconfig")
		}

		if err == nil {
			err = o.manager.ApplyKyma(o.Context(), objects)
		}
	}

	if err != nil {
		o.Fatal(err)
	}
}

// holds returns the objects in all systems.
func (o outside) holds() []string {
	return slices.Concat(o.edp.Holds(), o.reconciler.Holds(), o.plane.Holds())
}

// remove runs those steps of a deletion that remove the recorded objects of the instance, each at most ten times.
func (o outside) remove(records *stepstest.Objects, owner environment.Instance) {
	o.Helper()

	operation := process.NewOperation(process.Record{ID: "deletion", InstanceID: owner.ID}, environment.Data{Instance: owner}, now)
	deletion := deprovisioning.Process(deprovisioning.Options{
		EDP: o.registrations, Reconciler: o.clusters, LifecycleManager: o.manager, Objects: records,
	})

	for _, stage := range deletion.Stages {
		for _, task := range stage.Steps {
			if !slices.Contains([]string{
				"EDP_Deregistration", "Delete_Kyma_Resource", "Check_Kyma_Resource_Deleted", "Deregister_Cluster",
				"Check_Cluster_Deregistration", "Delete_Kubeconfig",
			}, task.Step.Name()) {
				continue
			}

			for range 10 {
				after, wait, err := task.Step.Run(o.Context(), operation, logging.Discard())
				if err != nil {
					o.Fatalf("%s: %v", task.Step.Name(), err)
				}

				if operation = after; wait == 0 {
					break
				}
			}
		}
	}
}

// installed returns an instance of a subaccount, with Kyma from the installer.
func installed(id string, installer environment.KymaInstaller) environment.Instance {
	made := instance(id)
	made.SubAccountID = "Sub-1"
	made.Request.Cluster.Kyma = &environment.Kyma{Version: "2.0.0", Installer: installer, Modules: []string{}}

	return made
}

// everywhere are all systems, turned on.
func everywhere() reconcile.Systems {
	return reconcile.Systems{EDP: true, Reconciler: true, Kyma: kymaObjects{}}
}

// restore restores the lost instances.
func (f *fixture) restore(lost ...environment.Instance) {
	f.Helper()

	for _, each := range lost {
		f.runtime(each.ID, each)

		if err := f.Restore(f.Context(), f.compare()[each.RuntimeID]); err != nil {
			f.Fatal(err)
		}
	}
}

// records returns the recorded objects of the instances.
func (f *fixture) records(of ...environment.Instance) *stepstest.Objects {
	f.Helper()

	all := stepstest.New()

	for _, each := range of {
		found, err := f.Objects.OfInstance(f.Context(), each.ID)
		if err != nil {
			f.Fatal(err)
		}

		all.Records = append(all.Records, found...)
	}

	return all
}

// TestDeletionOfRestoredInstances checks that the deletion of restored instances removes their objects from other systems, and the
// registration of their subaccount with the last of them.
func TestDeletionOfRestoredInstances(t *testing.T) {
	first, last := installed("first", environment.InstallerReconciler), installed("last", environment.InstallerLifecycleManager)

	onEach(t, func(f *fixture) {
		f.Systems = everywhere()
		f.restore(first, last)

		records, systems := f.records(first, last), newOutside(f.T)
		systems.create(first)
		systems.create(last)

		systems.remove(records, first)

		if len(systems.reconciler.Clusters()) > 0 || len(systems.edp.Tenants()) != 1 || len(systems.plane.Holds()) != 2 {
			f.Errorf("after the first deletion, the systems have %q", systems.holds())
		}

		systems.remove(records, last)

		if len(systems.holds())+len(records.Records) > 0 {
			f.Errorf("after the last deletion, the systems have %q; recorded: %q", systems.holds(), records.Lines())
		}
	})
}

// TestDeletionWithoutObjects checks that the deletion of restored instances succeeds if they have no objects in other systems.
func TestDeletionWithoutObjects(t *testing.T) {
	lost := []environment.Instance{installed("one", environment.InstallerReconciler), installed("two", environment.InstallerLifecycleManager)}

	onEach(t, func(f *fixture) {
		f.Systems = everywhere()
		f.restore(lost...)

		records, systems := f.records(lost...), newOutside(f.T)
		for _, each := range lost {
			systems.remove(records, each)
		}

		if len(records.Records) > 0 {
			f.Errorf("recorded: %q", records.Lines())
		}
	})
}

// TestRestoredObjects checks which objects of an instance are recorded, and which kubeconfigs are renewed.
func TestRestoredObjects(t *testing.T) {
	const (
		tenant     = "data tenant: creating sub-1"
		cluster    = "cluster: creating r-lost"
		resource   = "Kyma resource: created kymas.v1beta2.operator.kyma-project.io/kcp-system/r-lost"
		kubeconfig = "kubeconfig: created secrets.v1/kcp-system/kubeconfig-r-lost"
	)

	without, own := instance("lost"), instance("lost")
	own.SubAccountID, own.Request.Cluster.Own = "Sub-1", &environment.OwnCluster{}

	cases := map[string]struct {
		reason  string
		lost    environment.Instance
		systems reconcile.Systems
		want    []string
	}{
		"Reconciler": {"it installs Kyma", installed("lost", environment.InstallerReconciler), everywhere(), []string{cluster, tenant}},
		"Lifecycle Manager": {
			"it installs Kyma", installed("lost", environment.InstallerLifecycleManager), everywhere(), []string{resource, tenant, kubeconfig},
		},
		"Provisioner":       {"it installs Kyma", installed("lost", environment.InstallerProvisioner), everywhere(), []string{tenant}},
		"nothing installed": {"there is no Kyma and no subaccount", without, everywhere(), nil},
		"own cluster":       {"it is not registered", own, everywhere(), nil},
		"Reconciler off":    {"it is turned off", installed("lost", environment.InstallerReconciler), reconcile.Systems{EDP: true, Kyma: kymaObjects{}}, []string{tenant}},
		"Lifecycle Manager off": {
			"it is turned off", installed("lost", environment.InstallerLifecycleManager), reconcile.Systems{EDP: true, Reconciler: true}, []string{tenant},
		},
		"EDP off": {"it is turned off", installed("lost", environment.InstallerReconciler), reconcile.Systems{Reconciler: true}, []string{cluster}},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			onEach(t, func(f *fixture) {
				f.Systems = c.systems
				f.restore(c.lost)

				slices.Sort(c.want)

				if diff := cmp.Diff(c.want, f.records(c.lost).Lines()); diff != "" {
					f.Errorf("%s: -want +got\n%s", c.reason, diff)
				}

				due, err := f.Objects.DueCredentials(f.Context(), []string{environment.SystemReconciler, environment.SystemLifecycleManager}, now, 10)

				renewed := slices.Contains(c.want, kubeconfig)
				if err != nil || len(due) == 1 != renewed || renewed && due[0].Kind != environment.KindKubeconfig {
					f.Errorf("these kubeconfigs are renewed: %v, %v", due, err)
				}
			})
		})
	}
}

// TestRestorationWithoutControlPlane checks that no row is restored while the objects of the instance cannot be determined.
func TestRestorationWithoutControlPlane(t *testing.T) {
	lost := installed("lost", environment.InstallerLifecycleManager)

	onEach(t, func(f *fixture) {
		f.Systems.Kyma = kymaObjects{failure.New(failure.Transient, "the control plane is unreachable")}
		f.runtime("lost", lost)

		difference := f.compare()["r-lost"]
		if err := f.Restore(f.Context(), difference); !failure.Is(err, failure.Transient) || !difference.Restorable {
			f.Errorf("the restoration of %+v returns %v", difference, err)
		}

		f.Systems.Kyma = kymaObjects{}
		if err := f.Restore(f.Context(), operatorapi.Difference{Kind: difference.Kind, RuntimeID: "r-lost", ShootName: "c-lost"}); err != nil || len(f.records(lost).Records) != 2 {
			f.Errorf("the repetition returns %v", err)
		}
	})
}
