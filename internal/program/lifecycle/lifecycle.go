package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sirupsen/logrus"
)

// minStopTime is the minimum time that Run gives each part to stop, even if other parts have used up the limit.
const minStopTime = 2 * time.Second

// Part is a unit of a program that runs until its context ends, such as a server.
type Part struct {
	// Name identifies the part in logs and errors.
	Name string
	// Run runs the part and returns after the context has ended. An earlier return, with or without an error, stops the program.
	Run func(ctx context.Context) error
	// StopsEarly ends the context of the part as soon as the program stops, instead of after the later parts have ended. Set it
	// for a part that needs a long time to finish, such as the engine. Earlier parts still run until this part has ended.
	StopsEarly bool
}

// Run runs the parts until the context or one of the parts ends. Then it stops all parts in reverse order and returns their
// errors. The limit applies to the whole stop. If a part has not ended in time, Run returns an error without waiting for the
// part.
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
		current := started{Part: part, stop: stop, ended: make(chan error, 1)}
		running = append(running, current)

		go func() {
			current.ended <- part.Run(own)

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
			failures = append(failures, fmt.Errorf("%s did not stop within %s, the limit for all parts", part.Name, limit))
		}

		log.WithField("part", part.Name).Debug("stopped")
	}

	return errors.Join(failures...)
}
