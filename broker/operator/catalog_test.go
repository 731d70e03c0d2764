package operator_test

import (
	"encoding/json"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	logtest "github.com/sirupsen/logrus/hooks/test"
	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/broker/catalog"
	"github.com/environment-broker/environment-broker/broker/operator"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
)

func TestCatalog(t *testing.T) {
	var offer *catalog.Catalog

	b := newBench(t, func(options *operator.Options) { offer = options.Catalog })
	want := operatorapi.Catalog{ETag: offer.Published().ETag, Plans: []string{"aws", "trial"}}

	answer := func(reason string) operatorapi.Catalog {
		t.Helper()

		var got operatorapi.Catalog
		if err := json.Unmarshal([]byte(b.want(reason, b.do("viewer", "GET", "/catalog"), 200).Raw), &got); err != nil {
			t.Fatal(err)
		}

		return got
	}

	if diff := cmp.Diff(want, answer("viewers may read the catalog")); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}

	logger, _ := logtest.NewNullLogger()
	catalog.Watcher{Catalog: offer, Files: fstest.MapFS{}, Clock: clock.RealClock{}, Log: logger}.Reload()

	got := answer("invalid files change nothing")
	if got.Problem.Message == "" || got.Problem.Since.IsZero() {
		t.Errorf("the problem is reported as %+v", got.Problem)
	}

	got.Problem = operatorapi.CatalogProblem{}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}
