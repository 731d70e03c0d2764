package orchestration

import (
	"time"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage/orchestrations"
)

// Forecast contains the progress of an orchestration and of its waves, and the predicted end of the orchestration.
type Forecast struct {
	process.Forecast

	// Waves contains the progress of each wave in percent, from 0 to 100.
	Waves map[int]int
}

// Durations provides the median (likely) and the 95th percentile (late) of the durations of past operations of a kind. Both are 0
// if there are none. estimate.Estimator implements it.
type Durations interface {
	Usual(kind string) (likely, late time.Duration)
}

// ForecastOf predicts the end of an orchestration from the durations of past upgrades, its limits and its soak times: Likely if
// each upgrade takes the median, and Latest if each takes the 95th percentile. waves contains the number of targets for each wave
// and current state. starts contains the times at which unfinished targets can start, and is needed only if NeedsStarts returns
// true. A running upgrade counts as half done. The end is unknown while the orchestration is stopped or not applied, and if no
// upgrade of the kind has succeeded yet.
func ForecastOf(orchestration environment.Orchestration, waves map[int]map[string]int, starts []orchestrations.Start,
	durations Durations, now time.Time,
) Forecast {
	forecast := Forecast{Waves: map[int]int{}}

	var total work

	for number, stats := range waves {
		if wave := workOf(stats); wave.all > 0 {
			forecast.Waves[number] = wave.percent()
			total = total.plus(wave)
		}
	}

	if orchestration.State.Ended() || total.all == 0 {
		return forecast
	}

	forecast.Percent = min(total.percent(), 99) //nolint:mnd // the orchestration has not ended

	likely, late := durations.Usual(orchestration.Kind)
	if likely == 0 || !runs(orchestration.State) {
		return forecast
	}

	end := func(each time.Duration) time.Time {
		if NeedsStarts(orchestration) {
			return endOfStarts(orchestration, starts, each, now)
		}

		return endOf(orchestration, waves, each, now)
	}

	if first, last := end(likely), end(late); !first.IsZero() && !last.IsZero() {
		forecast.Likely, forecast.Latest = first, last

		if last.Before(first) { // fewer slow upgrades than fast ones start before a deadline
			forecast.Latest = first
		}
	}

	return forecast
}

// NeedsStarts reports whether the end depends on the individual targets: on their maintenance windows, on the times that owners have
// chosen, or on limits of their regions and providers.
func NeedsStarts(orchestration environment.Orchestration) bool {
	strategy := orchestration.Parameters.Strategy

	return strategy.MaintenanceWindow || !strategy.Deadline.IsZero() ||
		strategy.Parallel.WorkersPerRegion > 0 || strategy.Parallel.WorkersPerProvider > 0
}

// PercentOf returns the progress of an unfinished orchestration in percent, from 0 to 99. stats contains the number of targets
// for each state.
func PercentOf(stats map[string]int) int {
	total := workOf(stats)
	if total.all == 0 {
		return 0
	}

	return min(total.percent(), 99) //nolint:mnd // the orchestration has not ended
}

// runs reports whether an orchestration in this state starts upgrades.
func runs(state environment.OrchestrationState) bool {
	return state == environment.OrchestrationInProgress || state == environment.OrchestrationRetrying
}

// endOf returns when the orchestration ends if each upgrade takes the given time. It assumes that every target can start as soon
// as a worker is free.
func endOf(orchestration environment.Orchestration, waves map[int]map[string]int, each time.Duration, now time.Time) time.Time {
	strategy, end, last := orchestration.Parameters.Strategy, now, 0

	for _, earliest := range []time.Time{strategy.ScheduleTime, orchestration.SoakUntil} {
		if earliest.After(end) {
			end = earliest
		}
	}

	for number, stats := range waves {
		if workOf(stats).left() > 0 {
			last = max(last, number)
		}
	}

	for number := 1; number <= last; number++ {
		wave := workOf(waves[number])
		if wave.left() == 0 {
			continue
		}

		end = end.Add(wave.takes(each, strategy.Parallel.Workers))

		if number < last && number <= len(strategy.Waves) {
			end = end.Add(strategy.Waves[number-1].SoakTime())
		}
	}

	return end
}

// work counts the targets of a wave: the ones that have not started, the ones that are running, and all targets. It does not count
// targets that were left out.
type work struct{ pending, running, all int }

func workOf(stats map[string]int) work {
	counted := work{running: stats[string(process.InProgress)] + stats[string(process.Canceling)]}
	counted.pending = unfinished(stats) - counted.running

	for state, count := range stats {
		if state != string(environment.TargetLeftOut) {
			counted.all += count
		}
	}

	return counted
}

func (w work) plus(other work) work {
	return work{w.pending + other.pending, w.running + other.running, w.all + other.all}
}

// left returns the number of targets that have not ended.
func (w work) left() int { return w.pending + w.running }

// percent returns the percentage of the work that is done. A running upgrade counts as half done.
func (w work) percent() int {
	return (100*(w.all-w.left()) + 50*w.running) / w.all //nolint:mnd // percent
}

// takes returns how long the unfinished targets take if each upgrade takes the given time. If a target is pending, the result is
// at least the time of one upgrade.
func (w work) takes(each time.Duration, workers int) time.Duration {
	upgrades := float64(w.pending) + float64(w.running)/2 //nolint:mnd // half
	parallel := float64(min(workers, w.left()))

	if w.pending > 0 {
		return time.Duration(max(upgrades/parallel, 1) * float64(each))
	}

	return time.Duration(upgrades / parallel * float64(each))
}
