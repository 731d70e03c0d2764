package crash

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/broker/credentials"
	"github.com/environment-broker/environment-broker/broker/jobs"
	"github.com/environment-broker/environment-broker/broker/poolcleanup"
	"github.com/environment-broker/environment-broker/internal/audit"
	"github.com/environment-broker/environment-broker/internal/clients/cleanuphook"
	"github.com/environment-broker/environment-broker/internal/clients/clusterclient"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/environment/accountpool"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/internal/program/lifecycle"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakecleanup"
	"github.com/environment-broker/environment-broker/internal/secret"
	"github.com/environment-broker/environment-broker/process/crashtest"
	"github.com/environment-broker/environment-broker/storage"
	claims "github.com/environment-broker/environment-broker/storage/accounts"
	"github.com/environment-broker/environment-broker/storage/auditlog"
	"github.com/environment-broker/environment-broker/storage/outsideobjects"
	"github.com/environment-broker/environment-broker/storage/reports"
)

// checksEvery is the interval at which the Secrets in runtimes are checked. It is shorter than in production, to keep the
// scenarios short.
const checksEvery = time.Minute

// background returns the background work of a replica that a scenario tests.
type background func(f *brokerFixture, proxy *crashtest.Proxy) []lifecycle.Part

// renewal is the background work that renews the kubeconfigs for Lifecycle Manager and the Reconciler.
func renewal(f *brokerFixture, proxy *crashtest.Proxy) []lifecycle.Part {
	parts := f.parts(proxy)
	holders := map[string]credentials.Holder{}

	if f.controlPlane != nil {
		holders[environment.SystemLifecycleManager] = credentials.LifecycleManager{Client: parts.LifecycleManager, Recorded: f.objects, Kyma: parts.Kyma}
	} else {
		holders[environment.SystemReconciler] = credentials.Reconciler{
			Client: parts.Reconciler, Sent: f.objects, Kyma: parts.Kyma, Timeout: reconcilerConfig().Timeout, Clock: clock.RealClock{},
		}
	}

	return []lifecycle.Part{credentials.Renewer{
		DB: proxiedDB{f.db, proxy}, Instances: f.instances, Objects: proxiedRenewals{f.objects, proxy}, Events: f.events,
		Reports: proxiedReports{f.reports, proxy}, Access: parts.Access, Holders: holders, Validity: clusterclient.Validity,
		Results: credentials.NewResults(), Clock: clock.RealClock{}, Log: logging.Discard(),
	}.Part()}
}

// repair is the background work that repairs the Secrets of the BTP service operator.
func repair(f *brokerFixture, proxy *crashtest.Proxy) []lifecycle.Part {
	return []lifecycle.Part{credentials.Repairer{
		DB: proxiedDB{f.db, proxy}, Instances: f.instances, Operations: f.operations, Events: f.events, Reports: proxiedReports{f.reports, proxy},
		Runtimes: f.access(proxy), Results: credentials.NewChecks(), Interval: checksEvery, Clock: clock.RealClock{}, Log: logging.Discard(),
	}.Part()}
}

// cleaning is the background work that cleans up dirty accounts of the pool.
func cleaning(f *brokerFixture, proxy *crashtest.Proxy) []lifecycle.Part {
	hook := proxy.Client(f.hook, func(r *http.Request) string { return "hook-" + r.Method }).Transport

	cleaner := poolcleanup.Cleaner{
		Pool: f.pool.behind(proxy).Pool, Records: proxiedCleanups{f.claims, proxy},
		Hook:     cleanuphook.New(fakecleanup.Config("http://cleanup.example.com"), f.pool.garden.Namespace(), hook),
		Recorder: proxiedRecorder{audit.NewRecorder(f.auditLog, f.db, clock.RealClock{}, logging.Discard()), proxy},
		Metrics:  poolcleanup.NewMetrics(f.claims, clock.RealClock{}, logging.Discard()),
		Clock:    clock.RealClock{}, Log: logging.Discard(),
	}

	return jobs.Runner{
		Jobs: []jobs.Job{cleaner.Job(0)}, Reports: proxiedReports{f.reports, proxy}, Clock: clock.RealClock{}, Log: logging.Discard(),
	}.Parts()
}

// renew makes the instance's kubeconfigs due for renewal, as an operator does. Afterwards, only newer kubeconfigs count as current.
func (f *brokerFixture) renew() {
	f.Helper()

	f.accounts.mutex.Lock()
	f.replaced = f.accounts.issued
	f.accounts.mutex.Unlock()

	if err := f.db.InTx(f.Context(), func(tx storage.Tx) error {
		return f.objects.RequestRenewal(f.Context(), tx, instanceID, []string{environment.SystemLifecycleManager, environment.SystemReconciler}, time.Now())
	}); err != nil {
		f.Fatal(err)
	}
}

