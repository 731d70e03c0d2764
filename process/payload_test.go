package process_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/process"
)

// noting is a store that records for each save whether it keeps the stored payload.
type noting struct {
	process.Store

	kept []bool
}

func (n *noting) Save(ctx context.Context, progress process.Progress) (process.State, error) {
	n.kept = append(n.kept, progress.KeepPayload)

	return n.Store.Save(ctx, progress)
}

// TestPayloadIsWrittenWhenItChanges checks that unchanged data is not sealed and written again.
func TestPayloadIsWrittenWhenItChanges(t *testing.T) {
	inBubble(t, func(b *bench) {
		idle := func(name string) *step { return failing(name, func(int) (time.Duration, error) { return 0, nil }) }
		store := &noting{Store: b.store}
		b.start(b.engine(store, stage("first", traced("First")), stage("idle", idle("Idle")), stage("second", traced("Second")), stage("end", idle("End"))))
		b.accept("op", "instance")

		record := b.await("op")
		if diff := cmp.Diff([]string{"First", "Second"}, b.trace(record)); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}

		if diff := cmp.Diff([]bool{false, true, false, true}, store.kept); diff != "" {
			t.Errorf("an unchanged payload is not written (-want +got):\n%s", diff)
		}
	})
}
