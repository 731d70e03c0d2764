package operator_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/broker/operator"
	"github.com/environment-broker/environment-broker/broker/upgrade"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
)

// fakeUpgrader implements Upgrader. It always returns the same result.
type fakeUpgrader struct {
	accepted upgrade.Accepted
	err      error
	orders   []upgrade.Order
}

func (f *fakeUpgrader) Upgrade(_ context.Context, order upgrade.Order) (upgrade.Accepted, error) {
	f.orders = append(f.orders, order)

	return f.accepted, f.err
}

func TestUpgrade(t *testing.T) {
	fake := &fakeUpgrader{accepted: upgrade.Accepted{OperationID: "op", Versions: upgrade.Versions{From: "1.0.0", To: "2.0.0"}, Components: []string{"agent"}, Instance: environment.Instance{Name: "mine"}}}
	b := newBench(t, func(options *operator.Options) {
		options.Upgrader = fake
		options.UpgradeSteps = func(kind string, instance environment.Instance) []string { return []string{kind, instance.Name} }
	})

	got := b.want("an upgrade of Kyma", b.send("operator", "POST", "/runtimes/a%2Fb/upgradeKyma", strings.NewReader(`{"version":"2.0.0","dryRun":true}`)), 202)
	want := operatorapi.AcceptedUpgrade{Operation: "op", DryRun: true, From: "1.0.0", To: "2.0.0", Components: []string{"agent"}, Steps: []string{environment.KindUpgradeKyma, "mine"}}

	if diff := cmp.Diff(want, read[operatorapi.AcceptedUpgrade](b, got)); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}

	b.want("an upgrade of the cluster to the default", b.do("operator", "POST", "/runtimes/one/upgradeCluster"), 202)

	orders := []upgrade.Order{
		{InstanceID: "a/b", Kind: environment.KindUpgradeKyma, Version: "2.0.0", DryRun: true},
		{InstanceID: "one", Kind: environment.KindUpgradeCluster},
	}
	if diff := cmp.Diff(orders, fake.orders); diff != "" {
		t.Errorf("orders -want +got\n%s", diff)
	}

	b.want("a misspelled field", b.send("operator", "POST", "/runtimes/one/upgradeKyma", strings.NewReader(`{"dry_run":true}`)), 400)

	for kind, status := range map[failure.Kind]int{
		failure.NotFound: http.StatusNotFound, failure.Invalid: http.StatusBadRequest, failure.Conflict: http.StatusConflict,
	} {
		fake.err = failure.New(kind, "Refused because.")
		if got := b.want("a refusal", b.do("operator", "POST", "/runtimes/one/upgradeKyma"), status); !strings.Contains(got.Raw, "Refused because.") {
			t.Errorf("the reason is missing: %s", got.Raw)
		}
	}

	entries := read[operatorapi.AuditList](b, b.want("the audit log", b.do("admin", "GET", "/audit?instance_id=one"), 200)).Data
	if len(entries) != 4 || entries[0].Action != environment.KindUpgradeKyma || entries[0].Status < 400 {
		t.Errorf("the audit log lacks the refusals: %+v", entries)
	}
}
