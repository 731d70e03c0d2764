package orchestration

import (
	"container/heap"
	"slices"
	"time"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/environment/fleet"
	"github.com/environment-broker/environment-broker/storage/orchestrations"
)

// maxOccurrences limits how often the forecast of a wave moves targets to their next window. If the wave needs more, there is no
// forecast.
const maxOccurrences = 1000

// times is a heap of the times at which workers become free.
type times []time.Time

func (t times) Len() int           { return len(t) }
func (t times) Less(i, j int) bool { return t[i].Before(t[j]) }
func (t times) Swap(i, j int)      { t[i], t[j] = t[j], t[i] }

// Push implements heap.Interface. It is never called, because the simulation only replaces elements of the heap.
func (t *times) Push(any) {}

// Pop implements heap.Interface. Like Push, it is never called.
func (t *times) Pop() any { return nil }

// endOfStarts returns when the orchestration ends if each upgrade takes the given time. An upgrade starts as soon as its wave has
// begun, its maintenance window or the owner's time has come, and a worker is free. Upgrades that cannot start before the
// deadline do not count. The result is zero if the simulation reaches maxOccurrences, or if a window has no further occurrence.
func endOfStarts(orchestration environment.Orchestration, starts []orchestrations.Start, each time.Duration, now time.Time) time.Time {
	strategy, begin := orchestration.Parameters.Strategy, now
	if soaked := orchestration.SoakUntil; soaked.After(begin) {
		begin = soaked
	}

	end, last, chosen := begin, 0, ofWave(starts, 0)

	for _, start := range starts {
		last = max(last, start.Wave)
	}

	// Running upgrades that no wave waits for occupy workers nevertheless.
	busy := slices.DeleteFunc(slices.Clone(chosen), func(start orchestrations.Start) bool { return !start.Running })
	free := now.Add(each / 2) //nolint:mnd // a running upgrade counts as half done

	for number := 1; number <= last; number++ {
		targets := ofWave(starts, number)
		if len(targets) == 0 {
			continue
		}

		var simulated bool
		if end, simulated = endOfWave(strategy, append(targets, busy...), each, begin, free); !simulated {
			return time.Time{}
		}

		if begin = end; number < last && number <= len(strategy.Waves) {
			begin = end.Add(strategy.Waves[number-1].SoakTime())
		}
	}

	for _, start := range chosen {
		ends := start.NotBefore.Add(each)
		if start.Running {
			ends = free
		}

		if ends.After(end) {
			end = ends
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

// queue is a group of upgrades that have not begun in the simulation. Each upgrade occupies one worker of every limit in workers.
type queue struct {
	orchestrations.Start

	workers []*times
}

// next returns when the next upgrade of the queue can start.
func (q queue) next() time.Time {
	at := q.NotBefore

	for _, free := range q.workers {
		if first := (*free)[0]; first.After(at) {
			at = first
		}
	}

	return at
}

// start removes one upgrade from the queue and lets it occupy a worker of each limit until the given time.
func (q *queue) start(until time.Time) {
	q.Count--

	for _, free := range q.workers {
		(*free)[0] = until
		heap.Fix(free, 0)
	}
}

// queues returns the queues of a wave. All workers are free from begin.
func queues(limits fleet.Parallel, starts []orchestrations.Start, begin time.Time) []queue {
	type place struct{ limit, name string }

	free := map[place]*times{}
	workers := func(of place, limit int) *times {
		if free[of] == nil {
			all := times(slices.Repeat([]time.Time{begin}, min(limit, limits.Workers)))
			free[of] = &all
		}

		return free[of]
	}

	waiting := make([]queue, 0, len(starts))

	for _, start := range starts {
		each := queue{start, []*times{workers(place{}, limits.Workers)}}

		if limit := limits.WorkersPerProvider; limit > 0 {
			each.workers = append(each.workers, workers(place{"provider", start.Provider}, limit))
		}

		if limit := limits.WorkersPerRegion; limit > 0 {
			each.workers = append(each.workers, workers(place{"region", start.Region}, limit))
		}

		waiting = append(waiting, each)
	}

	return waiting
}

// endOfWave simulates the workers and returns when the last upgrade of the wave ends. Running upgrades of wave 0 occupy workers until
// free, but the wave does not wait for them. It returns false if the simulation reaches maxOccurrences, or if a window has no further
// occurrence.
func endOfWave(strategy fleet.Strategy, targets []orchestrations.Start, each time.Duration, begin, free time.Time) (time.Time, bool) {
	waiting := queues(*strategy.Parallel, targets, begin)
	end := occupy(waiting, each, begin, free)

	for moves := 0; ; {
		next := earliest(waiting)
		if next == nil {
			return end, true
		}

		at := next.next()

		switch {
		case !strategy.Deadline.IsZero() && !at.Before(strategy.Deadline):
			next.Count = 0
		case !next.NotAfter.IsZero() && !at.Before(next.NotAfter):
			if moves++; moves > maxOccurrences || !toNextWindow(&next.Start, at) {
				return time.Time{}, false
			}
		default:
			next.start(at.Add(each))

			if at.Add(each).After(end) {
				end = at.Add(each)
			}
		}
	}
}

// occupy lets the running upgrades occupy workers, and returns when the last one that the wave waits for ends.
func occupy(waiting []queue, each time.Duration, begin, free time.Time) time.Time {
	end := begin

	for i := range waiting {
		for waiting[i].Running && waiting[i].Count > 0 {
			switch {
			case waiting[i].Wave > 0:
				end = begin.Add(each / 2) //nolint:mnd // a running upgrade counts as half done
				waiting[i].start(end)
			case free.After(begin):
				waiting[i].start(free)
			default:
				waiting[i].Count = 0
			}
		}
	}

	return end
}

// earliest returns the queue whose next upgrade can start first, or nil if no upgrades are left. Of several queues that can start
// at the same time, it returns the one that has waited longest.
func earliest(waiting []queue) *queue {
	var (
		first *queue
		start time.Time
	)

	for i := range waiting {
		each := &waiting[i]
		if each.Count == 0 {
			continue
		}

		at := each.next()
		if first == nil || at.Before(start) || at.Equal(start) && each.NotBefore.Before(first.NotBefore) {
			first, start = each, at
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
