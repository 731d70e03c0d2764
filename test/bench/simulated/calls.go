package simulated

import "sync/atomic"

// Calls has the numbers of the broker's calls by kind.
type Calls struct {
	// Orders are provisionRuntime, Statuses runtimeOperationStatus, Feeds operationChanges, Kubeconfigs runtimeStatus.
	Orders, Statuses, Feeds, Kubeconfigs int64
	// Probes are the requests to the API servers of runtimes.
	Probes int64
	// Changes is the number of changes that the feed has reported.
	Changes int64
}

// All returns the total number of calls.
func (c Calls) All() int64 { return c.Orders + c.Statuses + c.Feeds + c.Kubeconfigs + c.Probes }

// counters count calls. They are safe for concurrent use.
type counters struct {
	orders, statuses, feeds, kubeconfigs, probes, changes atomic.Int64
}

func (c *counters) read() Calls {
	return Calls{
		Orders: c.orders.Load(), Statuses: c.statuses.Load(), Feeds: c.feeds.Load(), Kubeconfigs: c.kubeconfigs.Load(),
		Probes: c.probes.Load(), Changes: c.changes.Load(),
	}
}
