package operator_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/environment-broker/environment-broker/broker/operator"
	"github.com/environment-broker/environment-broker/broker/quota"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/storagetest"
)

// TestQuotas lists the quotas and their usage by accounts with one to four instances each, and checks the metric for the fullest
// group of each quota.
func TestQuotas(t *testing.T) {
	const plan = "361c511f-f939-4621-b228-d0fb79a1fe15"

	var checker quota.Checker

	b := newBench(t, func(options *operator.Options) {
		parsed, err := quota.Parse([]byte(`quotas:
- {name: clusters, per: [account], limit: 5, limits: {ga-1: 1, ga-4: -1}}
- {name: aws, plans: [aws], per: [plan, region], regions: [eu-central-1], limit: 20}
- {name: subs, per: [subaccount], limit: 9}
- {name: all, limit: 0}
`), func(string) (string, bool) { return plan, true })
		if err != nil {
			t.Fatal(err)
		}

		checker = quota.Checker{DB: options.DB, Instances: options.Instances, Current: func() quota.Quotas { return parsed }}
		options.Quotas = checker
	})

	for account := 1; account <= 4; account++ {
		for number := range account {
			id := fmt.Sprintf("q-%d-%d", account, number)

			if err := b.db.InTx(t.Context(), func(tx storage.Tx) error {
				return storagetest.Insert(t.Context(), tx, b.instances, environment.Instance{
					ID: id, ShootName: id, GlobalAccountID: fmt.Sprint("ga-", account), SubAccountID: "sub", PlanID: plan, Region: "eu-central-1", CreatedAt: time.Now(), UpdatedAt: time.Now(),
				})
			}); err != nil {
				t.Fatal(err)
			}
		}
	}

	list := func(query string) map[string]operatorapi.Quota {
		t.Helper()

		var got operatorapi.QuotaList
		if err := json.Unmarshal([]byte(b.want("the list", b.do("viewer", "GET", "/quotas"+query), 200).Raw), &got); err != nil {
			t.Fatal(err)
		}

		byName := map[string]operatorapi.Quota{}
		for _, each := range got.Data {
			byName[each.Name] = each
		}

		return byName
	}

	all := list("")
	one := operatorapi.QuotaGroup{Account: "ga-1", Used: 1, Limit: 1}
	want := map[string]operatorapi.Quota{
		"clusters": {
			Name: "clusters", Per: []string{"account"}, Limit: 5,
			Groups: []operatorapi.QuotaGroup{one, {Account: "ga-3", Used: 3, Limit: 5}, {Account: "ga-2", Used: 2, Limit: 5}, {Account: "ga-4", Used: 4, Limit: -1}},
		},
		"aws": {
			Name: "aws", Per: []string{"plan", "region"}, Plans: []string{"aws"}, Regions: []string{"eu-central-1"}, Limit: 20,
			Groups: []operatorapi.QuotaGroup{{Plan: "aws", Region: "eu-central-1", Used: 10, Limit: 20}},
		},
		"subs": {Name: "subs", Per: []string{"subaccount"}, Limit: 9, Groups: []operatorapi.QuotaGroup{{Subaccount: "sub", Used: 10, Limit: 9}}},
		"all":  {Name: "all", Limit: 0, Groups: []operatorapi.QuotaGroup{{Used: 10, Limit: 0}}},
	}

	if diff := cmp.Diff(want, all); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}

	if got := list("?page_size=1")["clusters"]; !got.More || !cmp.Equal(got.Groups, []operatorapi.QuotaGroup{one}) {
		t.Errorf("the fullest group comes first, and others follow: %+v", got)
	}

	if got := list("?account=ga-2"); len(got) != 1 || !cmp.Equal(got["clusters"].Groups, []operatorapi.QuotaGroup{{Account: "ga-2", Used: 2, Limit: 5}}) {
		t.Errorf("the quotas of an account: %+v", got)
	}

	if got := list("?subaccount=sub&name=subs"); len(got) != 1 || len(got["subs"].Groups) != 1 {
		t.Errorf("the quotas of a subaccount: %+v", got)
	}

	b.want("a misspelled filter", b.do("viewer", "GET", "/quotas?acount=ga-2"), 400)

	registry := prometheus.NewRegistry()
	quota.NewMetrics(registry, checker, b.clock, logging.Discard())

	const metrics = `# HELP environment_broker_quota_highest_ratio Used share of the limit in the fullest group of a quota. 1 means used up. All replicas report the same value.
# TYPE environment_broker_quota_highest_ratio gauge
environment_broker_quota_highest_ratio{quota="all"} 11
environment_broker_quota_highest_ratio{quota="aws"} 0.5
environment_broker_quota_highest_ratio{quota="clusters"} 1
environment_broker_quota_highest_ratio{quota="subs"} 1.1111111111111112
`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(metrics)); err != nil {
		t.Error(err)
	}
}
