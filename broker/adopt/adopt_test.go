package adopt_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/broker/adopt"
	"github.com/environment-broker/environment-broker/broker/catalog"
	"github.com/environment-broker/environment-broker/broker/expiry"
	"github.com/environment-broker/environment-broker/internal/audit"
	"github.com/environment-broker/environment-broker/internal/auth"
	"github.com/environment-broker/environment-broker/internal/clients/provisionerclient"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/internal/sandbox/kymarows"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/resources"
	"github.com/environment-broker/environment-broker/storage/auditlog"
	"github.com/environment-broker/environment-broker/storage/endpoints"
	"github.com/environment-broker/environment-broker/storage/instances"
	"github.com/environment-broker/environment-broker/storage/operations"
	"github.com/environment-broker/environment-broker/storage/outsideobjects"
	"github.com/environment-broker/environment-broker/storage/storagetest"
	"github.com/environment-broker/environment-broker/storage/takeover"
)

// runtimes are the clusters of the Provisioner, by ID.
type runtimes map[string]kymarows.Cluster

func (r runtimes) Adopted(_ context.Context, tenant, id string) (provisionerclient.Adopted, error) {
	found, exists := r[id]
	if !exists || found.Tenant != tenant {
		return provisionerclient.Adopted{}, failure.New(failure.NotFound, "this tenant has no runtime %s", id)
	}

	return provisionerclient.Adopted{
		ShootName: found.Name, Provider: found.Provider, Region: found.Region,
		Cluster: environment.Cluster{MachineType: found.MachineType, TargetSecret: found.Binding, AutoScalerMin: 4, AutoScalerMax: 11, MaxSurge: 1, Zones: found.Zones},
	}, nil
}

// Order returns an order with other administrators, and with limits of the autoscaler beyond the plan's limits.
func (r runtimes) Order(_ context.Context, id string) (any, error) {
	return map[string]any{
		"cluster": map[string]any{"machineType": r[id].MachineType, "autoScalerMin": 4, "autoScalerMax": 99}, "administrators": []any{"somebody@example.com"},
	}, nil
}

func (r runtimes) Account(_ context.Context, id string) (string, error) {
	if found, exists := r[id]; exists {
		return found.Tenant, nil
	}

	return "", failure.New(failure.NotFound, "there is no runtime %s", id)
}

// fixture is an Adopter with its databases.
type fixture struct {
	*testing.T

	former   kymarows.Database
	runtimes runtimes
	adopter  adopt.Adopter
	entries  *auditlog.Store
}

func newFixture(t *testing.T, adopted ...kymarows.Instance) fixture {
	t.Helper()

	db, keys := storagetest.SQLite(t), storagetest.Keys(t)
	f := fixture{T: t, former: kymarows.KEB(t), runtimes: runtimes{}}

	var err error

	f.adopter = adopt.Adopter{
		DB: db, Runtimes: f.runtimes, Periods: expiry.Periods{"trial": 336 * time.Hour}, Platform: auth.Platform{Name: "default"}, Region: "cf-eu10", Clock: clock.RealClock{},
	}
	f.adopter.Cipher, err = takeover.NewCipher(kymarows.Key)
	f.must(err)
	f.adopter.Catalog, err = catalog.Load(resources.Catalog(), catalog.Options{
		KubernetesVersion: "1.33", OperationTimeout: time.Hour, EnablePlans: []string{"aws", "azure", "gcp", "trial", "own_cluster"}, OnePerAccount: []string{"trial"},
	})
	f.must(err)
	f.adopter.Operations, err = operations.Open(t.Context(), db, keys)
	f.must(err)
	f.adopter.Instances, err = instances.Open(t.Context(), db, keys)
	f.must(err)
	f.adopter.Endpoints, err = endpoints.Open(t.Context(), db, keys)
	f.must(err)
	f.adopter.Objects, err = outsideobjects.Open(t.Context(), db, keys)
	f.must(err)
	f.entries, err = auditlog.Open(t.Context(), db, 0)
	f.must(err)

	f.adopter.Recorder = audit.NewRecorder(f.entries, db, clock.RealClock{}, logging.Discard())

	for _, each := range adopted {
		f.former.InsertInstance(each)

		if !each.Suspended && each.PlanID != kymarows.PlanOwnCluster {
			f.runtimes[each.Cluster.ID] = each.Cluster
		}
	}

	return f
}

func (f fixture) must(err error) {
	f.Helper()

	if err != nil {
		f.Fatal(err)
	}
}

