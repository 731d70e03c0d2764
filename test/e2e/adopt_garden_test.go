//go:build garden

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	securityv1alpha1 "github.com/gardener/gardener/pkg/apis/security/v1alpha1"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	broker "github.com/environment-broker/environment-broker/broker/service"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/internal/objectdiff"
	"github.com/environment-broker/environment-broker/internal/sandbox/kymarows"
	provisioner "github.com/environment-broker/environment-broker/provisioner/service"
	"github.com/environment-broker/environment-broker/provisioner/shoot"
	"github.com/environment-broker/environment-broker/storage/takeover"
	"github.com/environment-broker/environment-broker/test/harness"
)

// adoption is a garden with Shoots created by Kyma Provisioner, and the databases of Kyma Provisioner, KEB and our Provisioner.
type adoption struct {
	*testing.T

	garden project
	// former and keb are the databases of Kyma Provisioner and KEB.
	former, keb kymarows.Database
	settings    provisioner.Config
	clusters    []kymarows.Cluster
	instances   []kymarows.Instance
}

// newAdoption returns a project of a local garden with clusters of Kyma Provisioner.
func newAdoption(t *testing.T, clusters int) adoption {
	t.Helper()

	garden := sharedGarden(t, "simulated").asAdmin(t)
	a := adoption{
		T: t, garden: garden.project, former: kymarows.Provisioner(t), keb: kymarows.KEB(t), settings: harness.ProvisionerSettings(harness.Postgres(t, "provisioner")),
	}
	a.settings.Gardener.Project, a.settings.Gardener.KubeconfigPath = garden.name, garden.kubeconfig
	a.settings.Former = takeover.Config{DatabaseURL: a.former.URL, SecretKey: kymarows.Key}
	a.bindSecrets("aws", "azure", "gcp", "openstack")

	if err := a.garden.Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: a.garden.Namespace(), Name: kymarows.DNSSecret}, StringData: map[string]string{"accessKeyID": "key"},
	}); err != nil {
		t.Fatal(err)
	}

	for number := range clusters {
		cluster := a.example(number)
		a.clusters = append(a.clusters, cluster)
		a.former.Insert(cluster)

		instance := kymarows.ExampleInstance(cluster)
		a.instances = append(a.instances, instance)
		a.keb.InsertInstance(instance)
	}

	if err := a.applyAll(); err != nil {
		t.Fatal(err)
	}

	for _, each := range a.clusters {
		a.await(each.Name)
	}

	return a
}

// example returns an example cluster. Its domain contains the project, because a domain can have only one Shoot in the whole garden.
func (a adoption) example(number int) kymarows.Cluster {
	cluster := kymarows.Example(number)
	cluster.Zone = a.garden.name + ".example.com"

	return cluster
}

// await waits until Gardener has created the named Shoots. It waits for one after another, for up to harness.Patience each, so all
// of them together may take longer.
func (a adoption) await(names ...string) {
	a.Helper()

	for _, name := range names {
		harness.Until(a, "the Shoot "+name, func() bool {
			found := &gardencorev1beta1.Shoot{}
			err := a.garden.Get(a.Context(), client.ObjectKey{Namespace: a.garden.Namespace(), Name: name}, found)
			last := found.Status.LastOperation

			return err == nil && last != nil && last.State == gardencorev1beta1.LastOperationStateSucceeded
		})
	}
}

// applyAll applies the Shoots of all clusters, a few at a time.
func (a adoption) applyAll() error {
	group, ctx := errgroup.WithContext(a.Context())
	group.SetLimit(8)

	for _, each := range a.clusters {
		group.Go(func() error { return a.apply(ctx, each) })
	}

	return group.Wait()
}

