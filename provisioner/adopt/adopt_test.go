package adopt_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/internal/audit"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/internal/objectdiff"
	"github.com/environment-broker/environment-broker/internal/sandbox/kymarows"
	"github.com/environment-broker/environment-broker/internal/secret"
	"github.com/environment-broker/environment-broker/provisioner/adopt"
	"github.com/environment-broker/environment-broker/provisioner/gardener"
	"github.com/environment-broker/environment-broker/provisioner/operation"
	"github.com/environment-broker/environment-broker/provisioner/shoot"
	"github.com/environment-broker/environment-broker/provisioner/spec"
	"github.com/environment-broker/environment-broker/storage/auditlog"
	"github.com/environment-broker/environment-broker/storage/operations"
	"github.com/environment-broker/environment-broker/storage/runtimes"
	"github.com/environment-broker/environment-broker/storage/storagetest"
	"github.com/environment-broker/environment-broker/storage/takeover"
)

// shoots are the Shoots of the project, by name. patched contains the names of the adopted Shoots.
type shoots struct {
	byName  map[string]*gardencorev1beta1.Shoot
	missing string // a Secret or binding that is missing
	err     error  // the error of the next patch
	patched []string
}

func (s *shoots) Owned(context.Context) ([]gardener.Owned, error) {
	var owned []gardener.Owned
	for _, each := range s.byName {
		owned = append(owned, gardener.OwnedOf(each))
	}

	return owned, nil
}

func (s *shoots) Get(_ context.Context, name string) (*gardencorev1beta1.Shoot, error) {
	if found := s.byName[name]; found != nil {
		return found.DeepCopy(), nil
	}

	return nil, failure.New(failure.NotFound, "there is no such Shoot")
}

func (s *shoots) CheckBindings(_ context.Context, _ *gardencorev1beta1.Shoot, binding string) error {
	return s.CheckSecret(context.Background(), binding)
}

func (s *shoots) CheckSecret(_ context.Context, name string) error {
	if name == s.missing {
		return failure.New(failure.NotFound, "%s is missing", name)
	}

	return nil
}

func (s *shoots) Adopt(_ context.Context, read *gardencorev1beta1.Shoot, _ string) (bool, error) {
	err := s.err
	s.err = nil

	if err == nil {
		s.patched = append(s.patched, read.Name)
	}

	return err == nil, err
}

// fixture is an Adopter with its databases.
type fixture struct {
	*testing.T

	former  kymarows.Database
	shoots  *shoots
	adopter adopt.Adopter
	entries *auditlog.Store
}

// build builds the Shoot of a runtime with one extension.
func build(runtime runtimes.Runtime, operationID string) (*shoot.Objects, error) {
	order, err := operation.OrderOf(runtime)
	if err != nil {
		return nil, err
	}

	return shoot.Build(shoot.Runtime{
		ID: runtime.ID, OperationID: operationID, Tenant: runtime.Tenant, SubAccount: runtime.SubAccount, Config: order.ClusterConfig.GardenerConfig,
	}, shoot.Options{Namespace: "garden-local", Extensions: []string{shoot.ExtensionOIDC}})
}

