package auth

import (
	"strconv"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"
)

func TestNewLimiter(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Unix(0, 0))

	if limiter, err := NewLimiter(0, 0, clock); limiter != nil || err != nil {
		t.Errorf("a rate of 0 means no limit: got %v, %v", limiter, err)
	}

	if (*Limiter)(nil).Take("anybody") != 0 {
		t.Error("a nil limiter limits")
	}

	for _, invalid := range []struct {
		rate  float64
		burst int
	}{{-1, 1}, {1, 0}} {
		if _, err := NewLimiter(invalid.rate, invalid.burst, clock); err == nil {
			t.Errorf("%+v is accepted", invalid)
		}
	}
}

func TestLimiterBoundsItsMemory(t *testing.T) {
	limiter, err := NewLimiter(1, 1, clocktesting.NewFakePassiveClock(time.Unix(0, 0)))
	if err != nil {
		t.Fatal(err)
	}

	for i := range 3 * maxClients {
		limiter.Take(strconv.Itoa(i))
	}

	if kept := limiter.buckets.Len(); kept != maxClients {
		t.Errorf("%d clients have a bucket, want %d", kept, maxClients)
	}

	if limiter.Take(strconv.Itoa(3*maxClients-1)) == 0 {
		t.Error("the bucket of the latest client was evicted")
	}
}

func TestClientNetwork(t *testing.T) {
	for remote, want := range map[string]string{
		"10.1.2.3:4": "10.1.2.3", "[::ffff:10.1.2.3]:4": "10.1.2.3", "[2001:db8:1:2:3::4]:5": "2001:db8:1:2::/64",
		"[2001:db8:1:2:ffff::]:5": "2001:db8:1:2::/64", "[fe80::1%eth0]:5": "fe80::/64", "pipe": "unknown",
	} {
		if got := ClientNetwork(remote); got != want {
			t.Errorf("%s: want %s, got %s", remote, want, got)
		}
	}
}
