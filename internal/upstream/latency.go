package upstream

import (
	"slices"
	"time"
)

// recentCalls is the number of calls from which a Latency is computed.
const recentCalls = 256

// Latency summarizes the durations of the most recent calls of this replica. Each duration includes reading the response to its
// end. Failed and timed-out calls count; canceled calls do not.
type Latency struct {
	// Calls is the number of these calls, at most 256. If it is 0, the other fields are 0 too.
	Calls int
	// Median and P95 are the durations that 50 % and 95 % of the calls did not exceed.
	Median, P95 time.Duration
}

// durations is a ring buffer with the durations of the most recent calls. The mutex of the System guards it.
type durations struct {
	ring [recentCalls]time.Duration
	// count is the number of calls so far. It can exceed the size of the ring.
	count int
}

func (d *durations) add(took time.Duration) {
	d.ring[d.count%recentCalls] = took
	d.count++
}

// latency computes the Latency from a sorted copy of the ring.
func (d *durations) latency() Latency {
	recent := slices.Clone(d.ring[:min(d.count, recentCalls)])
	if len(recent) == 0 {
		return Latency{}
	}

	slices.Sort(recent)

	const half, most = 50, 95

	return Latency{Calls: len(recent), Median: recent[rank(len(recent), half)], P95: recent[rank(len(recent), most)]}
}

// rank returns the index of a percentile in a sorted list with count values. At least the given percentage of the values do not
// exceed the value at this index.
func rank(count, percentage int) int { return (count*percentage+99)/100 - 1 }