func newFixture(t *testing.T, clusters ...kymarows.Cluster) fixture {
	t.Helper()

	db, keys := storagetest.SQLite(t), storagetest.Keys(t)
	f := fixture{T: t, former: kymarows.Provisioner(t), shoots: &shoots{byName: map[string]*gardencorev1beta1.Shoot{}}}

	var err error

	f.adopter = adopt.Adopter{
		DB: db, Shoots: f.shoots, Validate: func(spec.Runtime) error { return nil }, Clock: clock.RealClock{},
		Build: build,
	}
	f.adopter.Cipher, err = takeover.NewCipher(kymarows.Key)
	f.must(err)
	f.adopter.Operations, err = operations.Open(t.Context(), db, keys)
	f.must(err)
	f.adopter.Runtimes, err = runtimes.Open(t.Context(), db, keys)
	f.must(err)
	f.entries, err = auditlog.Open(t.Context(), db, 0)
	f.must(err)

	f.adopter.Recorder = audit.NewRecorder(f.entries, db, clock.RealClock{}, logging.Discard())

	for _, each := range clusters {
		f.former.Insert(each)

		f.shoots.byName[each.Name], err = each.Shoot("garden-local")
		f.must(err)
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

func TestAdoptedRuntime(t *testing.T) {
	t.Parallel()

	each := kymarows.Example(0)
	each.ChangeType, each.ChangeState, each.DNSSecret = "UPGRADE_SHOOT", "FAILED", "route53"
	each.Tenant = "an account, with a space"
	f := newFixture(t, each)

	report, err := f.run(takeover.Options{})
	f.must(err)

	if report.Adopted != 1 || len(report.ShootsChanged) != 1 || report.Err() != nil {
		t.Fatalf("got %+v", report)
	}

	if len(report.Previews) != 1 || report.Previews[0].Name != each.Name ||
		!slices.Contains(objectdiff.Paths(report.Previews[0].Changes), "spec.extensions[shoot-oidc-service].disabled") {
		t.Errorf("the report must have the first change: got %+v", report.Previews)
	}

	found, err := f.adopter.Runtimes.Get(t.Context(), f.adopter.DB.Reader(), each.ID)
	f.must(err)

	order, err := operation.OrderOf(found)
	f.must(err)

	config := order.ClusterConfig.GardenerConfig

	switch {
	case found.Account() != each.Tenant || found.Tenant == each.Tenant || found.SubAccount != each.SubAccount || !found.CreatedAt.Equal(each.CreatedAt):
		t.Errorf("got %+v", found)
	case strings.Join(order.ClusterConfig.Administrators, " ") != "admin-0@example.com operator@example.com":
		t.Errorf("administrators are %v", order.ClusterConfig.Administrators)
	case config.ProviderSpecificConfig.AWSConfig.AWSZones[2].InternalCIDR != "10.250.176.0/20" || *config.VolumeSizeGB != 50 || !*config.EUAccess:
		t.Errorf("got %+v", config)
	case *config.PodsCIDR != "100.64.0.0/12" || *config.ServicesCIDR != "100.104.0.0/13":
		t.Errorf("the row has no ranges, so they are those of the Shoot: got %s, %s", *config.PodsCIDR, *config.ServicesCIDR)
	case config.OIDCConfig.SigningAlgs[0] != "RS256" || config.DNSConfig.Providers[0].DomainsInclude[0] != each.Domain():
		t.Errorf("got %+v, %+v", config.OIDCConfig, config.DNSConfig)
	}

	past, err := f.adopter.Operations.OfInstance(t.Context(), f.adopter.DB.Reader(), each.ID)
	f.must(err)

	if len(past) != 2 || past[0].ID != each.ChangeID || past[1].ID != each.CreationID || past[0].Problem.Reason != "ERR_INFRA_QUOTA_EXCEEDED" {
		t.Errorf("got %+v", past)
	}

	logged, err := f.entries.List(t.Context(), auditlog.Filter{Limit: 10, InstanceID: each.ID, Action: auditlog.ActionAdopt})
	f.must(err)

	if len(logged) != 1 || logged[0].After["cluster"] != each.Name {
		t.Errorf("audit log: got %+v", logged)
	}
}

// TestSkipped checks that a cluster with a problem is reported and not changed, and that the others are adopted.
func TestSkipped(t *testing.T) {
	t.Parallel()

	for name, c := range map[string]struct {
		change func(f fixture, each *kymarows.Cluster)
		reason string
	}{
		"no Shoot": {func(f fixture, each *kymarows.Cluster) { delete(f.shoots.byName, each.Name) }, "no such Shoot"},
		"foreign Shoot": {func(f fixture, each *kymarows.Cluster) {
			f.shoots.byName[each.Name].Annotations[shoot.AnnotationRuntimeID] = "other"
		}, `"other"`},
		"being deleted": {func(f fixture, each *kymarows.Cluster) {
			f.shoots.byName[each.Name].DeletionTimestamp = new(metav1.Now())
		}, "is deleting"},
		"no binding": {func(f fixture, _ *kymarows.Cluster) { f.shoots.missing = "former-azure" }, "former-azure is missing"},
		"failed creation": {func(f fixture, each *kymarows.Cluster) {
			f.former.Exec(`UPDATE operation SET state = 'FAILED' WHERE id = ?`, each.CreationID)
		}, "has not succeeded"},
		"no configuration": {func(f fixture, each *kymarows.Cluster) {
			f.former.Exec(`DELETE FROM gardener_config WHERE cluster_id = ?`, each.ID)
		}, "no row in gardener_config"},
		"wrong provider": {func(f fixture, each *kymarows.Cluster) {
			f.former.Exec(`UPDATE gardener_config SET provider = 'gcp' WHERE cluster_id = ?`, each.ID)
		}, "does not fit the provider gcp"},
		"damaged user": {func(f fixture, each *kymarows.Cluster) {
			f.former.Exec(`UPDATE cluster_administrator SET user_id = '!' WHERE cluster_id = ?`, each.ID)
		}, "decrypting an administrator"},
		"changed meanwhile": {func(f fixture, _ *kymarows.Cluster) {
			f.shoots.err = failure.New(failure.Invalid, "Gardener rejects the patch")
		}, "rejects the patch"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			good, bad := kymarows.Example(2), kymarows.Example(1)
			good.ID, bad.ID = "f"+good.ID[1:], "0"+bad.ID[1:] // the bad one comes first
			f := newFixture(t, good, bad)
			c.change(f, &bad)

			report, err := f.run(takeover.Options{})
			f.must(err)

			if report.Adopted != 1 || len(report.Skipped) != 1 || report.Skipped[0].ID != bad.ID || !strings.Contains(report.Skipped[0].Reason, c.reason) {
				t.Errorf("want the reason %q, got %+v", c.reason, report)
			}

			if len(f.shoots.patched) != 1 || f.shoots.patched[0] != good.Name || report.Err() == nil {
				t.Errorf("patched %v, error %v", f.shoots.patched, report.Err())
			}
		})
	}
}

// TestConflictsAreRepeated checks that a Shoot whose status Gardener updates at the same time is adopted.
func TestConflictsAreRepeated(t *testing.T) {
	t.Parallel()

	f := newFixture(t, kymarows.Example(0))
	f.shoots.err = failure.New(failure.Transient, "it has changed in the meantime")

	if report, err := f.run(takeover.Options{}); err != nil || report.Adopted != 1 {
		t.Errorf("got %+v, %v", report, err)
	}
}

// TestRefusedToStart checks that no runtime is adopted as long as Kyma Provisioner may write, or if its data cannot be read.
func TestRefusedToStart(t *testing.T) {
	t.Parallel()

	for name, c := range map[string]struct {
		prepare func(f *fixture)
		reason  string
	}{
		"old schema":    {func(f *fixture) { f.former.Exec(`UPDATE schema_migrations SET version = 202304270000`) }, "older than 202308180833"},
		"dirty schema":  {func(f *fixture) { f.former.Exec(`UPDATE schema_migrations SET dirty = true`) }, "dirty"},
		"other tables":  {func(f *fixture) { f.former.Exec(`DROP TABLE schema_migrations`) }, "no schema_migrations table"},
		"open work":     {func(f *fixture) { f.former.Exec(`UPDATE operation SET state = 'IN_PROGRESS'`) }, "unfinished operations: operation"},
		"other session": {func(f *fixture) { f.former.Connect("provisioner") }, "application provisioner"},
		"wrong key": {func(f *fixture) {
			var err error
			f.adopter.Cipher, err = takeover.NewCipher("another key of thirty-two bytes.")
			f.must(err)
		}, "cannot decrypt a sample value"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			f := newFixture(t, kymarows.Example(0))
			c.prepare(&f)

			report, err := f.run(takeover.Options{})
			if err == nil || !strings.Contains(err.Error(), c.reason) || report.Found+len(f.shoots.patched) != 0 {
				t.Errorf("want an error with %q, got %+v, %v", c.reason, report, err)
			}
		})
	}
}