// bindSecrets creates a SecretBinding and a CredentialsBinding for the Secret of each provider, as an operator does before the adoption.
func (a adoption) bindSecrets(providers ...string) {
	a.Helper()

	for _, provider := range providers {
		named := metav1.ObjectMeta{Namespace: a.garden.Namespace(), Name: "former-" + provider}

		a.secretBinding(named.Name, provider)

		if err := a.garden.Create(a.Context(), &securityv1alpha1.CredentialsBinding{
			ObjectMeta: named, Provider: securityv1alpha1.CredentialsBindingProvider{Type: provider},
			CredentialsRef: corev1.ObjectReference{APIVersion: "v1", Kind: "Secret", Namespace: a.garden.Namespace(), Name: provider},
		}); err != nil {
			a.Fatal(err)
		}
	}
}

// secretBinding creates a SecretBinding for the Secret of a provider.
func (a adoption) secretBinding(name, provider string) {
	a.Helper()

	if err := a.garden.Create(a.Context(), &gardencorev1beta1.SecretBinding{ //nolint:staticcheck // Kyma Provisioner uses it.
		ObjectMeta: metav1.ObjectMeta{Namespace: a.garden.Namespace(), Name: name},
		Provider:   &gardencorev1beta1.SecretBindingProvider{Type: provider}, //nolint:staticcheck // see above
		SecretRef:  corev1.SecretReference{Namespace: a.garden.Namespace(), Name: provider},
	}); err != nil {
		a.Fatal(err)
	}
}

// apply applies the Shoot as Kyma Provisioner did. It retries, because Gardener reads referenced objects from a cache.
func (a adoption) apply(ctx context.Context, cluster kymarows.Cluster) error {
	written, err := cluster.Shoot(a.garden.Namespace())
	if err != nil {
		return err
	}

	manifest, err := shoot.Manifest(written)
	if err != nil {
		return err
	}

	harness.Within(harness.Patience, func() bool {
		err = a.garden.Apply(ctx, client.ApplyConfigurationFromUnstructured(manifest), client.FieldOwner(kymarows.Manager), client.ForceOwnership)

		return err == nil || ctx.Err() != nil
	})

	return err
}

func (a adoption) shoot(cluster kymarows.Cluster) *gardencorev1beta1.Shoot {
	a.Helper()

	found := &gardencorev1beta1.Shoot{}
	if err := a.garden.Get(a.Context(), client.ObjectKey{Namespace: a.garden.Namespace(), Name: cluster.Name}, found); err != nil {
		a.Fatal(err)
	}

	return found
}

// run runs `provisioner adopt` with the given options and returns its report.
func (a adoption) run(options takeover.Options) takeover.Report {
	a.Helper()

	report, err := provisioner.Adopt(a.Context(), a.settings, a.garden, options, logging.Discard())
	if err != nil {
		a.Fatal(err)
	}

	return report
}

