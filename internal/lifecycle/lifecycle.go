// Package lifecycle runs the parts of a service: started together, for what one needs of another is made before they run, and stopped
// one after the other, the last one first.
package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sirupsen/logrus"
)

// stopTimeout bounds the stop of one part. What does not end by then is left behind with an error.
const stopTimeout = 30 * time.Second

// Part is something that runs until its context ends.
type Part struct {
	Name string
	Run  func(ctx context.Context) error
}

// Run runs the parts until the context ends or one of them does. Then it stops them, the last one first, and returns what
// went wrong.
func Run(ctx context.Context, log logrus.FieldLogger, parts ...Part) error {
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

	var failures []error

	for _, part := range slices.Backward(running) {
		part.stop()

		select {
		case err := <-part.ended:
			if err != nil {
				failures = append(failures, fmt.Errorf("%s: %w", part.Name, err))
			}
		case <-time.After(stopTimeout):
			failures = append(failures, fmt.Errorf("%s did not stop within %s", part.Name, stopTimeout))
		}

		log.WithField("part", part.Name).Debug("stopped")
	}

	return errors.Join(failures...)
}