func (f fixture) run(options takeover.Options) (takeover.Report, error) {
	f.Helper()

	former, err := takeover.Open(f.Context(), f.former.URL)
	f.must(err)

	defer func() { f.must(former.Close()) }()

	f.adopter.Former = former

	return f.adopter.Run(f.Context(), options)
}

// adopted runs the adoption, which must adopt the instance, and returns it with its operations, newest first.
func (f fixture) adopted(each kymarows.Instance) (environment.Instance, []process.Record) {
	f.Helper()

	report, err := f.run(takeover.Options{})
	f.must(err)

	if report.Adopted != 1 || report.Err() != nil {
		f.Fatalf("got %+v", report)
	}

	found, err := f.adopter.Instances.Get(f.Context(), f.adopter.DB.Reader(), each.ID)
	f.must(err)

	past, err := f.adopter.Operations.OfInstance(f.Context(), f.adopter.DB.Reader(), each.ID)
	f.must(err)

	return found, past
}

func TestAdoptedInstance(t *testing.T) {
	t.Parallel()

	each := kymarows.ExampleInstance(kymarows.Example(0))
	f := newFixture(t, each)
	found, past := f.adopted(each)
	cluster := found.Request.Cluster

	switch {
	case found.RuntimeID != each.Cluster.ID || found.ShootName != each.Cluster.Name || found.Provider != "aws" || found.PlanName != "aws" || found.Suspended:
		t.Errorf("got %+v", found)
	case !found.Request.Adopted || strings.Contains(string(found.Request.Parameters), "targetSecret") || strings.Contains(string(found.Request.Parameters), "licence_type"):
		t.Errorf("parameters are %s", found.Request.Parameters)
	case strings.Contains(string(found.Request.Context), "sm_operator") || strings.Contains(string(found.Request.Context), "null"):
		t.Errorf("context is %s", found.Request.Context)
	case cluster.ServiceManager.ClientSecret.Reveal().Reveal() != each.Secret:
		t.Errorf("the password is not %s", each.Secret)
	case cluster.TargetSecret != "former-aws" || cluster.AutoScalerMax != 11 || strings.Join(cluster.Administrators, " ") != strings.Join(each.Cluster.Administrators, " "):
		t.Errorf("got %+v", cluster)
	case len(past) != 2 || past[0].ID != each.UpdateID || past[0].Kind != environment.KindUpdate || past[1].ID != each.ProvisionID || past[1].Kind != environment.KindProvision:
		t.Errorf("got %+v", past)
	case environment.PhaseOf(past) != environment.Active:
		t.Errorf("the phase is %s", environment.PhaseOf(past))
	}

	logged, err := f.entries.List(t.Context(), auditlog.Filter{Limit: 10, InstanceID: each.ID, Action: auditlog.ActionAdopt})
	f.must(err)

	if len(logged) != 1 || logged[0].After["shootName"] != each.Cluster.Name {
		t.Errorf("audit log: got %+v", logged)
	}

	if report, err := f.run(takeover.Options{}); err != nil || report.Earlier != 1 || report.Adopted != 0 {
		t.Errorf("repeated: got %+v, %v", report, err)
	}
}