// TestProvisionerAdoptOnLocalGarden takes over clusters of each provider, then changes and deletes them.
func TestProvisionerAdoptOnLocalGarden(t *testing.T) {
	t.Parallel()

	a := newAdoption(t, 4)

	before := map[string]*gardencorev1beta1.Shoot{}
	for _, each := range a.clusters {
		before[each.ID] = a.shoot(each)
	}

	dry := a.run(takeover.Options{DryRun: true})
	if dry.Found != 4 || dry.Adopted != 4 || len(dry.ShootsChanged) != 4 || len(dry.Skipped) != 0 {
		t.Fatalf("dry run: got %+v", dry)
	}

	for _, each := range a.clusters {
		if diff := cmp.Diff(before[each.ID].Spec, a.shoot(each).Spec); diff != "" {
			t.Errorf("a dry run must not change a Shoot:\n%s", diff)
		}
	}

	if report := a.run(takeover.Options{Only: []string{a.clusters[0].Name}}); report.Adopted != 1 || report.Found != 1 {
		t.Errorf("with --only: got %+v", report)
	}

	previews := map[string][]objectdiff.Change{}
	for _, each := range dry.Previews {
		previews[each.ID] = each.Changes
	}

	for range 2 {
		report := a.run(takeover.Options{})
		if report.Found != 4 || report.Adopted+report.Earlier != 4 || len(report.Skipped) != 0 {
			t.Fatalf("got %+v", report)
		}
	}

	for _, each := range a.clusters {
		after := a.shoot(each)
		if missing := lost(before[each.ID], after); len(missing) > 0 {
			t.Errorf("%s lost by the adoption: %s", each.Name, strings.Join(missing, "\n"))
		}

		if managers := managersOf(after); !slices.Contains(managers, "former-provisioner") || slices.Contains(managers, kymarows.Manager) {
			t.Errorf("%s: managers are %v", each.Name, managers)
		}
	}

	url, _ := harness.StartProvisioner(t, a.garden, a.settings, logging.Discard())

	for _, each := range a.clusters {
		t.Run(each.Provider, func(t *testing.T) {
			tenant := adopted{clusters: clusters{T: t, url: url, garden: a.garden}, tenant: each.Tenant}
			for _, id := range []string{each.CreationID, each.ChangeID} {
				if id == each.ChangeID && each.ChangeType == "" {
					continue
				}

				if got := tenant.operation(id); got.State != "Succeeded" {
					t.Errorf("operation %s is %+v", id, got)
				}
			}

			adopted := a.shoot(each)

			for _, machines := range []int{7, 8} {
				tenant.wantSucceeded(tenant.mustSend(upgradeShoot, map[string]any{"id": each.ID, "config": map[string]any{
					"gardenerConfig": map[string]any{"autoScalerMax": machines}, "administrators": each.Administrators,
				}}).ID)

				after := a.shoot(each)
				if after.Spec.Provider.Workers[0].Maximum != int32(machines) {
					t.Errorf("want at most %d machines, got %d", machines, after.Spec.Provider.Workers[0].Maximum)
				}

				if missing := lost(before[each.ID], after); len(missing) > 0 {
					t.Errorf("lost by a change:\n%s", strings.Join(missing, "\n"))
				}

				if machines == 7 {
					wantPredicted(t, previews[each.ID], adopted, after, "spec.provider.workers[cpu-worker-0].maximum")
				}
			}

			var removal string
			if refused := tenant.send(`mutation ($id: String!) { result: deprovisionRuntime(id: $id) }`, map[string]any{"id": each.ID}, &removal); refused != "" {
				t.Fatal(refused)
			}

			tenant.wantSucceeded(removal)
		})
	}

	if remaining := harness.Shoots(t, a.garden); len(remaining) != 0 {
		t.Errorf("%d Shoots remain", len(remaining))
	}
}

// TestWayBackOnLocalGarden checks that neither a dry run nor an adoption changes the databases of Kyma Provisioner and KEB, so
// that these programs can be started again, and that Gardener refuses to undo the patch of a Shoot.
func TestWayBackOnLocalGarden(t *testing.T) {
	t.Parallel()

	a := newAdoption(t, 4)
	rows := a.former.Dump() + a.keb.Dump()

	a.run(takeover.Options{DryRun: true})

	if report := a.run(takeover.Options{}); report.Adopted != 4 {
		t.Fatalf("got %+v", report)
	}

	url, stop := harness.StartProvisioner(t, a.garden, a.settings, logging.Discard())
	settings := harness.BrokerSettings(harness.Postgres(t, "broker"))
	settings.Provisioner.URL = url
	settings.Former = takeover.Config{DatabaseURL: a.keb.URL, SecretKey: kymarows.Key}

	if report, err := broker.Adopt(t.Context(), settings, broker.AdoptOptions{}, logging.Discard()); err != nil || report.Adopted != 4 {
		t.Fatalf("got %+v, %v", report, err)
	}

	harness.StartBroker(t, settings, logging.Discard()).Stop()
	stop()

	if after := a.former.Dump() + a.keb.Dump(); after != rows {
		t.Error("the databases of Kyma Provisioner and KEB have changed")
	}

	for _, each := range a.clusters {
		undo := fmt.Sprintf(`[{"op": "remove", "path": "/spec/credentialsBindingName"}, {"op": "add", "path": "/spec/secretBindingName", "value": %q}]`, each.Binding)

		err := a.garden.Patch(t.Context(), a.shoot(each), client.RawPatch(types.JSONPatchType, []byte(undo)))
		if err == nil || !strings.Contains(err.Error(), "the field cannot be unset") {
			t.Errorf("%s: Gardener must reject the way back, as the documentation says: %v", each.Name, err)
		}
	}
}

