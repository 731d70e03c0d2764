package brokertest

import "time"

// Clock goes on by itself: whoever waits finds the time passed. It is for one goroutine.
type Clock struct{ now time.Time }

// NewClock returns a clock that shows the moment.
func NewClock(now time.Time) *Clock { return &Clock{now: now} }

// Now returns the moment that was reached.
func (c *Clock) Now() time.Time { return c.now }

// After lets the duration pass and returns a channel that has fired.
func (c *Clock) After(d time.Duration) <-chan time.Time {
	c.now = c.now.Add(d)

	passed := make(chan time.Time, 1)
	passed <- c.now

	return passed
}
