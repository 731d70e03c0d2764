package provisionerwait

import (
	"context"
	"sync"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/internal/clients/provisionerclient"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/program/lifecycle"
)

const (
	// spacing is the shortest time between two requests for one tenant. A tenant therefore sends at most 20 requests per second,
	// which cover up to 1,000 operations, and leaves the rest of the limit to other tenants. The spacing is also the maximum time
	// that a poll occupies a worker while its request fills up.
	spacing = 50 * time.Millisecond
	// A request may include an operation that is expected to poll again within 1/leadShare of its interval.
	leadShare = 4
	// lateness is how late an operation may fetch its result, for example because all workers are busy.
	lateness = 2 * time.Second
	// forgetAfter is how long the Poller keeps an overdue poll. By then, the operation has probably ended, or another replica
	// runs it.
	forgetAfter = time.Minute
	// pollsPerSecond is how many polls a replica schedules per second. Each poll costs the engine a claim and a commit, even if
	// it shares a request, and must leave room for other work.
	pollsPerSecond = 250
	// maxPolls bounds the memory of a Poller. When it is exceeded, all expected polls are dropped, which only causes additional
	// requests.
	maxPolls = 50_000
	// singleFor is how long the Poller sends requests for single operations after the Provisioner has rejected a request for
	// several.
	singleFor = 5 * time.Minute
)

// Statuses reads the states of several operations of one tenant in one request. provisionerclient.Client implements it.
type Statuses interface {
	// OperationStatuses returns one result for each ID. It accepts at most provisionerclient.MaxStatuses IDs.
	OperationStatuses(ctx context.Context, tenant string, operationIDs []string) map[string]provisionerclient.OperationResult
}

// Poller polls the Provisioner for the operations of this replica, up to 50 operations of one tenant in one request, within a
// limit of requests per second.
//
// A poll sends a request immediately if the limit and the spacing of its tenant permit it. The request includes other operations
// of the tenant that wait for a request or are expected to poll soon. Those operations find their results when they poll. A poll
// that has to wait joins the tenant's next request: it either occupies its worker for at most the spacing, or returns a time at
// which the operation must poll again.
//
// Tenants never share a request, because Kyma Provisioner makes the tenant of a request the owner of every runtime in it. Each
// replica has a separate Poller, whose state does not survive a restart. A Poller is safe for concurrent use.
type Poller struct {
	statuses Statuses
	limiter  *rate.Limiter

	mutex   sync.Mutex
	tenants map[string]*tenant
	// polls is the total number of polls, across all tenants.
	polls int
	// swept is the time of the last sweep.
	swept time.Time
	// singleUntil is the time until which each request contains only one operation, because the Provisioner has rejected a request
	// for several.
	singleUntil time.Time
}

// NewPoller returns a Poller that sends at most perSecond requests per second, with bursts of the same size.
func NewPoller(statuses Statuses, perSecond int) *Poller {
	return &Poller{
		statuses: statuses, limiter: rate.NewLimiter(rate.Limit(perSecond), perSecond), tenants: map[string]*tenant{}, swept: time.Now(),
	}
}

// Poll returns the state of an operation of the Provisioner. A positive wait means that the limit does not permit a request now:
// the operation must poll again after the wait, and the next request includes it. Poll also returns when the context ends. The
// request then continues if another poll is waiting for it.
func (p *Poller) Poll(ctx context.Context, tenant, operationID string) (status provisionerclient.Operation, wait time.Duration, err error) {
	for {
		batch, wait := p.join(ctx, tenant, operationID)

		switch {
		case batch != nil:
			result := p.await(ctx, batch, tenant, operationID)

			return result.Operation, 0, result.Err
		case wait > spacing:
			return provisionerclient.Operation{}, wait, nil
		}

		if err := lifecycle.Pause(ctx, clock.RealClock{}, wait); err != nil {
			p.forget(tenant, operationID)

			return provisionerclient.Operation{}, 0, canceled(err)
		}
	}
}

// Expect announces that an unfinished operation will poll again after the interval, so that a request for the same tenant can
// include the operation.
func (p *Poller) Expect(tenant, operationID string, interval time.Duration) {
	p.mutex.Lock()
	defer p.mutex.Unlock()

	p.add(tenant, operationID, &poll{due: time.Now().Add(interval), lead: interval / leadShare})
}

// Interval returns the shortest interval between two polls of one operation. It grows with the number of operations that are
// polling or expected to poll.
func (p *Poller) Interval() time.Duration {
	p.mutex.Lock()
	defer p.mutex.Unlock()

	return time.Duration(p.polls) * time.Second / pollsPerSecond
}