// wantPredicted checks that the first change of a Shoot has changed exactly the fields in the preview and the ordered ones.
func wantPredicted(t *testing.T, preview []objectdiff.Change, before, after *gardencorev1beta1.Shoot, ordered ...string) {
	t.Helper()

	had, has := before.DeepCopy(), after.DeepCopy()
	for _, each := range []*gardencorev1beta1.Shoot{had, has} {
		delete(each.Annotations, shoot.AnnotationOperationID)
		delete(each.Annotations, shoot.AnnotationLegacyOperationID)
		each.ObjectMeta = metav1.ObjectMeta{Labels: each.Labels, Annotations: each.Annotations}
		each.Status = gardencorev1beta1.ShootStatus{}
	}

	changes, err := objectdiff.Changes(had, has, func(string) bool { return true })
	if err != nil {
		t.Fatal(err)
	}

	changes = slices.DeleteFunc(changes, func(each objectdiff.Change) bool {
		return strings.HasPrefix(each.Path, "metadata.labels[extensions.extensions.gardener.cloud/") // Gardener's
	})
	predicted := slices.DeleteFunc(objectdiff.Paths(preview), func(path string) bool { return strings.HasPrefix(path, "ConfigMap ") })
	want := slices.Compact(slices.Sorted(slices.Values(append(predicted, ordered...))))

	if diff := cmp.Diff(want, objectdiff.Paths(changes)); diff != "" {
		t.Errorf("the preview differs from the first change: -preview +change\n%s", diff)
	}
}

// adoptedInstances is the number of instances that TestAdoptedInstancesOnLocalGarden adopts. If SOAK_DURATION is set, the test
// adopts soakedInstances instead.
const adoptedInstances, soakedInstances = 20, 1000