// TestPreview checks that the report of a dry run lists the fields that the first update of each instance changes.
func TestPreview(t *testing.T) {
	t.Parallel()

	each := kymarows.ExampleInstance(kymarows.Example(0))
	report, err := newFixture(t, each).run(takeover.Options{DryRun: true})

	if err != nil || len(report.Previews) != 1 || report.Previews[0].ID != each.ID || report.Previews[0].Name != each.Cluster.Name {
		t.Fatalf("got %+v, %v", report, err)
	}

	var got []string
	for _, change := range report.Previews[0].Changes {
		got = append(got, change.String())
	}

	want := []string{
		`administrators: ["somebody@example.com"] becomes ["admin-0@example.com","operator@example.com"]`,
		"gardenerConfig.autoScalerMax: 99 becomes 11", "gardenerConfig.maxSurge: set to 1", "gardenerConfig.maxUnavailable: set to 0",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

// TestAdoptedObjects checks which objects in other systems an adopted instance has.
func TestAdoptedObjects(t *testing.T) {
	t.Parallel()

	const (
		internal   = "avs | internal evaluation | 4711"
		external   = "avs | external evaluation | 4712"
		edp        = "edp | data tenant | sa-0"
		reconciler = "reconciler | cluster | "
	)

	for name, c := range map[string]struct {
		data      string
		suspended bool
		want      []string
	}{
		"all": {
			`{"avs": {"avs_evaluation_internal_id": 4711, "avs_evaluation_external_id": 4712}, "edp_created": true, "cluster_configuration_version": 3}`, false,
			[]string{external, internal, edp, reconciler},
		},
		"deleted": {`{"avs": {"avs_evaluation_internal_id": 4711, "avs_internal_evaluation_deleted": true, "avs_evaluation_external_id": 4712,
			"avs_external_evaluation_deleted": false}, "edp_created": false}`, false, []string{external}},
		"none":      {`{"avs": {"avs_evaluation_internal_id": 0}, "cluster_configuration_version": 0}`, false, nil},
		"suspended": {`{"avs": {"avs_evaluation_internal_id": 4711}, "edp_created": true, "cluster_configuration_version": 3}`, true, []string{internal}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			each := kymarows.ExampleInstance(kymarows.Example(0))
			each.UpdateID, each.Suspended = "", c.suspended
			f := newFixture(t, each)
			f.former.Exec(`UPDATE operations SET data = ((data::jsonb - 'avs' - 'edp_created') || ?::jsonb)::json`, c.data)
			f.adopted(each)

			objects, err := f.adopter.Objects.OfInstance(t.Context(), each.ID)
			f.must(err)

			var got []string
			for _, object := range objects {
				got = append(got, strings.TrimSuffix(object.System+" | "+object.Kind+" | "+object.Key, each.Cluster.ID))
			}

			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
}

func TestAdoptedSuspendedInstance(t *testing.T) {
	t.Parallel()

	each := kymarows.ExampleInstance(kymarows.Example(1))
	each.Suspended, each.PlanID, each.UpdateID = true, kymarows.PlanTrial, ""
	delete(each.Parameters, "region")
	found, past := newFixture(t, each).adopted(each)

	if !found.Suspended || found.RuntimeID != "" || found.Request.Cluster.TargetSecret != "former-azure" {
		t.Errorf("got %+v", found)
	}

	if environment.PhaseOf(past) != environment.Suspended || past[0].ID != each.SuspendID {
		t.Errorf("the phase is %s of %+v", environment.PhaseOf(past), past)
	}

	if !found.ExpiresAt.Equal(each.Cluster.CreatedAt.Add(336*time.Hour)) || found.Exclusive != kymarows.PlanTrial+":"+each.Cluster.Tenant {
		t.Errorf("expires at %s, exclusive is %q", found.ExpiresAt, found.Exclusive)
	}
}

// TestEndedLifetimes checks that the report names instances that will expire at once.
func TestEndedLifetimes(t *testing.T) {
	t.Parallel()

	due, expired, young, paid := kymarows.ExampleInstance(kymarows.Example(1)), kymarows.ExampleInstance(kymarows.Example(5)),
		kymarows.ExampleInstance(kymarows.Example(9)), kymarows.ExampleInstance(kymarows.Example(2))
	for _, each := range []*kymarows.Instance{&due, &expired, &young} {
		each.PlanID, each.Suspended = kymarows.PlanTrial, true
		delete(each.Parameters, "region")
	}

	young.Cluster.CreatedAt = time.Now().Add(-time.Hour)
	f := newFixture(t, due, expired, young, paid)
	f.former.Exec(`UPDATE instances SET expired_at = now() WHERE instance_id = ?`, expired.ID)

	for _, dryRun := range []bool{true, false} {
		report, err := f.run(takeover.Options{DryRun: dryRun})
		f.must(err)

		if report.Adopted != 4 || len(report.Notes) != 1 || !strings.Contains(report.Notes[0], "instance "+due.ID) ||
			!strings.Contains(report.Notes[0], "its lifetime in plan trial ended at 2023-03-15T09:00:00Z") {
			t.Errorf("got %+v", report)
		}
	}
}

// TestMovedInstances checks that a runtime keeps its tenant after its instance was moved to another account.
func TestMovedInstances(t *testing.T) {
	t.Parallel()

	for name, recorded := range map[string]bool{"recorded by KEB": true, "not recorded": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			each := kymarows.ExampleInstance(kymarows.Example(0))
			f := newFixture(t, each)
			f.former.Exec(`UPDATE instances SET global_account_id = 'moved'`)

			if recorded {
				f.former.Exec(`UPDATE instances SET subscription_global_account_id = ?`, each.Cluster.Tenant)
			}

			if found, _ := f.adopted(each); found.GlobalAccountID != "moved" || found.RuntimeTenant() != each.Cluster.Tenant {
				t.Errorf("got account %s and tenant %s", found.GlobalAccountID, found.RuntimeTenant())
			}
		})
	}
}

// TestAdoptedOwnCluster checks that a tenant's own cluster has no runtime at the Provisioner: KEB made up a runtime ID, under which only the
// Reconciler knows the cluster. With this ID, a deletion would fail, and a comparison would report that the runtime is gone.
func TestAdoptedOwnCluster(t *testing.T) {
	t.Parallel()

	const kubeconfig = `{"apiVersion":"v1","kind":"Config","clusters":[{"name":"c","cluster":{"server":"https://192.0.2.1"}}],` +
		`"users":[{"name":"u","user":{"token":"t"}}],"contexts":[{"name":"x","context":{"cluster":"c","user":"u"}}],"current-context":"x"}`

	for name, stored := range map[string]string{
		"encrypted":     kymarows.Encrypt(t, base64.StdEncoding.EncodeToString([]byte(kubeconfig))),
		"in plain text": kubeconfig,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			each := kymarows.ExampleInstance(kymarows.Example(0))
			each.PlanID, each.UpdateID = kymarows.PlanOwnCluster, ""
			each.Parameters = map[string]any{"kubeconfig": stored, "shootName": "mine", "shootDomain": "example.com"}
			f := newFixture(t, each)
			f.former.Exec(`UPDATE operations SET data = (data::jsonb || '{"cluster_configuration_version": 3}')::json`)
			found, past := f.adopted(each)

			own := found.Request.Cluster.Own
			if own == nil || own.Kubeconfig.Reveal().Reveal() != kubeconfig || own.ShootName != "mine" || found.Provider != "" {
				t.Errorf("got %+v", found)
			}

			if found.RuntimeID != "" || found.Suspended || environment.PhaseOf(past) != environment.Active {
				t.Errorf("got the runtime %q, suspended: %t, %+v", found.RuntimeID, found.Suspended, past)
			}

			var data environment.Data

			payload, err := f.adopter.Operations.Payload(t.Context(), f.adopter.DB.Reader(), each.ProvisionID)
			f.must(err)
			f.must(json.Unmarshal(payload, &data))

			if data.Ordered || data.Instance.RuntimeID != "" {
				t.Errorf("a deletion would remove a runtime: %+v", data)
			}

			objects, err := f.adopter.Objects.OfInstance(t.Context(), each.ID)
			f.must(err)

			if !slices.ContainsFunc(objects, func(object environment.OutsideObject) bool {
				return object.System == environment.SystemReconciler && object.Key == each.Cluster.ID
			}) {
				t.Errorf("the Reconciler's cluster is missing: %+v", objects)
			}
		})
	}
}

