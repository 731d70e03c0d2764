package httpserver

import (
	"context"
	"net/http"

	"github.com/sirupsen/logrus"
)

// notes is what the line about a request will say.
type notes struct {
	fields logrus.Fields
	cause  error
}

type notesKey struct{}

// Note adds a field to the line that is written about the request. It is called by whoever serves the request, not by goroutines.
func Note(ctx context.Context, field string, value any) {
	if line, ok := ctx.Value(notesKey{}).(*notes); ok {
		line.fields[field] = value
	}
}

func note(ctx context.Context, refusal *Refusal) {
	if line, ok := ctx.Value(notesKey{}).(*notes); ok {
		line.cause = refusal.Cause
	}
}

// write logs the line: what the broker failed at as an error, the rest as information.
func (n *notes) write(log logrus.FieldLogger, status int) {
	entry := log.WithFields(n.fields)
	if n.cause != nil {
		entry = entry.WithError(n.cause)
	}

	if status >= http.StatusInternalServerError {
		entry.Error("request failed")
	} else {
		entry.Info("request answered")
	}
}
