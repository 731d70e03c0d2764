// Package lifecycle runs the parts of a service: started together, for what one needs of another is made before they run, and stopped
// one after the other, the last one first, within a limit.
package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sirupsen/logrus"
)

// lastMoment is what a part has to stop when others before it have used up the limit.
const lastMoment = 2 * time.Second

// Part is something that runs until its context ends.
type Part struct {
	Name string
	Run  func(ctx context.Context) error
	// AtOnce has the part told as soon as the stop begins, and not only in its turn: it takes no more work, and may need long to end
	// what it has. It is waited for in its turn, before anything that it needs is stopped.
	AtOnce bool
}

// Run runs the parts until the context ends or one of them does. Then it stops them, the last one first, and returns what
// went wrong. What has not ended when the limit of the stop is over is left behind with an error.
func Run(ctx context.Context, log logrus.FieldLogger, limit time.Duration, parts ...Part) error {
	type started struct {
		Part

		stop  context.CancelFunc
		ended chan error
	}

	running := make([]started, 0, len(parts))
	anyEnded := make(chan struct{}, len(parts))

	for _, part := range parts {
		own, stop := context.WithCancel(context.WithoutCancel(ctx))
		this := started{Part: part, stop: stop, ended: make(chan error, 1)}
		running = append(running, this)

		go func() {
			this.ended <- part.Run(own)

			anyEnded <- struct{}{}
		}()
	}

	select {
	case <-ctx.Done():
	case <-anyEnded:
	}

	deadline := time.Now().Add(limit)

	for _, part := range running {
		if part.AtOnce {
			part.stop()
		}
	}

	var failures []error

	for _, part := range slices.Backward(running) {
		part.stop()

		select {
		case err := <-part.ended:
			if err != nil {
				failures = append(failures, fmt.Errorf("%s: %w", part.Name, err))
			}
		case <-time.After(max(time.Until(deadline), lastMoment)):
			failures = append(failures, fmt.Errorf("%s did not stop, the limit for all is %s", part.Name, limit))
		}

		log.WithField("part", part.Name).Debug("stopped")
	}

	return errors.Join(failures...)
}
