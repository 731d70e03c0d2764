package orchestration

import (
	"container/heap"
	"time"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/environment/fleet"
	"github.com/environment-broker/environment-broker/storage/orchestrations"
)

// maxOccurrences limits how often the forecast of a wave moves targets to their next window. If the wave needs more, there is no
// forecast.
const maxOccurrences = 1000

// times is a heap of times.
type times []time.Time

func (t times) Len() int           { return len(t) }
func (t times) Less(i, j int) bool { return t[i].Before(t[j]) }
func (t times) Swap(i, j int)      { t[i], t[j] = t[j], t[i] }

// Push implements heap.Interface. It is never called, because simulations only replace times.
func (t *times) Push(any) {}

// Pop implements heap.Interface. Like Push, it is never called.
func (t *times) Pop() any { return nil }

// endInWindows returns when the orchestration ends if each upgrade takes the given time. An upgrade starts as soon as its wave
// has begun, its maintenance window or the owner's time has come, and a worker is free. Upgrades that cannot start before the
// deadline do not count. The result is zero if the end is too far away.
func endInWindows(orchestration environment.Orchestration, waves map[int]map[string]int, starts []orchestrations.Start,
	each time.Duration, now time.Time,
) time.Time {
	strategy, begin := orchestration.Parameters.Strategy, now
	if soaked := orchestration.SoakUntil; soaked.After(begin) {
		begin = soaked
	}

	end, last := begin, 0

	for number, stats := range waves {
		if workOf(stats).left() > 0 {
			last = max(last, number)
		}
	}

	for number := 1; number <= last; number++ {
		running := workOf(waves[number]).running

		pending := ofWave(starts, number)
		if running == 0 && len(pending) == 0 {
			continue
		}

		var simulated bool
		if end, simulated = endOfWave(strategy, pending, running, each, begin); !simulated {
			return time.Time{}
		}

		if begin = end; number < last && number <= len(strategy.Waves) {
			begin = end.Add(strategy.Waves[number-1].SoakTime())
		}
	}

	for _, chosen := range ofWave(starts, 0) {
		if chosen.NotBefore.Add(each).After(end) {
			end = chosen.NotBefore.Add(each)
		}
	}

	return end
}

// ofWave returns a copy of the starts that belong to the wave.
func ofWave(starts []orchestrations.Start, wave int) []orchestrations.Start {
	var found []orchestrations.Start

	for _, start := range starts {
		if start.Wave == wave {
			found = append(found, start)
		}
	}

	return found
}

// endOfWave simulates the workers and returns when the last upgrade of the wave ends. It returns false if the end is too far away.
func endOfWave(strategy fleet.Strategy, pending []orchestrations.Start, running int, each time.Duration, begin time.Time) (time.Time, bool) {
	free, end := make(times, strategy.Parallel.Workers), begin
	for i := range free {
		free[i] = begin
		if i < running {
			free[i] = begin.Add(each / 2) //nolint:mnd // a running upgrade counts as half done
			end = free[i]
		}
	}

	heap.Init(&free)

	for moves := 0; ; {
		next := earliest(pending)
		if next == nil {
			return end, true
		}

		at := next.NotBefore
		if free[0].After(at) {
			at = free[0]
		}

		switch {
		case !strategy.Deadline.IsZero() && !at.Before(strategy.Deadline):
			next.Count = 0
		case !next.NotAfter.IsZero() && !at.Before(next.NotAfter):
			if moves++; moves > maxOccurrences || !toNextWindow(next, at) {
				return time.Time{}, false
			}
		default:
			next.Count--
			free[0] = at.Add(each)

			if free[0].After(end) {
				end = free[0]
			}

			heap.Fix(&free, 0)
		}
	}
}

// earliest returns the earliest start that still has targets, or nil.
func earliest(pending []orchestrations.Start) *orchestrations.Start {
	var first *orchestrations.Start

	for i := range pending {
		if each := &pending[i]; each.Count > 0 && (first == nil || each.NotBefore.Before(first.NotBefore)) {
			first = each
		}
	}

	return first
}

// toNextWindow moves the start to the next occurrence of its window. It returns false if there is none.
func toNextWindow(start *orchestrations.Start, after time.Time) bool {
	window, err := fleet.ParseWindow(start.Window)
	if err != nil || window.IsZero() {
		return false
	}

	start.NotBefore, start.NotAfter = occurrence(window, after)

	return !start.NotBefore.IsZero()
}
