package simulated

import "sync/atomic"

// Calls are how often the broker called.
type Calls struct {
	// Orders are provisionRuntime, Statuses runtimeOperationStatus, Feeds operationChanges, Kubeconfigs runtimeStatus.
	Orders, Statuses, Feeds, Kubeconfigs int64
	// Probes are the requests to the API servers of runtimes.
	Probes int64
	// Changes is how many changes the feed has told.
	Changes int64
}

// All is the number of calls, whatever for.
func (c Calls) All() int64 { return c.Orders + c.Statuses + c.Feeds + c.Kubeconfigs + c.Probes }

// Since are the calls that came after the earlier ones.
func (c Calls) Since(earlier Calls) Calls {
	return Calls{
		Orders:      c.Orders - earlier.Orders,
		Statuses:    c.Statuses - earlier.Statuses,
		Feeds:       c.Feeds - earlier.Feeds,
		Kubeconfigs: c.Kubeconfigs - earlier.Kubeconfigs,
		Probes:      c.Probes - earlier.Probes,
		Changes:     c.Changes - earlier.Changes,
	}
}

// counters count while calls come.
type counters struct {
	orders, statuses, feeds, kubeconfigs, probes, changes atomic.Int64
}

func (c *counters) read() Calls {
	return Calls{
		Orders: c.orders.Load(), Statuses: c.statuses.Load(), Feeds: c.feeds.Load(), Kubeconfigs: c.kubeconfigs.Load(),
		Probes: c.probes.Load(), Changes: c.changes.Load(),
	}
}