// TestAdoptedInstancesOnLocalGarden takes over clusters and their instances, and then updates, suspends, resumes and deletes them as a
// platform does. No update may lose a part of a Shoot's spec.
func TestAdoptedInstancesOnLocalGarden(t *testing.T) {
	t.Parallel()

	total := adoptedInstances
	if harness.SoakDuration(t) > 0 {
		total = soakedInstances
	}

	a := newAdoption(t, total)

	before := map[string]*gardencorev1beta1.Shoot{}
	for _, each := range a.clusters {
		before[each.ID] = a.shoot(each)
	}

	if report := a.run(takeover.Options{}); report.Adopted != total || len(report.ShootsChanged) != total || len(report.Skipped) != 0 {
		t.Fatalf("got %+v", report)
	}

	for _, each := range a.clusters {
		if missing := lost(before[each.ID], a.shoot(each)); len(missing) > 0 {
			t.Errorf("%s lost by the adoption:\n%s", each.Name, strings.Join(missing, "\n"))
		}
	}

	url, _ := harness.StartProvisioner(t, a.garden, a.settings, logging.Discard())
	settings := harness.BrokerSettings(harness.Postgres(t, "broker"))
	settings.Provisioner.URL = url
	settings.ExpirationPeriods = map[string]time.Duration{"aws": 0, "azure": 0, "gcp": 0, "sap-converged-cloud": 0}
	settings.Former = takeover.Config{DatabaseURL: a.keb.URL, SecretKey: kymarows.Key}

	adopt := func(dryRun bool) takeover.Report {
		report, err := broker.Adopt(t.Context(), settings, broker.AdoptOptions{Options: takeover.Options{DryRun: dryRun}}, logging.Discard())
		if err != nil || report.Found != total || report.Adopted+report.Earlier != total {
			t.Fatalf("got %+v, %v", report, err)
		}

		return report
	}

	if report := adopt(true); report.Adopted != total || len(report.Notes) != 0 {
		t.Errorf("dry run: got %+v", report)
	}

	adopt(false)

	if report := adopt(false); report.Earlier != total {
		t.Errorf("repeated: got %+v", report)
	}

	a.instances, a.clusters = a.instances[:adoptedInstances], a.clusters[:adoptedInstances]
	platform := harness.Client{TB: t, Endpoint: harness.StartBroker(t, settings, logging.Discard()).Endpoint}
	life := adoptedLife{adoption: a, platform: platform}

	for _, each := range a.instances {
		life.wantKnown(each)
	}

	life.all("update", map[string]any{"parameters": map[string]any{"autoScalerMax": 12}})

	for _, each := range a.clusters {
		after := a.shoot(each)
		if missing := lost(before[each.ID], after); len(missing) > 0 || after.Spec.Provider.Workers[0].Maximum != 12 {
			t.Errorf("%s: at most %d machines; lost by an update:\n%s", each.Name, after.Spec.Provider.Workers[0].Maximum, strings.Join(missing, "\n"))
		}
	}

	life.all("suspension", map[string]any{"context": map[string]any{"active": false}})

	if remaining := harness.Shoots(t, a.garden); len(remaining) != total-adoptedInstances {
		t.Errorf("%d Shoots remain after the suspension", len(remaining))
	}

	life.all("resumption", map[string]any{"context": map[string]any{"active": true}})

	resumed := harness.Shoots(t, a.garden, client.HasLabels{shoot.LabelRuntimeID})
	for _, each := range resumed {
		if binding := ptr.Deref(each.Spec.CredentialsBindingName, ""); binding != "former-"+each.Spec.Provider.Type {
			t.Errorf("the resumed Shoot %s has the credentials %s, want those of before", each.Name, binding)
		}
	}

	if len(resumed) != adoptedInstances {
		t.Errorf("%d Shoots after the resumption", len(resumed))
	}

	for _, each := range a.instances {
		platform.Delete(each.ID, each.PlanID)
	}

	for _, each := range a.instances {
		platform.WantGone(each.ID)
	}

	if remaining := harness.Shoots(t, a.garden); len(remaining) != total-adoptedInstances {
		t.Errorf("%d Shoots remain", len(remaining))
	}
}

// adoptedLife orders changes of all adopted instances.
type adoptedLife struct {
	adoption

	platform harness.Client
}

// wantKnown repeats the order of an instance, with an organization, which KEB did not store, and polls the operations that KEB ran
// for it.
func (l adoptedLife) wantKnown(instance kymarows.Instance) {
	l.Helper()

	order := map[string]any{
		"service_id": harness.ServiceID, "plan_id": instance.PlanID, "organization_guid": "org", "space_guid": "space", "context": instance.Context(),
		"parameters": instance.Parameters,
	}
	l.platform.Send(http.MethodPut, harness.InstancePath(instance.ID)+harness.Incomplete, order, http.StatusOK)

	order["parameters"] = map[string]any{"name": "another name"}
	l.platform.Send(http.MethodPut, harness.InstancePath(instance.ID)+harness.Incomplete, order, http.StatusConflict)

	for _, operation := range []string{instance.ProvisionID, instance.UpdateID} {
		reply := l.platform.Send(http.MethodGet, harness.InstancePath(instance.ID)+"/last_operation?operation="+operation, nil, http.StatusOK)
		if reply.Text("state") != "succeeded" {
			l.Errorf("operation %s: got %s", operation, reply.Raw)
		}
	}
}

// all orders a change of each instance, and waits until all have succeeded.
func (l adoptedLife) all(what string, change map[string]any) {
	l.Helper()

	for _, each := range l.instances {
		l.platform.Update(each.ID, maps.Clone(change))
	}

	for _, each := range l.instances {
		if last := l.platform.WaitForEnd(each.ID); last.Text("state") != "succeeded" {
			l.Fatalf("%s of %s (%s): %s", what, each.Cluster.Name, each.Cluster.Provider, last.Raw)
		}
	}
}

