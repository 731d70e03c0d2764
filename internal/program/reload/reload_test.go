package reload

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
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/sirupsen/logrus"
	logtest "github.com/sirupsen/logrus/hooks/test"
	"go.uber.org/goleak"
	"k8s.io/utils/clock"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// joined returns the joined contents. It returns an error if a file contains the text "bad".
func joined(contents [][]byte) (string, error) {
	texts := make([]string, 0, len(contents))

	for _, content := range contents {
		if string(content) == "bad" {
			return "", errors.New("the file is bad")
		}

		texts = append(texts, string(content))
	}

	return strings.Join(texts, "+"), nil
}

func write(t *testing.T, path, content string) {
	t.Helper()

	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestLoadRejectsInvalidFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	write(t, path, "bad")

	for name, paths := range map[string][]string{"bad": {path}, "missing": {path + ".none"}} {
		if _, err := Load("file", joined, paths...); err == nil {
			t.Errorf("a %s file is accepted: a service would start with it", name)
		}
	}
}

func TestWatcherFollowsFiles(t *testing.T) {
	one, other := filepath.Join(t.TempDir(), "one"), filepath.Join(t.TempDir(), "other")
	write(t, one, "a")
	write(t, other, "b")

	synctest.Test(t, func(t *testing.T) {
		logger, hook := logtest.NewNullLogger()
		metrics := prometheus.NewRegistry()

		value, err := Load("pair", joined, one, other)
		if err != nil {
			t.Fatal(err)
		}

		var used []string

		watcher := NewWatcher(logger, clock.RealClock{}, metrics)
		Watch(watcher, value, func(text string) { used = append(used, text) })

		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)

		go func() { ended <- watcher.Part().Run(ctx) }()

		steps := []struct {
			reason   string
			change   func()
			want     string
			rejected float64
			logged   []logrus.Level
		}{
			{"nothing has changed, so nothing is logged", func() {}, "a+b", 0, nil},
			{"a change is used", func() { write(t, other, "c") }, "a+c", 0, []logrus.Level{logrus.InfoLevel}},
			{"the rejection of a bad file is logged once", func() { write(t, one, "bad") }, "a+c", 1, []logrus.Level{logrus.ErrorLevel}},
			{"the previous contents are valid again", func() { write(t, one, "a") }, "a+c", 0, []logrus.Level{logrus.InfoLevel}},
			{"a missing file keeps the value", func() { _ = os.Remove(one) }, "a+c", 1, []logrus.Level{logrus.ErrorLevel}},
			{"the file is restored unchanged", func() { write(t, one, "a") }, "a+c", 0, []logrus.Level{logrus.InfoLevel}},
			{"the file has other contents", func() { write(t, one, "d") }, "d+c", 0, []logrus.Level{logrus.InfoLevel}},
		}

		for _, step := range steps {
			hook.Reset()
			step.change()
			time.Sleep(3 * Every) // fake time
			synctest.Wait()       // the last check has ended before the next change

			if got := value.Get(); got != step.want {
				t.Errorf("\n%s\nwant %q, got %q", step.reason, step.want, got)
			}

			var logged []logrus.Level
			for _, entry := range hook.AllEntries() {
				logged = append(logged, entry.Level)
			}

			if diff := cmp.Diff(step.logged, logged); diff != "" {
				t.Errorf("\n%s\nlog: -want +got\n%s", step.reason, diff)
			}

			if got := testutil.ToFloat64(watcher.rejected.WithLabelValues("pair")); got != step.rejected {
				t.Errorf("\n%s\nmetric: want %v, got %v", step.reason, step.rejected, got)
			}
		}

		if diff := cmp.Diff([]string{"a+b", "a+c", "a+c", "a+c", "d+c"}, used); diff != "" {
			t.Errorf("values passed to use: -want +got\n%s", diff)
		}

		stop()

		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// TestRejectedContentsAreParsedAgain checks that contents that were rejected because of something outside of the file are used when they
// have become valid.
func TestRejectedContentsAreParsedAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	write(t, path, "a")

	logger, hook := logtest.NewNullLogger()
	watcher := NewWatcher(logger, clock.RealClock{}, prometheus.NewRegistry())
	known := map[string]bool{"a": true}

	value, err := Load("file", func(contents [][]byte) (string, error) {
		if !known[string(contents[0])] {
			return "", errors.New("the plan is unknown")
		}

		return string(contents[0]), nil
	}, path)
	if err != nil {
		t.Fatal(err)
	}

	Watch(watcher, value, nil)

	for _, step := range []struct {
		reason   string
		change   func()
		want     string
		rejected float64
		logged   int
	}{
		{"the plan is unknown", func() { write(t, path, "b") }, "a", 1, 1},
		{"it is still unknown, which was logged", func() {}, "a", 1, 0},
		{"the catalog now has the plan", func() { known["b"] = true }, "b", 0, 1},
		{"nothing has changed", func() {}, "b", 0, 0},
	} {
		hook.Reset()
		step.change()

		if err := watcher.checkAll(t.Context()); err != nil {
			t.Fatal(err)
		}

		if got, rejected := value.Get(), testutil.ToFloat64(watcher.rejected.WithLabelValues("file")); got != step.want ||
			rejected != step.rejected || len(hook.AllEntries()) != step.logged {
			t.Errorf("%s: got %q, rejected %v, logged %v", step.reason, got, rejected, hook.AllEntries())
		}
	}
}
