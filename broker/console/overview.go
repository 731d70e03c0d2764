package console

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/environment-broker/environment-broker/broker/console/views"
	"github.com/environment-broker/environment-broker/broker/operator"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
	"github.com/environment-broker/environment-broker/internal/operatorapi/operatorserver"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage/operations"
)

const (
	// overviewLifetime is how long at most a replica reuses the data of the overview.
	overviewLifetime = 5 * time.Second
	// poolLifetime is how long at most a replica reuses the counts of cloud accounts. It is longer than overviewLifetime, because
	// counting accounts requires calls to Gardener.
	poolLifetime = time.Minute
	// failuresSince and maxFailures limit the failures that the overview groups: at most maxFailures failed operations, accepted at
	// most failuresSince ago.
	failuresSince = 24 * time.Hour
	maxFailures   = 1000
	maxGroups     = 8
	stuckRows     = 10
)

// cached keeps a value for some time, so that many viewers cause no more queries than a single viewer. It is safe for concurrent
// use.
type cached[Value any] struct {
	mutex sync.Mutex
	value Value
	until time.Time
}

// get returns the value. The first call in each period of the given lifetime calls read to renew the value. The periods of all replicas
// begin at the same times, multiples of lifetime. Concurrent calls wait for the new value. Errors are not kept.
func (c *cached[Value]) get(now time.Time, lifetime time.Duration, read func() (Value, error)) (Value, error) {
	c.mutex.Lock()
	defer c.mutex.Unlock()

	if now.Before(c.until) {
		return c.value, nil
	}

	value, err := read()
	if err == nil {
		c.value, c.until = value, now.Truncate(lifetime).Add(lifetime)
	}

	return value, err
}

// overview shows the state of all instances and operations.
func (c *console) overview(r *http.Request) (result, error) {
	live := c.address(r, overviewTopic, "true")

	now := c.API.Clock.Now()

	shown, err := c.numbers.get(now, overviewLifetime, func() (views.Overview, error) { return c.readOverview(r.Context(), now) })
	if err != nil {
		return result{}, err
	}

	if c.API.Pool != nil {
		shown.Pool, err = c.pool.get(now, poolLifetime, func() ([]views.PoolType, error) { return c.readPool(r.Context()) })
		if err != nil {
			shown.PoolProblem = textOf(err)
		}
	}

	for _, system := range c.API.StatusReport().Systems {
		if system.State != "closed" {
			shown.Systems = append(shown.Systems, system)
		}
	}

	shown.Now = now

	return result{page: views.Page{Title: "Overview", Section: "/console/", Live: live, Body: views.OverviewPage(shown)}}, nil
}

// readOverview reads the data of the overview from the database. All its queries use indexes.
func (c *console) readOverview(ctx context.Context, now time.Time) (views.Overview, error) {
	var shown views.Overview

	counts, err := c.API.StateCounts(ctx)
	if err != nil {
		return shown, err
	}

	for _, state := range operator.RuntimeStates() {
		shown.States = append(shown.States, views.Count{Name: state, Number: counts[operatorapi.RuntimeState(state)]})
		shown.Total += counts[operatorapi.RuntimeState(state)]
	}

	failed, err := c.API.Operations.List(ctx, operations.Filter{States: []process.State{process.Failed}, Since: now.Add(-failuresSince), Limit: maxFailures})
	if err != nil {
		return shown, err
	}

	shown.Failures = failuresOf(failed)

	stuck, err := c.API.OperationList(ctx, operatorserver.Query{Values: url.Values{"stuck": {"true"}}, Page: operatorserver.Page{Size: stuckRows}})
	shown.Stuck = stuck.Data

	for _, kind := range environment.Kinds() {
		if likely, late := c.API.Estimator.Usual(kind); late > 0 {
			shown.Durations = append(shown.Durations, views.Span{Name: kind, Likely: likely, Late: late})
		}
	}

	return shown, err
}

// failuresOf counts failed operations by component and reason. It returns the maxGroups most frequent groups, the most frequent
// first.
func failuresOf(failed []process.Record) []views.Count {
	numbers := map[string]int{}
	for _, record := range failed {
		numbers[cmp.Or(strings.Trim(record.Problem.Component+": "+record.Problem.Reason, ": "), "unknown")]++
	}

	groups := make([]views.Count, 0, len(numbers))
	for name, number := range numbers {
		groups = append(groups, views.Count{Name: name, Number: number})
	}

	slices.SortFunc(groups, func(a, b views.Count) int { return cmp.Or(b.Number-a.Number, strings.Compare(a.Name, b.Name)) })

	return groups[:min(len(groups), maxGroups)]
}

// readPool counts the cloud accounts by type and state.
func (c *console) readPool(ctx context.Context) ([]views.PoolType, error) {
	all, err := c.API.Pool.Overview(ctx)
	if err != nil {
		return nil, err
	}

	var types []views.PoolType

	for _, account := range all {
		at := slices.IndexFunc(types, func(each views.PoolType) bool { return each.Name == account.Type })
		if at < 0 {
			types = append(types, views.PoolType{Name: account.Type, States: map[string]int{}})
			at = len(types) - 1
		}

		types[at].States[string(account.State)]++
	}

	return types, nil
}
