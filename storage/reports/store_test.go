package reports_test

import (
	"errors"
	"testing"
	"time"

	"github.com/environment-broker/environment-broker/internal/sandbox/postgrestest"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/reports"
	"github.com/environment-broker/environment-broker/storage/storagetest"
)

func TestMain(m *testing.M) { postgrestest.Main(m) }

// TestOneReplicaMakesAReport checks that only one of two replicas can claim a report.
func TestOneReplicaMakesAReport(t *testing.T) {
	storagetest.EachDatabase(t, func(t *testing.T, db *storage.DB) {
		t.Helper()

		store, err := reports.Open(t.Context(), db)
		if err != nil {
			t.Fatal(err)
		}

		start := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)

		claim := func(after time.Duration) bool {
			t.Helper()

			claimed, err := store.Claim(t.Context(), "one", start.Add(after), start.Add(after+time.Hour))
			if err != nil {
				t.Fatal(err)
			}

			return claimed
		}

		for _, step := range []struct {
			after time.Duration
			want  bool
		}{{0, false}, {59 * time.Minute, false}, {time.Hour, true}, {time.Hour, false}, {90 * time.Minute, false}, {3 * time.Hour, true}} {
			if got := claim(step.after); got != step.want {
				t.Errorf("after %s: want %t, got %t", step.after, step.want, got)
			}
		}

		// The ticker of the replica starts its work with a delay that varies.
		for tick, delay := range []int{900, 100, 1000, 0} {
			if after := 4*time.Hour + time.Duration(tick)*time.Hour + time.Duration(delay)*time.Microsecond; !claim(after) {
				t.Errorf("after %s: the report is not due at each tick", after)
			}
		}

		var content map[string]int
		if _, err := store.Get(t.Context(), "one", &content); !errors.Is(err, storage.ErrNotFound) {
			t.Errorf("got %v, want ErrNotFound before the first result", err)
		}

		if err := store.Save(t.Context(), "one", map[string]int{"a": 1}, start); err != nil {
			t.Fatal(err)
		}

		if at, err := store.Get(t.Context(), "one", &content); err != nil || content["a"] != 1 || !at.Equal(start) {
			t.Errorf("got %v at %s, %v", content, at, err)
		}
	})
}