// loseSecret deletes Lifecycle Manager's Secret, as users of the control plane can do, and makes the kubeconfig in it due for
// renewal.
func (f *brokerFixture) loseSecret() {
	for _, each := range f.controlPlane.Objects("Secret") {
		f.controlPlane.Remove("Secret", each.GetNamespace(), each.GetName())
	}

	f.renew()
}

// change changes the BTP service operator's Secret, as a tenant can do.
func (f *brokerFixture) change() {
	f.accounts.setCredentials(environment.ServiceManager{ClientSecret: "changed"})
}

// happened returns a condition that is true once there is an event with the given result.
func happened(result string) func(f *brokerFixture) bool {
	return func(f *brokerFixture) bool {
		for name := range f.eventCounts() {
			if strings.HasSuffix(name, " "+result) {
				return true
			}
		}

		return false
	}
}

// renewedTwice reports whether the kubeconfig was renewed twice: after its creation and on request.
func renewedTwice(f *brokerFixture) bool {
	return f.eventCounts()[environment.SystemLifecycleManager+" renewed"] >= 2 //nolint:mnd // twice
}

// cleaned reports whether the account is free and no record of its cleanup is left.
func cleaned(f *brokerFixture) bool {
	f.Helper()

	records, err := f.claims.Cleanups(f.Context())
	if err != nil {
		f.Fatal(err)
	}

	return len(records) == 0 && f.releases() > 0
}

// eventCounts counts the instance's events by system and result. It leaves out failures, because they depend on the fault.
func (f *brokerFixture) eventCounts() map[string]int {
	f.Helper()

	events, err := f.events.OfInstance(f.Context(), instanceID)
	if err != nil {
		f.Fatal(err)
	}

	counts := map[string]int{}

	for _, event := range events {
		if event.Result != "failed" {
			counts[event.System+" "+event.Result] += event.Count
		}
	}

	return counts
}

// releases counts the audit log entries about released accounts.
func (f *brokerFixture) releases() int {
	f.Helper()

	count, err := storage.Get[int](f.Context(), f.db.Reader(), `SELECT count(*) FROM audit WHERE action = ?`, string(auditlog.ActionRelease))
	if err != nil {
		f.Fatal(err)
	}

	return count
}

// backgroundState is the state that background work leaves behind.
type backgroundState struct {
	// Events contains the numbers of events by system and result, without failures.
	Events map[string]int
	// Intents is the number of changes whose events are not recorded yet. Renewing is the number of renewals that may be in
	// progress.
	Intents, Renewing int
	// Current reports whether all systems have kubeconfigs that were issued after the last request.
	Current bool
	// Released reports whether the audit log contains the release of an account. Cleanups is the number of dirty accounts with a
	// record of their cleanup.
	Released bool
	Cleanups int
}

func (f *brokerFixture) backgroundState() backgroundState {
	f.Helper()

	state := backgroundState{Events: f.eventCounts()}

	for counter, query := range map[*int]string{
		&state.Intents:  `SELECT count(*) FROM instance_event_intents`,
		&state.Renewing: `SELECT count(*) FROM outside_objects WHERE renewing_until IS NOT NULL`,
		&state.Cleanups: `SELECT count(*) FROM account_cleanups`,
	} {
		count, err := storage.Get[int](f.Context(), f.db.Reader(), query)
		if err != nil {
			f.Fatal(err)
		}

		*counter = count
	}

	// The audit log entry is written before the label changes. Each fault in between leads to one more entry, and a run has at
	// most two faults.
	releases := f.releases()
	state.Released = releases > 0

	if releases > 3 { //nolint:mnd // see above
		f.Errorf("the audit log has %d releases of one account", releases)
	}

	kubeconfigs := f.kubeconfigs()
	state.Current = f.replaced > 0 && len(kubeconfigs) > 0

	for _, each := range kubeconfigs {
		state.Current = state.Current && f.accounts.number(each) > f.replaced
	}

	return state
}

// kubeconfigs returns the kubeconfigs that Lifecycle Manager and the Reconciler have received.
func (f *brokerFixture) kubeconfigs() []secret.String {
	f.Helper()

	var found []secret.String

	for _, each := range f.reconciler.Clusters() {
		found = append(found, secret.String(each.Kubeconfig))
	}

	if f.controlPlane == nil {
		return found
	}

	for _, each := range f.controlPlane.Objects("Secret") {
		encoded, _, _ := unstructured.NestedString(each.Object, "data", "config")

		decoded, err := base64.StdEncoding.DecodeString(encoded)
		if err != nil {
			f.Fatal(err)
		}

		found = append(found, secret.String(decoded))
	}

	return found
}