// TestPlatformsThatExcludeInstances checks that an instance is skipped if the platform could not reach it. The platform would get 410 for a
// deletion and forget the instance.
func TestPlatformsThatExcludeInstances(t *testing.T) {
	t.Parallel()

	each := kymarows.ExampleInstance(kymarows.Example(0)) // in the region cf-eu10

	for name, c := range map[string]struct {
		platform auth.Platform
		adopted  bool
	}{
		"its region and tenant":  {auth.Platform{Name: "btp", Regions: []string{"cf-eu10"}, Tenants: []string{each.Cluster.Tenant}}, true},
		"another region's":       {auth.Platform{Name: "btp", Regions: []string{"cf-us10"}}, false},
		"another account's":      {auth.Platform{Name: "btp", Tenants: []string{"other"}}, false},
		"without any limitation": {auth.Platform{Name: "btp"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			f := newFixture(t, each)
			f.adopter.Platform = c.platform

			report, err := f.run(takeover.Options{})
			f.must(err)

			if (report.Adopted == 1) != c.adopted || !c.adopted &&
				(len(report.Skipped) != 1 || !strings.Contains(report.Skipped[0].Reason, "tenants of platform btp exclude the instance, whose region is cf-eu10")) {
				t.Errorf("got %+v", report)
			}
		})
	}
}

