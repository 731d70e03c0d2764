package process_test

import (
	"context"
	"testing"

	"github.com/environment-broker/environment-broker/process"
)

// interrupted is a store whose engine is told to stop while a claim is under way: after the commit, before the answer.
type interrupted struct {
	process.Store

	stop context.CancelFunc
}

func (i interrupted) Claim(ctx context.Context, claim process.Claim) ([]process.Claimed, error) {
	claimed, err := i.Store.Claim(context.WithoutCancel(ctx), claim)

	i.stop()

	if ctx.Err() != nil {
		return nil, ctx.Err() // the answer does not reach who has left
	}

	return claimed, err
}

func TestWhatIsClaimedDuringAStopIsHandedBack(t *testing.T) {
	inBubble(t, func(b *bench) {
		b.accept("one", "instance")

		ctx, stop := context.WithCancel(b.Context())
		untouched := traced("Untouched")

		if err := b.engine(interrupted{b.store, stop}, stage("only", untouched)).Run(ctx); err != nil {
			b.Fatal(err)
		}

		if record := b.get("one"); record.Lease.Owner != "" || untouched.runs() != 0 {
			b.Errorf("the operation is kept by %q after %d runs: others have to wait until the lease is over",
				record.Lease.Owner, untouched.runs())
		}

		b.start(b.engine(b.store, stage("only", untouched)))

		if record := b.await("one"); record.State != process.Succeeded {
			b.Errorf("another replica ends it as %s", record.State)
		}
	})
}
