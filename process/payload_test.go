package process_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/process"
)

// saveRecorder is a store that records for each save whether the stored payload is kept.
type saveRecorder struct {
	process.Store

	kept []bool
}

func (n *saveRecorder) Save(ctx context.Context, progress process.Progress) (process.State, error) {
	n.kept = append(n.kept, progress.KeepPayload)

	return n.Store.Save(ctx, progress)
}

// TestPayloadIsWrittenWhenItChanges checks that the engine does not encrypt and write unchanged data again.
func TestPayloadIsWrittenWhenItChanges(t *testing.T) {
	inBubble(t, func(b *fixture) {
		idle := func(name string) *step { return scripted(name, func(int) (time.Duration, error) { return 0, nil }) }
		store := &saveRecorder{Store: b.store}
		b.start(b.engine(store, stage("first", succeeding("First")), stage("idle", idle("Idle")), stage("second", succeeding("Second")), stage("end", idle("End"))))
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