// TestReadersSeeOtherSessions checks that no runtime is adopted while Kyma Provisioner runs, even if the user of the connection string may
// only read the tables. PostgreSQL hides most columns of pg_stat_activity from such a user.
func TestReadersSeeOtherSessions(t *testing.T) {
	t.Parallel()

	f := newFixture(t, kymarows.Example(0))
	owned := f.former
	f.former = owned.AsReader()

	if report, err := f.run(takeover.Options{DryRun: true}); err != nil || report.Adopted != 1 {
		t.Fatalf("without other sessions: got %+v, %v", report, err)
	}

	owned.Connect("provisioner")

	if report, err := f.run(takeover.Options{}); err == nil || !strings.Contains(err.Error(), "application provisioner") || report.Adopted != 0 {
		t.Errorf("want an error with the other session, got %+v, %v", report, err)
	}
}

// TestOtherSessionsCanBeIgnored checks the --ignore-users flag.
func TestOtherSessionsCanBeIgnored(t *testing.T) {
	t.Parallel()

	f := newFixture(t, kymarows.Example(0))
	user := f.former.Connect("exporter")

	if report, err := f.run(takeover.Options{IgnoreUsers: []string{user}}); err != nil || report.Adopted != 1 {
		t.Errorf("got %+v, %v", report, err)
	}
}

