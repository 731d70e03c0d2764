package auditlog_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/environment-broker/environment-broker/internal/audit/chain"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/storage/auditlog"
)

var errCollector = errors.New("the collector does not respond")

// collector records the IDs that it receives. While failures is positive, each call records its batch but returns an error.
type collector struct {
	got      []string
	failures int
	largest  int
}

func (c *collector) Send(_ context.Context, records []chain.Record) error {
	c.largest = max(c.largest, len(records))

	for _, record := range records {
		c.got = append(c.got, record.ID)
	}

	if c.failures > 0 {
		c.failures--

		return errCollector
	}

	return nil
}

func TestDelivery(t *testing.T) {
	onEach(t, 0, func(b fixture) {
		clock := clocktesting.NewFakeClock(began.Add(time.Hour))
		target := &collector{failures: 1}
		first, second := b.chainer(clock), b.chainer(clock)

		deliveryOf := func(chainer *auditlog.Chainer) *auditlog.Delivery {
			return b.entries.Delivery(auditlog.DeliveryOptions{
				Collector: target, Chainer: chainer, Clock: clock, Log: logging.Discard(), Metrics: prometheus.NewRegistry(),
			})
		}
		one, two := deliveryOf(first), deliveryOf(second)

		b.add(1, auditlog.Entry{Action: auditlog.ActionAccess})
		b.add(2, auditlog.Entry{Action: auditlog.ActionAccess})
		b.pass(first)
		b.pass(second)

		if err := two.Deliver(b.Context()); err != nil || len(target.got) != 0 {
			b.Errorf("a replica without the lease delivers %v, %v", target.got, err)
		}

		if err := one.Deliver(b.Context()); !errors.Is(err, errCollector) {
			b.Errorf("want the error of the collector, got %v", err)
		}

		if err := one.Deliver(b.Context()); err != nil || len(target.got) != 2 {
			b.Errorf("want no delivery during the pause after a failure, got %v, %v", target.got, err)
		}

		clock.Step(5 * time.Second)

		if err := one.Deliver(b.Context()); err != nil {
			b.Error(err)
		}

		b.add(3, auditlog.Entry{Action: auditlog.ActionAccess})
		clock.Step(time.Minute) // the first replica was killed
		b.pass(second)

		if err := two.Deliver(b.Context()); err != nil {
			b.Error(err)
		}

		if diff := cmp.Diff([]string{"e01", "e02", "e01", "e02", "e03"}, target.got); diff != "" {
			b.Errorf("unconfirmed records are repeated, confirmed ones are not: -want +got\n%s", diff)
		}
	})
}

// TestDeliveryOfManyRecords delivers more records than fit into one batch.
func TestDeliveryOfManyRecords(t *testing.T) {
	onEach(t, 0, func(b fixture) {
		clock, target := clocktesting.NewFakeClock(began.Add(24*time.Hour)), &collector{}
		chainer := b.chainer(clock)
		delivery := b.entries.Delivery(auditlog.DeliveryOptions{
			Collector: target, Chainer: chainer, Clock: clock, Log: logging.Discard(), Metrics: prometheus.NewRegistry(),
		})

		for minute := range 240 {
			b.add(minute, auditlog.Entry{Action: auditlog.ActionAccess})
		}

		b.pass(chainer)

		if err := delivery.Deliver(b.Context()); err != nil || len(target.got) != 240 || target.largest != 100 {
			b.Errorf("want 240 records in batches of 100, got %d in batches of %d, %v", len(target.got), target.largest, err)
		}

		sorted := slices.Clone(target.got)
		slices.Sort(sorted)

		if len(slices.Compact(sorted)) != 240 {
			b.Error("a record was delivered twice")
		}
	})
}
