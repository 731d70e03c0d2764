package provisionerwait_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/process/provisionerwait"
)

func TestDelayReservesATimeForEachOperation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limiter := provisionerwait.NewPollLimiter(2)
		waits := func(operations ...string) (waits []time.Duration) {
			for _, operation := range operations {
				waits = append(waits, limiter.Delay(operation).Round(time.Millisecond))
			}

			return waits
		}
		same := func(what string, got []time.Duration, want ...time.Duration) {
			t.Helper()

			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s: -want +got:\n%s", what, diff)
			}
		}

		const half = time.Second / 2

		same("two operations may poll in a second", waits("a", "b", "c", "d"), 0, 0, half, 2*half)
		same("an operation that asks too early keeps its reservation", waits("c", "d"), half, 2*half)

		time.Sleep(half) // fake time

		same("a reserved poll is allowed even after polls of others", waits("e", "c"), 2*half, 0)
		same("a later poll needs a new reservation", waits("c"), 3*half)

		time.Sleep(time.Minute)

		same("used reservations stay valid", waits("d", "e", "c"), 0, 0, 0)
		same("used reservations do not block others", waits("f", "g", "h"), 0, 0, half)
	})
}

func TestPollLimiterBoundsItsMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // no time passes here
		const many = 100_000

		limiter := provisionerwait.NewPollLimiter(1)

		last := time.Duration(0)
		for i := range many {
			last = limiter.Delay(fmt.Sprintf("operation-%d", i))
		}

		if again := limiter.Delay(fmt.Sprintf("operation-%d", many-1)); again > last {
			t.Errorf("the newest operation waited for %s and now for %s: its reservation is lost", last, again)
		}

		if again := limiter.Delay("operation-1"); again < last {
			t.Errorf("an old operation waits for %s, less than the newest: no reservation has expired", again)
		}
	})
}