// TestSkipped checks that an instance with a problem is reported, and that the others are adopted.
func TestSkipped(t *testing.T) {
	t.Parallel()

	const ofFirst = ` WHERE instance_id = ?`

	for name, c := range map[string]struct {
		change func(f fixture, each kymarows.Instance)
		reason string
	}{
		"no operation": {func(f fixture, each kymarows.Instance) { f.former.Exec(`DELETE FROM operations`+ofFirst, each.ID) }, "no operation that created it"},
		"failed creation": {func(f fixture, each kymarows.Instance) {
			f.former.Exec(`UPDATE operations SET state = 'failed'`+ofFirst, each.ID)
		}, "has not succeeded"},
		"left behind": {func(f fixture, each kymarows.Instance) {
			f.former.Exec(`UPDATE instances SET deleted_at = now()`+ofFirst, each.ID)
		}, "left something behind"},
		"unknown plan": {func(f fixture, each kymarows.Instance) {
			f.former.Exec(`UPDATE instances SET service_plan_id = 'x'`+ofFirst, each.ID)
		}, "no plan x"},
		"unknown runtime": {func(f fixture, each kymarows.Instance) { delete(f.runtimes, each.Cluster.ID) }, "run 'provisioner adopt' first"},
		"another Shoot": {func(f fixture, each kymarows.Instance) {
			each.Cluster.Name = "other"
			f.runtimes[each.Cluster.ID] = each.Cluster
		}, "the Shoot other"},
		"no JSON": {func(f fixture, each kymarows.Instance) {
			f.former.Exec(`UPDATE instances SET provisioning_parameters = '[]'`+ofFirst, each.ID)
		}, "decoding the provisioning_parameters column"},
		"being deleted": {func(f fixture, each kymarows.Instance) {
			f.former.Exec(`UPDATE operations SET type = 'deprovision', data = '{}' WHERE id = ?`, each.UpdateID)
		}, "being deleted"},
		"damaged password": {func(f fixture, each kymarows.Instance) {
			f.former.Exec(`UPDATE instances SET provisioning_parameters =
				jsonb_set(provisioning_parameters::jsonb, '{ers_context,sm_operator_credentials,clientsecret}', '"!"')`+ofFirst, each.ID)
		}, "decrypting the Service Manager credentials"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			bad, good := kymarows.ExampleInstance(kymarows.Example(1)), kymarows.ExampleInstance(kymarows.Example(2))
			good.ID, bad.ID = "f"+good.ID[1:], "0"+bad.ID[1:] // the bad one comes first
			f := newFixture(t, bad, good)
			c.change(f, bad)

			report, err := f.run(takeover.Options{})
			f.must(err)

			if report.Adopted != 1 || len(report.Skipped) != 1 || report.Skipped[0].ID != bad.ID || !strings.Contains(report.Skipped[0].Reason, c.reason) || report.Err() == nil {
				t.Errorf("want the reason %q, got %+v", c.reason, report)
			}
		})
	}
}

// TestOneTrialPerAccount checks that the second trial of an account is reported.
func TestOneTrialPerAccount(t *testing.T) {
	t.Parallel()

	first, second := kymarows.ExampleInstance(kymarows.Example(0)), kymarows.ExampleInstance(kymarows.Example(1))
	for _, each := range []*kymarows.Instance{&first, &second} {
		each.PlanID, each.Cluster.Tenant = kymarows.PlanTrial, "one"
		delete(each.Parameters, "region")
	}

	report, err := newFixture(t, first, second).run(takeover.Options{})
	if err != nil || report.Adopted != 1 || len(report.Skipped) != 1 || !strings.Contains(report.Skipped[0].Reason, "one instance per account") {
		t.Errorf("got %+v, %v", report, err)
	}
}

func TestRefusedToStart(t *testing.T) {
	t.Parallel()

	for name, c := range map[string]struct {
		prepare func(f *fixture)
		reason  string
	}{
		"old schema":     {func(f *fixture) { f.former.Exec(`UPDATE schema_migrations SET version = 202209210000`) }, "older than 202210121025"},
		"open operation": {func(f *fixture) { f.former.Exec(`UPDATE operations SET state = 'pending'`) }, "unfinished operations: operation"},
		"open upgrade": {func(f *fixture) {
			f.former.Exec(`INSERT INTO orchestrations VALUES ('o1', '2023-01-01', now(), 'canceling', '{}')`)
		}, "orchestration o1"},
		"another session": {func(f *fixture) { f.former.Connect("keb") }, "application keb"},
		"wrong key": {func(f *fixture) {
			var err error
			f.adopter.Cipher, err = takeover.NewCipher("another key of thirty-two bytes.")
			f.must(err)
		}, "cannot decrypt a sample value"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			f := newFixture(t, kymarows.ExampleInstance(kymarows.Example(0)))
			c.prepare(&f)

			report, err := f.run(takeover.Options{})
			if err == nil || !strings.Contains(err.Error(), c.reason) || report.Found != 0 {
				t.Errorf("want an error with %q, got %+v, %v", c.reason, report, err)
			}
		})
	}
}
