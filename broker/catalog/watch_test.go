package catalog_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/sirupsen/logrus"
	logtest "github.com/sirupsen/logrus/hooks/test"
	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/broker/catalog"
)

// look is longer than two intervals between the watcher's checks. A watcher has loaded a change after this time.
const look = 11 * time.Second

// folder writes the built-in catalog to a temporary folder and returns its path.
func folder(t *testing.T) string {
	t.Helper()

	dir := t.TempDir()
	if err := os.CopyFS(dir, shipped(t, nil)); err != nil {
		t.Fatal(err)
	}

	return dir
}

func write(t *testing.T, dir, name, content string) {
	t.Helper()

	if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// watched runs the test in fake time, while a Watcher checks the folder.
func watched(t *testing.T, dir string, test func(t *testing.T, offer *catalog.Catalog, log *logtest.Hook)) {
	t.Helper()
	recorded(t, dir, func(context.Context, catalog.Reload) error { return nil }, test)
}

// recorded is like watched, but also calls record with the result of each reload.
func recorded(t *testing.T, dir string, record func(context.Context, catalog.Reload) error,
	test func(t *testing.T, offer *catalog.Catalog, log *logtest.Hook),
) {
	t.Helper()

	synctest.Test(t, func(t *testing.T) {
		offer, err := catalog.Load(os.DirFS(dir), options())
		if err != nil {
			t.Fatal(err)
		}

		logger, hook := logtest.NewNullLogger()
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)

		go func() {
			ended <- catalog.Watcher{
				Catalog: offer, Files: os.DirFS(dir), Record: record, Clock: clock.RealClock{}, Log: logger,
			}.Part().Run(ctx)
		}()

		synctest.Wait()
		test(t, offer, hook)
		stop()

		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

func maintenance(t *testing.T, offer *catalog.Catalog) string {
	t.Helper()

	aws, err := offer.Plan(serviceID, planAWS)
	if err != nil {
		t.Fatal(err)
	}

	return aws.MaintenanceVersion()
}

func TestChangedFilesAreReloaded(t *testing.T) {
	dir := folder(t)
	good := string(file(t, "plans/aws.yaml"))

	watched(t, dir, func(t *testing.T, offer *catalog.Catalog, log *logtest.Hook) {
		before := offer.Published().ETag

		time.Sleep(look)

		if again := offer.Published().ETag; again != before {
			t.Errorf("unchanged files have the ETag %s, want %s", again, before)
		}

		if len(log.AllEntries()) > 0 {
			t.Errorf("unchanged files cause a log message: %s", log.LastEntry().Message)
		}

		held, err := offer.Plan(serviceID, planAWS)
		if err != nil {
			t.Fatal(err)
		}

		write(t, dir, "plans/aws.yaml", strings.ReplaceAll(good, "version: 1.0.0", "version: 1.1.0"))
		time.Sleep(look)

		if after := offer.Published().ETag; maintenance(t, offer) != "1.1.0" || after == before || held.MaintenanceVersion() != "1.0.0" {
			t.Errorf("the plan has version %s, the catalog %s, ETag %s, before %s", maintenance(t, offer), held.MaintenanceVersion(), after, before)
		}
	})
}

func TestInvalidFilesAreNotUsed(t *testing.T) {
	dir := folder(t)
	good := string(file(t, "plans/aws.yaml"))

	watched(t, dir, func(t *testing.T, offer *catalog.Catalog, log *logtest.Hook) {
		before := offer.Published().ETag

		write(t, dir, "plans/aws.yaml", strings.ReplaceAll(good, "zonesCount: 3", "zonesCount: 0"))
		time.Sleep(3 * look)

		if after := offer.Published().ETag; after != before {
			t.Error("invalid files replaced the catalog")
		}

		if entries := log.AllEntries(); len(entries) != 1 || entries[0].Level != logrus.ErrorLevel {
			t.Errorf("invalid files cause %d log entries, want one error", len(entries))
		}

		if problem := offer.Problem(); problem == nil || !strings.Contains(problem.Text, "plan aws: zonesCount is not positive") {
			t.Errorf("the problem is %v, want the error of the files", problem)
		}

		if got := testutil.ToFloat64(offer.Metric()); got != 1 {
			t.Errorf("the metric is %g, want 1", got)
		}

		write(t, dir, "plans/aws.yaml", good)
		time.Sleep(look)

		if problem := offer.Problem(); problem != nil || testutil.ToFloat64(offer.Metric()) != 0 {
			t.Errorf("after a reload of valid files, the problem is %v", problem)
		}
	})
}

func TestPartlyWrittenFilesAreNotUsed(t *testing.T) {
	dir := folder(t)
	good := string(file(t, "plans/aws.yaml"))

	watched(t, dir, func(t *testing.T, offer *catalog.Catalog, log *logtest.Hook) {
		for i := range 10 {
			write(t, dir, "plans/aws.yaml", good[:i*len(good)/10])
			time.Sleep(4 * time.Second) // less than one interval of the Watcher
		}

		write(t, dir, "plans/aws.yaml", good+"# the end\n")
		time.Sleep(look)

		if entries := log.AllEntries(); len(entries) != 1 || entries[0].Level != logrus.InfoLevel || offer.Problem() != nil {
			t.Errorf("incomplete files cause %d log entries and the problem %v, want none", len(entries), offer.Problem())
		}
	})
}

func TestReloadsAreRecorded(t *testing.T) {
	dir := folder(t)
	good := string(file(t, "plans/aws.yaml"))

	var events []catalog.Reload

	away := true
	record := func(_ context.Context, event catalog.Reload) error {
		if away {
			return errors.New("the database does not respond")
		}

		events = append(events, event)

		return nil
	}

	recorded(t, dir, record, func(t *testing.T, offer *catalog.Catalog, _ *logtest.Hook) {
		before := offer.Published().ETag

		write(t, dir, "plans/aws.yaml", strings.ReplaceAll(good, "zonesCount: 3", "zonesCount: 0"))
		time.Sleep(look)
		write(t, dir, "plans/aws.yaml", strings.ReplaceAll(good, "version: 1.0.0", "version: 1.1.0"))
		time.Sleep(look)

		if len(events) > 0 {
			t.Errorf("events %v were recorded during the outage", events)
		}

		away = false

		time.Sleep(2 * look)

		want := []catalog.Reload{
			{Before: before, After: before, Problem: "checking the catalog: plan aws: zonesCount is not positive"}, {Before: before, After: offer.Published().ETag},
		}
		if diff := cmp.Diff(want, events); diff != "" {
			t.Errorf("events recorded after the outage, in order and once: -want +got\n%s", diff)
		}
	})
}

func TestMissingFolder(t *testing.T) {
	dir := folder(t)

	watched(t, dir, func(t *testing.T, offer *catalog.Catalog, _ *logtest.Hook) {
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}

		time.Sleep(look)

		if offer.Problem() == nil || maintenance(t, offer) != "1.0.0" {
			t.Error("a missing folder is not reported, or replaced the catalog")
		}

		if err := os.CopyFS(dir, shipped(t, nil)); err != nil {
			t.Fatal(err)
		}

		time.Sleep(look)

		if problem := offer.Problem(); problem != nil {
			t.Errorf("after the folder is restored, the problem is %v", problem)
		}
	})
}
