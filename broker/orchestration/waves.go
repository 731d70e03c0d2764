package orchestration

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/dustin/go-humanize/english"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/orchestrations"
)

// maxCommonError is the maximum length of an error in the description of an orchestration, in characters.
const maxCommonError = 300

// step updates the state and the wave of the orchestration, and reports whether upgrades may start. If too many upgrades have
// failed, the failure gate stops the orchestration. If the current wave has ended and its soak time has passed, the next wave
// begins.
func (c Conductor) step(ctx context.Context, tx storage.Tx, orchestration *environment.Orchestration) (starts bool, err error) {
	if orchestration.State.Stopped() {
		return false, nil
	}

	orchestration.State = environment.OrchestrationInProgress

	strategy := orchestration.Parameters.Strategy
	if strategy.FailureGate == nil && len(strategy.Waves) == 0 {
		return true, nil
	}

	counts, err := c.Orchestrations.Wave(ctx, tx, orchestration.ID, orchestration.Wave)
	if err != nil {
		return false, err
	}

	// Once no target is pending, the gate has nothing left to stop.
	if gate := strategy.FailureGate; gate != nil && counts.Pending > 0 && gate.Closed(counts.Failed, counts.Total) {
		common, err := c.Orchestrations.CommonFailure(ctx, tx, orchestration.ID)
		if err != nil {
			return false, err
		}

		orchestration.State, orchestration.Description = environment.OrchestrationGated, describeGate(counts, common)

		return false, nil
	}

	return true, c.enterWave(ctx, tx, orchestration, counts)
}

// enterWave starts the soak time when the current wave has ended, and the next wave when the soak time has passed.
func (c Conductor) enterWave(ctx context.Context, tx storage.Tx, orchestration *environment.Orchestration, counts orchestrations.WaveCounts) error {
	now, wave, soakUntil := c.Clock.Now(), orchestration.Wave, orchestration.SoakUntil

	switch {
	case counts.Next == 0:
		return nil
	case counts.Unfinished > 0: // a retry may also interrupt the soak time
		soakUntil = time.Time{}
	case soakUntil.IsZero():
		soakUntil = now.Add(soakTime(*orchestration, counts))
	}

	if !soakUntil.IsZero() && !soakUntil.After(now) {
		wave, soakUntil = counts.Next, time.Time{}
	}

	if wave == orchestration.Wave && soakUntil.Equal(orchestration.SoakUntil) {
		return nil
	}

	orchestration.Wave, orchestration.SoakUntil = wave, soakUntil

	return c.Orchestrations.SetWave(ctx, tx, orchestration.ID, wave, soakUntil, now)
}

// soakTime returns the soak time of the current wave, or 0 if all of its targets were left out or canceled, so that nothing was
// upgraded.
func soakTime(orchestration environment.Orchestration, counts orchestrations.WaveCounts) time.Duration {
	waves := orchestration.Parameters.Strategy.Waves
	if counts.Upgraded == 0 || orchestration.Wave > len(waves) {
		return 0
	}

	return waves[orchestration.Wave-1].SoakTime()
}

// describeGate describes why the failure gate has stopped an orchestration.
func describeGate(counts orchestrations.WaveCounts, common orchestrations.CommonFailure) string {
	text := fmt.Sprintf("Stopped by the failure gate: %d of %s failed", counts.Failed, english.Plural(counts.Total, "upgrade", ""))
	if common.Count == 0 {
		return text
	}

	message := []rune(common.Message)
	if len(message) > maxCommonError {
		message = append(message[:maxCommonError-1], '…')
	}

	where := strings.Trim(common.Reason+", "+common.Component, ", ")

	if common.Count == counts.Failed {
		text += ": "
	} else {
		text += fmt.Sprintf(". The most common error, in %d of them: ", common.Count)
	}

	return fmt.Sprintf("%s%s (%s)", text, cmp.Or(string(message), "no message"), cmp.Or(where, "no reason"))
}

// describeProgress describes a running orchestration.
func describeProgress(orchestration environment.Orchestration, stats map[string]int) string {
	text := describe(stats)

	if last := len(orchestration.Parameters.Strategy.Waves) + 1; last > 1 {
		text = fmt.Sprintf("Wave %d of %d: %s", orchestration.Wave, last, text)
	}

	if !orchestration.SoakUntil.IsZero() {
		text += "; the next wave begins at " + orchestration.SoakUntil.UTC().Format(time.RFC3339)
	}

	return text
}
