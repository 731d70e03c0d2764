package crashtest

import (
	"context"
	"time"

	"github.com/environment-broker/environment-broker/process"
)

// store is the engine's store at the end of a replica's line. It tells the witness what was written.
type store struct {
	process.Store

	line    *Line
	witness *witness
}

// Due implements process.Store. It reads only: to die there is to die before the claim.
func (s store) Due(ctx context.Context, kinds []string, now time.Time) ([]process.Due, error) {
	if err := s.line.stand(); err != nil {
		return nil, err
	}

	return s.Store.Due(ctx, kinds, now)
}

// Claim is a point only where it brings work, and then when that is done: to die before a claim is to die after the write before it.
func (s store) Claim(ctx context.Context, claim process.Claim) ([]process.Claimed, error) {
	if err := s.line.stand(); err != nil {
		return nil, err
	}

	claimed, err := s.Store.Claim(ctx, claim)
	if err != nil || len(claimed) == 0 {
		return claimed, err
	}

	s.witness.claimed(s.line, claimed)

	mode := s.line.faults.next("Claim", DiesAfter, AnswerLost, Freezes)
	if mode == Freezes {
		s.line.stop(freeze)
	}

	if err := s.line.back(mode, nil); err != nil {
		return nil, err
	}

	return claimed, nil
}

// Renew implements process.Store.
func (s store) Renew(ctx context.Context, renewal process.Renewal) (map[string]process.State, error) {
	var states map[string]process.State

	err := s.line.pass(ctx, "Renew", func(ctx context.Context) error {
		var err error

		states, err = s.Store.Renew(ctx, renewal)

		return err
	})
	if err != nil {
		return nil, err
	}

	return states, nil
}

// Save implements process.Store.
func (s store) Save(ctx context.Context, progress process.Progress) (process.State, error) {
	var state process.State

	err := s.line.pass(ctx, "Save", func(ctx context.Context) error {
		var err error

		state, err = s.Store.Save(ctx, progress)
		if err == nil {
			s.witness.saved(s.line, progress)
		}

		return err
	})
	if err != nil {
		return "", err
	}

	return state, nil
}
