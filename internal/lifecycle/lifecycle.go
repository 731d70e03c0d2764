package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sirupsen/logrus"
)

// minStopTime is granted to each part even after other parts have used up the limit.
const minStopTime = 2 * time.Second

// Part runs until its context ends. Its name is for logs and errors.
type Part struct {
	Name string
	Run  func(ctx context.Context) error
	// StopsEarly cancels the context of the part as soon as the stop starts, for a part that needs long to finish its work. Run still
	// waits for it in order, before it stops the parts that this one needs.
	StopsEarly bool
}

// Run runs the parts until the context ends or one of them does. Then it stops them, the last one first, and returns their errors. A part
// that has not ended within the limit is abandoned with an error.
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
		if part.StopsEarly {
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
		case <-time.After(max(time.Until(deadline), minStopTime)):
			failures = append(failures, fmt.Errorf("%s did not stop, the limit for all is %s", part.Name, limit))
		}

		log.WithField("part", part.Name).Debug("stopped")
	}

	return errors.Join(failures...)
}