// issue returns a new kubeconfig that contains its serial number.
func (a *accounts) issue() secret.String {
	a.mutex.Lock()
	defer a.mutex.Unlock()

	a.issued++

	return secret.String(fmt.Sprintf("%s # %d", ownKubeconfig, a.issued))
}

// number returns the serial number of a kubeconfig that issue has returned.
func (*accounts) number(kubeconfig secret.String) (number int) {
	_, text, _ := strings.Cut(kubeconfig.Reveal(), "# ")
	_, _ = fmt.Sscan(text, &number)

	return number
}

// RepairServiceManager implements credentials.Runtimes. It reads the Secret, and writes it if its value differs from the wanted one.
func (a proxiedAccess) RepairServiceManager(ctx context.Context, instance environment.Instance, wanted environment.ServiceManager,
	begin func(context.Context) error,
) (bool, error) {
	if _, err := a.provisioner.Kubeconfig(ctx, instance.GlobalAccountID, instance.RuntimeID); err != nil {
		return false, err
	}

	present := ""

	if err := a.account(ctx, "read credentials", func() {
		a.accounts.mutex.Lock()
		defer a.accounts.mutex.Unlock()

		present = a.accounts.clientSecret
	}); err != nil || present == wanted.ClientSecret.Reveal().Reveal() {
		return false, err
	}

	if err := begin(ctx); err != nil {
		return false, err
	}

	return true, a.account(ctx, "credentials", func() { a.accounts.setCredentials(wanted) })
}

// proxiedDB is the database of background work behind the proxy of a replica. Faults affect whole transactions.
type proxiedDB struct {
	*storage.DB

	proxy *crashtest.Proxy
}

func (d proxiedDB) InTx(ctx context.Context, work func(tx storage.Tx) error) error {
	return d.proxy.Call(ctx, "InTx", func(ctx context.Context) error { return d.DB.InTx(ctx, work) })
}

// proxiedReports accesses the stored reports, which also assign turns to the replicas, through the proxy of a replica.
type proxiedReports struct {
	*reports.Store

	proxy *crashtest.Proxy
}

func (r proxiedReports) Claim(ctx context.Context, id string, now, next time.Time) (bool, error) {
	return readRow(ctx, proxiedRows{proxy: r.proxy}, "ClaimTurn", func(ctx context.Context) (bool, error) { return r.Store.Claim(ctx, id, now, next) })
}

func (r proxiedReports) Postpone(ctx context.Context, id string, next time.Time) error {
	return r.proxy.Call(ctx, "Postpone", func(ctx context.Context) error { return r.Store.Postpone(ctx, id, next) })
}

func (r proxiedReports) Save(ctx context.Context, id string, content any, at time.Time) error {
	return r.proxy.Call(ctx, "SaveProgress", func(ctx context.Context) error { return r.Store.Save(ctx, id, content, at) })
}

// proxiedRenewals accesses the records of issued kubeconfigs through the proxy of a replica.
type proxiedRenewals struct {
	*outsideobjects.Store

	proxy *crashtest.Proxy
}

func (r proxiedRenewals) BeginRenewal(ctx context.Context, begun outsideobjects.Renewal) (bool, error) {
	return readRow(ctx, proxiedRows{proxy: r.proxy}, "BeginRenewal", func(ctx context.Context) (bool, error) { return r.Store.BeginRenewal(ctx, begun) })
}

// proxiedCleanups accesses the records of dirty accounts through the proxy of a replica.
type proxiedCleanups struct {
	*claims.Store

	proxy *crashtest.Proxy
}

func (c proxiedCleanups) Track(ctx context.Context, dirty []accountpool.Account, now time.Time) error {
	return c.proxy.Call(ctx, "Track", func(ctx context.Context) error { return c.Store.Track(ctx, dirty, now) })
}

func (c proxiedCleanups) Answered(ctx context.Context, cleanup accountpool.Cleanup) error {
	return c.proxy.Call(ctx, "Answered", func(ctx context.Context) error { return c.Store.Answered(ctx, cleanup) })
}

// proxiedRecorder accesses the audit log through the proxy of a replica.
type proxiedRecorder struct {
	*audit.Recorder

	proxy *crashtest.Proxy
}

func (r proxiedRecorder) RecordAlone(ctx context.Context, entry auditlog.Entry) error {
	return r.proxy.Call(ctx, "RecordAlone", func(ctx context.Context) error { return r.Recorder.RecordAlone(ctx, entry) })
}
