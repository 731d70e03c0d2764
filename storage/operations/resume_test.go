package operations_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/process"
)

func TestResume(t *testing.T) {
	cases := map[string]struct {
		reason    string
		component string
		state     process.State
		next      time.Duration
		want      bool
	}{
		"held up":     {"an operation that waits for the system becomes due immediately", "provisioner", process.InProgress, time.Hour, true},
		"other":       {"a different system failed", "gardener", process.InProgress, time.Hour, false},
		"waits":       {"a wait without an error", "", process.InProgress, time.Hour, false},
		"ended":       {"a failed operation stays failed", "provisioner", process.Failed, time.Hour, false},
		"already due": {"an operation that is already due", "provisioner", process.InProgress, 0, false},
	}

	each(t, func(b fixture) {
		now := start.Add(time.Minute)

		for name, c := range cases {
			b.accept(name, name)
			record := b.claimOne("replica-a", name, start)
			record.State, record.NextRun = c.state, now.Add(c.next)
			record.Problem.Component = c.component
			b.save(process.Progress{Record: record, Release: true, Now: start})
		}

		resumed, err := b.store.Resume(b.Context(), "provisioner", now)
		if err != nil || resumed != 1 {
			b.Fatalf("resumed %d, %v; want 1", resumed, err)
		}

		for name, c := range cases {
			want := now.Add(c.next)
			if c.want {
				want = now
			}

			if diff := cmp.Diff(want, b.get(name).NextRun); diff != "" {
				b.Errorf("%s: %s: next run: -want +got\n%s", name, c.reason, diff)
			}
		}
	})
}
