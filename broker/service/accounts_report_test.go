package service_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/environment-broker/environment-broker/broker/service"
	"github.com/environment-broker/environment-broker/internal/environment/accountpool"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/storage/accounts"
	"github.com/environment-broker/environment-broker/storage/reports"
	"github.com/environment-broker/environment-broker/storage/storagetest"
)

// listedGarden has the listed accounts and no Shoots.
type listedGarden struct {
	accountpool.Garden

	accounts []accountpool.Account
	err      error
	lists    int
}

func (g *listedGarden) Accounts(context.Context, string) ([]accountpool.Account, error) {
	g.lists++

	return g.accounts, g.err
}

func (*listedGarden) Shoots(context.Context) (map[string][]string, error) {
	return map[string][]string{}, nil
}

// TestAccountsReport checks the metrics of two replicas over several reports.
func TestAccountsReport(t *testing.T) {
	db := storagetest.SQLite(t)
	clock := clocktesting.NewFakeClock(time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC))

	claims, claimsErr := accounts.Open(t.Context(), db, clock)
	store, storeErr := reports.Open(t.Context(), db)

	if err := errors.Join(claimsErr, storeErr); err != nil {
		t.Fatal(err)
	}

	garden := &listedGarden{accounts: []accountpool.Account{
		{Name: "a", Type: "aws"}, {Name: "b", Type: "aws"}, {Name: "c", Type: "aws", Tenant: "t", Dirty: true}, {Name: "d", Type: "gcp", Shared: true},
	}}
	one := service.AccountsReporter{Pool: accountpool.Pool{Garden: garden, Claims: claims}, Reports: store, Clock: clock, Log: logging.Discard()}
	other := service.AccountsReporter{Reports: store, Clock: clock, Log: logging.Discard()}

	if err := claims.Share(t.Context(), accountpool.Use{InstanceID: "i1", Key: accountpool.Key{Tenant: "t", Type: "gcp"}, Shared: true, Account: "d"}); err != nil {
		t.Fatal(err)
	}

	report := func(after time.Duration) {
		t.Helper()
		clock.Step(after)

		if err := one.Report(t.Context()); err != nil {
			t.Fatal(err)
		}
	}

	report(0) // with a new database, the first report is due later
	if got := testutil.CollectAndCount(other); got != 0 || garden.lists != 0 {
		t.Errorf("before the first report there are %d metrics", got)
	}

	report(5 * time.Minute)
	report(time.Minute)

	if garden.lists != 1 {
		t.Errorf("the accounts were listed %d times, want once in five minutes", garden.lists)
	}

	const want = `
		# HELP environment_broker_pool_accounts Accounts of the account pool in the newest report, by type (hyperscalerType) and state: internal, releasing, dirty, shared, claimed, labeled, free. All replicas report the same value.
		# TYPE environment_broker_pool_accounts gauge
		environment_broker_pool_accounts{state="claimed",type="aws"} 0
		environment_broker_pool_accounts{state="claimed",type="gcp"} 0
		environment_broker_pool_accounts{state="dirty",type="aws"} 1
		environment_broker_pool_accounts{state="dirty",type="gcp"} 0
		environment_broker_pool_accounts{state="free",type="aws"} 2
		environment_broker_pool_accounts{state="free",type="gcp"} 0
		environment_broker_pool_accounts{state="internal",type="aws"} 0
		environment_broker_pool_accounts{state="internal",type="gcp"} 0
		environment_broker_pool_accounts{state="labeled",type="aws"} 0
		environment_broker_pool_accounts{state="labeled",type="gcp"} 0
		environment_broker_pool_accounts{state="releasing",type="aws"} 0
		environment_broker_pool_accounts{state="releasing",type="gcp"} 0
		environment_broker_pool_accounts{state="shared",type="aws"} 0
		environment_broker_pool_accounts{state="shared",type="gcp"} 1
		# HELP environment_broker_pool_shared_instances Instances in shared accounts in the newest report, by type. All replicas report the same value.
		# TYPE environment_broker_pool_shared_instances gauge
		environment_broker_pool_shared_instances{type="aws"} 0
		environment_broker_pool_shared_instances{type="gcp"} 1
		# HELP environment_broker_pool_timestamp_seconds End of the newest report of the account pool, in seconds since 1970. All replicas report the same value.
		# TYPE environment_broker_pool_timestamp_seconds gauge
		environment_broker_pool_timestamp_seconds 1.893553745e+09
	`
	if err := testutil.CollectAndCompare(other, strings.NewReader(want)); err != nil {
		t.Error(err)
	}

	garden.err = errors.New("Gardener is unreachable")

	clock.Step(5 * time.Minute)

	if err := one.Report(t.Context()); err == nil {
		t.Error("a failed report returns no error")
	}

	if got := testutil.CollectAndCount(other, "environment_broker_pool_accounts"); got != 14 {
		t.Errorf("after a failed report there are %d metrics, want the metrics of the previous report", got)
	}
}
