package operator_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/broker/adopt"
	"github.com/environment-broker/environment-broker/broker/operator"
	"github.com/environment-broker/environment-broker/internal/auth"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/objectdiff"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
)

// fakeShoots implements ShootAdopter. It always returns the same result.
type fakeShoots struct {
	result adopt.ShootResult
	err    error
	orders []adopt.ShootOrder
}

func (f *fakeShoots) Adopt(_ context.Context, order adopt.ShootOrder) (adopt.ShootResult, error) {
	f.orders = append(f.orders, order)

	return f.result, f.err
}

func TestAdoptShoot(t *testing.T) {
	t.Parallel()

	fake := &fakeShoots{result: adopt.ShootResult{
		Instance:     environment.Instance{ID: "i", RuntimeID: "r", ShootName: "theirs", PlanName: "aws", Provider: "aws", Region: "eu-central-1"},
		Generation:   7,
		ShootChanges: []objectdiff.Change{{Path: "spec.a", Present: "1", Wanted: "2"}},
		NotInOrder:   []string{"spec.b"},
	}}
	b := newBench(t, func(options *operator.Options) { options.Shoots = fake })

	got := b.want("a dry run", b.send("admin", "POST", "/shoots/theirs/adopt", strings.NewReader(
		`{"account":"ga-1","plan":"aws","administrators":["anna"],"generation":6,"dryRun":true}`)), 200)
	want := operatorapi.AdoptedShoot{
		InstanceID: "i", RuntimeID: "r", ShootName: "theirs", Plan: "aws", Provider: "aws", Region: "eu-central-1", DryRun: true, Generation: 7,
		ShootChanges: []operatorapi.FieldChange{{Path: "spec.a", Present: "1", Wanted: "2"}}, OrderChanges: []operatorapi.FieldChange{}, NotInOrder: []string{"spec.b"},
	}

	if diff := cmp.Diff(want, read[operatorapi.AdoptedShoot](b, got)); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}

	for name, c := range map[string]struct{ path, body string }{
		"a misspelled field":         {"theirs", `{"account":"ga-1","dry_run":true}`},
		"no account":                 {"theirs", `{}`},
		"an empty administrator":     {"theirs", `{"account":"ga-1","administrators":[""]}`},
		"a long account":             {"theirs", `{"account":"` + strings.Repeat("a", 256) + `"}`},
		"a negative generation":      {"theirs", `{"account":"ga-1","generation":-1}`},
		"too many administrators":    {"theirs", `{"account":"ga-1","administrators":["a"` + strings.Repeat(`,"a"`, 100) + `]}`},
		"a name that no Shoot has":   {"Theirs", `{"account":"ga-1"}`},
		"a name with a path":         {"a%2Fb", `{"account":"ga-1"}`},
		"a platform that is unknown": {"theirs", `{"account":"ga-1","platform":"nobody"}`},
	} {
		b.want(name, b.send("admin", "POST", "/shoots/"+c.path+"/adopt", strings.NewReader(c.body)), 400)
	}

	if len(fake.orders) != 1 {
		t.Errorf("invalid requests must not be carried out: got %+v", fake.orders)
	}

	for kind, status := range map[failure.Kind]int{
		failure.NotFound: http.StatusNotFound, failure.Conflict: http.StatusConflict, failure.Transient: http.StatusServiceUnavailable,
	} {
		fake.err = failure.New(kind, "Refused because.")
		if got := b.want("a refusal", b.send("admin", "POST", "/shoots/theirs/adopt", strings.NewReader(`{"account":"ga-1"}`)), status); !strings.Contains(got.Raw, "Refused because.") {
			t.Errorf("the reason is missing: %s", got.Raw)
		}
	}
}

// TestAdoptShootInTheDefaultRegion checks that a request without a platform region is checked against the regions of the platform with the
// default region, which the instance gets.
func TestAdoptShootInTheDefaultRegion(t *testing.T) {
	t.Parallel()

	platforms, err := auth.ParsePlatforms([]byte("platforms: [{name: here, users: [a], regions: [cf-eu10]}, {name: there, users: [b], regions: [cf-us10]}]"))
	if err != nil {
		t.Fatal(err)
	}

	fake := &fakeShoots{}
	b := newBench(t, func(options *operator.Options) {
		options.Shoots, options.DefaultRegion, options.Platforms = fake, "cf-eu10", func() auth.Platforms { return platforms }
	})

	b.want("the platform of the region", b.send("admin", "POST", "/shoots/theirs/adopt", strings.NewReader(`{"account":"ga-1","platform":"here"}`)), 200)

	if len(fake.orders) != 1 || fake.orders[0].PlatformRegion != "cf-eu10" {
		t.Errorf("got %+v", fake.orders)
	}

	refused := b.want("another platform", b.send("admin", "POST", "/shoots/theirs/adopt", strings.NewReader(`{"account":"ga-1","platform":"there"}`)), 409)
	if !strings.Contains(refused.Raw, "whose region is cf-eu10") {
		t.Errorf("got %s", refused.Raw)
	}
}
