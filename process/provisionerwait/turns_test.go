package provisionerwait_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/process/provisionerwait"
)

func TestEachThatWaitsHasATurnOfItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := provisionerwait.NewTurns(2)
		waits := func(operations ...string) (waits []time.Duration) {
			for _, operation := range operations {
				waits = append(waits, turns.Wait(operation).Round(time.Millisecond))
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

		same("two may ask in a second", waits("a", "b", "c", "d"), 0, 0, half, 2*half)
		same("who comes too early keeps the turn", waits("c", "d"), half, 2*half)

		time.Sleep(half) // fake time

		same("who comes in time may ask, whoever came meanwhile", waits("e", "c"), 2*half, 0)
		same("and after that is given another turn", waits("c"), 3*half)

		time.Sleep(time.Minute)

		same("turns that have passed are there still", waits("d", "e", "c"), 0, 0, 0)
		same("and take nothing from others", waits("f", "g", "h"), 0, 0, half)
	})
}

func TestTurnsTakeLittleMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // in which no time passes
		const many = 100_000

		turns := provisionerwait.NewTurns(1)

		last := time.Duration(0)
		for i := range many {
			last = turns.Wait(fmt.Sprintf("operation-%d", i))
		}

		if again := turns.Wait(fmt.Sprintf("operation-%d", many-1)); again > last {
			t.Errorf("the newest operation, which had to wait for %s, has to wait for %s: its turn is lost", last, again)
		}

		if again := turns.Wait("operation-1"); again < last {
			t.Errorf("one of the oldest has to wait for %s, less than the newest: all turns are kept", again)
		}
	})
}