// join returns the batch that contains or will contain the state of the operation, and sends the batch if necessary. If no batch
// can be sent now, join returns the time until the tenant's next request, which includes the operation.
func (p *Poller) join(ctx context.Context, name, operationID string) (*batch, time.Duration) {
	p.mutex.Lock()
	defer p.mutex.Unlock()

	now := time.Now()
	p.sweep(now)

	var current *poll
	if tenant := p.tenants[name]; tenant != nil {
		current = tenant.polls[operationID]
	}

	if current == nil {
		current = &poll{due: now}
		p.add(name, operationID, current)
	}

	if current.batch != nil && current.batch.usable(now, current.lead+lateness) {
		current.batch.waiting++

		return current.batch, 0
	}

	current.batch = nil

	tenant, limit := p.tenants[name], p.maxPerRequest(now)
	if current.slot == nil || current.slot.used {
		current.slot = tenant.reserve(p.limiter, limit, now)
	}

	if wait := current.slot.at.Sub(now); wait > 0 {
		return nil, wait
	}

	return p.send(ctx, name, tenant.choose(operationID, limit, now), now), 0
}

// send starts the request for the given operations and returns its batch. The request runs in its own goroutine, because the poll
// that started it may stop waiting before the others do. The request carries the trace of that poll. The caller holds the mutex.
func (p *Poller) send(ctx context.Context, name string, operationIDs []string, now time.Time) *batch {
	tenant := p.tenants[name]
	request, cancel := context.WithCancel(context.WithoutCancel(ctx))
	sent := &batch{cancel: cancel, done: make(chan struct{}), waiting: 1}

	slot := tenant.polls[operationIDs[0]].slot
	slot.used, slot.at = true, now

	for _, id := range operationIDs {
		tenant.polls[id].batch = sent
	}

	go func() {
		defer cancel()

		results := p.statuses.OperationStatuses(request, name, operationIDs)

		p.mutex.Lock()
		defer p.mutex.Unlock()

		if sent.end(results) {
			p.singleUntil = time.Now().Add(singleFor)
		}
	}()

	return sent
}

// await waits until the batch has ended and returns the operation's result, or an error if the context ends first.
func (p *Poller) await(ctx context.Context, batch *batch, name, operationID string) provisionerclient.OperationResult {
	select {
	case <-batch.done:
	case <-ctx.Done():
	}

	p.mutex.Lock()
	defer p.mutex.Unlock()

	batch.leave()

	// Remove the poll, so that its result is used only once. A newer poll, which the Poller may already expect, stays.
	if tenant := p.tenants[name]; tenant != nil && tenant.polls[operationID] != nil && tenant.polls[operationID].batch == batch {
		p.remove(tenant, operationID)
	}

	if batch.ended.IsZero() {
		return provisionerclient.OperationResult{Err: canceled(ctx.Err())}
	}

	return batch.results[operationID]
}

// forget removes the poll of an operation that no longer waits for a request.
func (p *Poller) forget(name, operationID string) {
	p.mutex.Lock()
	defer p.mutex.Unlock()

	if tenant := p.tenants[name]; tenant != nil && tenant.polls[operationID] != nil {
		p.remove(tenant, operationID)
	}
}

// canceled returns the error of a poll whose context has ended.
func canceled(cause error) error {
	return failure.Wrap(failure.Transient, cause, "the poll of the Provisioner was canceled").WithReason("", failure.ComponentProvisioner)
}

// maxPerRequest returns the maximum number of operations in a request. It is 1 for a while after the Provisioner has rejected a
// request for several operations.
func (p *Poller) maxPerRequest(now time.Time) int {
	if now.Before(p.singleUntil) {
		return 1
	}

	return provisionerclient.MaxStatuses
}

// add sets the poll of an operation. If there are already maxPolls polls, add first drops all of them. The caller holds the
// mutex.
func (p *Poller) add(name, operationID string, added *poll) {
	if p.polls >= maxPolls {
		p.tenants, p.polls = map[string]*tenant{}, 0
	}

	target := p.tenants[name]
	if target == nil {
		target = &tenant{polls: map[string]*poll{}}
		p.tenants[name] = target
	}

	if target.polls[operationID] == nil {
		p.polls++
	}

	target.polls[operationID] = added
}

// remove removes a poll, which must exist, and frees its place in the slot for which it waits. The caller holds the mutex.
func (p *Poller) remove(tenant *tenant, operationID string) {
	if slot := tenant.polls[operationID].slot; slot != nil && !slot.used {
		slot.polls--
	}

	delete(tenant.polls, operationID)
	p.polls--
}

// sweep removes overdue polls, and tenants without polls, at most once a minute. The caller holds the mutex.
func (p *Poller) sweep(now time.Time) {
	if now.Sub(p.swept) < forgetAfter {
		return
	}

	p.swept = now

	for name, tenant := range p.tenants {
		for id, expected := range tenant.polls {
			if now.Sub(expected.next()) >= forgetAfter {
				p.remove(tenant, id)
			}
		}

		if len(tenant.polls) == 0 {
			delete(p.tenants, name)
		}
	}
}