// adopted is a client of a Provisioner that has adopted clusters of a tenant from another program.
type adopted struct {
	clusters

	tenant string
}

func (c adopted) send(query string, variables map[string]any, result any) string {
	c.Helper()

	refused, err := caller{url: c.url, tenant: c.tenant}.send(c.Context(), query, variables, result)
	if err != nil {
		c.Fatal(err)
	}

	if refused != nil {
		return refused.Message
	}

	return ""
}

func (c adopted) mustSend(query string, variables map[string]any) operationStatus {
	c.Helper()

	var accepted operationStatus
	if refused := c.send(query, variables, &accepted); refused != "" {
		c.Fatal(refused)
	}

	return accepted
}

func (c adopted) operation(id string) operationStatus {
	c.Helper()

	return c.mustSend(`query ($id: String!) { result: runtimeOperationStatus(id: $id) { id state message lastError { errMessage reason } } }`,
		map[string]any{"id": id})
}

func (c adopted) wantSucceeded(id string) {
	c.Helper()
	harness.Until(c, "operation "+id, func() bool {
		now := c.operation(id)
		if now.State == "Failed" {
			c.Fatalf("operation %s is %+v", id, now)
		}

		return now.State == "Succeeded"
	})
}

// managersOf returns the field managers that have applied fields of the Shoot.
func managersOf(shoot *gardencorev1beta1.Shoot) []string {
	var managers []string

	for _, entry := range shoot.ManagedFields {
		if entry.Operation == metav1.ManagedFieldsOperationApply {
			managers = append(managers, entry.Manager)
		}
	}

	return managers
}

// lost returns the labels, annotations and spec fields, with their values, that are in the Shoot before but not in the Shoot
// after. It leaves out those that the adoption and the first change are expected to change, and those that were ordered.
func lost(before, after *gardencorev1beta1.Shoot, ordered ...string) []string {
	had, has := flat(before), flat(after)
	expected := append([]string{
		"spec.secretBindingName", "spec.provider.workersSettings.sshAccess.enabled", "spec.provider.workers.cpu-worker-0.maximum",
		"metadata.annotations.kcp.provisioner.kyma-project.io/operation-id", "metadata.annotations.compass.provisioner.kyma-project.io/operation-id",
	}, ordered...)

	var missing []string

	for path, value := range had {
		if !slices.Contains(expected, path) && !reflect.DeepEqual(value, has[path]) {
			missing = append(missing, fmt.Sprintf("%s: had %v, has %v", path, value, has[path]))
		}
	}

	slices.Sort(missing)

	return missing
}

// flat returns the values of a Shoot by their paths. In a path, a list item is identified by its name or type, or else by its
// position.
func flat(shoot *gardencorev1beta1.Shoot) map[string]any {
	text, err := json.Marshal(map[string]any{"spec": shoot.Spec, "metadata": map[string]any{"labels": shoot.Labels, "annotations": shoot.Annotations}})
	if err != nil {
		panic(err) // cannot happen: a Shoot can always be encoded
	}

	var tree any
	if err := json.Unmarshal(text, &tree); err != nil {
		panic(err)
	}

	values := map[string]any{}
	flatten("", tree, values)

	return values
}

func flatten(path string, node any, values map[string]any) {
	switch node := node.(type) {
	case map[string]any:
		for key, child := range node {
			flatten(strings.TrimPrefix(path+"."+key, "."), child, values)
		}
	case []any:
		for i, child := range node {
			key := any(i)

			if object, is := child.(map[string]any); is {
				for _, name := range []string{"name", "type"} {
					if object[name] != nil {
						key = object[name]

						break
					}
				}
			}

			flatten(fmt.Sprintf("%s.%v", path, key), child, values)
		}
	default:
		values[path] = node
	}
}