// TestShootsWithoutARowAreReported checks that adopt reports these Shoots and does not change them.
func TestShootsWithoutARowAreReported(t *testing.T) {
	t.Parallel()

	each := kymarows.Example(0)
	f := newFixture(t, each)
	f.former.Exec(`DELETE FROM cluster`)

	report, err := f.run(takeover.Options{})
	f.must(err)

	if report.Found != 0 || len(report.Notes) != 1 || !strings.Contains(report.Notes[0], each.Name) || len(f.shoots.patched) != 0 {
		t.Errorf("got %+v", report)
	}
}

// TestConnectionStringIsNotRevealed checks that errors do not contain the password.
func TestConnectionStringIsNotRevealed(t *testing.T) {
	t.Parallel()

	for _, url := range []string{"postgres://user:s3cret@[", "postgres://user:s3cret@127.0.0.1:1/name?sslmode=disable", "password=s3cret x"} {
		_, err := takeover.Open(t.Context(), secret.String(url))
		if err == nil || strings.Contains(err.Error(), "s3cret") || errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	}
}

// TestNewSessionIsReadOnly ends the session in the database to take over, and checks that the next one cannot write either.
func TestNewSessionIsReadOnly(t *testing.T) {
	t.Parallel()

	f := newFixture(t, kymarows.Example(0))
	former, err := takeover.Open(t.Context(), f.former.URL)
	f.must(err)

	defer func() { f.must(former.Close()) }()

	session := func() (id int) {
		found, err := takeover.Select[int](t.Context(), former, `SELECT pg_backend_pid()`)
		f.must(err)

		return found[0]
	}

	first := session()
	f.former.Exec(fmt.Sprintf(`SELECT pg_terminate_backend(%d, 10000)`, first))

	// The first query may find out that the connection is lost.
	_, _ = takeover.Select[int](t.Context(), former, `SELECT 1`)

	if second := session(); second == first {
		t.Fatal("the session has not ended")
	}

	if _, err := takeover.Select[string](t.Context(), former, `DELETE FROM cluster RETURNING id`); err == nil || !strings.Contains(err.Error(), "read-only") {
		t.Errorf("the new session can write: %v", err)
	}
}
