package broker

import (
	"context"
	"net/http"
	"time"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/httpserver"
	"github.com/environment-broker/environment-broker/process"
)

const (
	// patience is how long a request waits for an operation: so that there is time left for its answer.
	patience = requestLimit - 2*time.Second
	// comeBack is when a platform may ask again for what was not ready in time.
	comeBack = 2 * time.Second
)

// await returns when the operation has succeeded. It is an error when that has failed, or goes on after all patience: then nothing is
// lost, and the same request finds the same operation again.
func (a *api) await(ctx context.Context, operationID string) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()

	for {
		record, err := a.Operations.Polled(ctx, a.DB.Reader(), operationID)

		switch {
		case err != nil && ctx.Err() != nil:
			return stillRunning()
		case err != nil:
			return err
		case record.State == process.Succeeded:
			return nil
		case record.State == process.Canceled && record.Kind == environment.KindUnbind:
			return conflict(textRemovalCanceled)
		case record.State == process.Canceled:
			return conflict(textBindingGone)
		case record.State.Terminal():
			return httpserver.Refuse(http.StatusBadGateway, ended(record))
		}

		if err := a.Pause(ctx); err != nil {
			return stillRunning()
		}
	}
}

func stillRunning() error {
	return &httpserver.Refusal{Status: http.StatusServiceUnavailable, Description: textStillRunning, RetryAfter: comeBack}
}
