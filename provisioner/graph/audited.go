package graph

import (
	"context"

	"github.com/99designs/gqlgen/graphql"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/storage/auditlog"
)

// Recorder records refused mutations.
type Recorder interface {
	Refused(ctx context.Context, entry auditlog.Entry)
}

// audited records refused mutations under their names in the API.
func audited(recorder Recorder) graphql.FieldMiddleware {
	return func(ctx context.Context, next graphql.Resolver) (any, error) {
		result, err := next(ctx)

		field := graphql.GetFieldContext(ctx)
		if err == nil || field.Object != "Mutation" {
			return result, err
		}

		known := failure.Of(err)
		entry := auditlog.Entry{Action: field.Field.Name, Status: failure.MappingOf(known.Kind).HTTP, Code: known.Reason}
		entry.InstanceID, _ = field.Args["id"].(string)

		if caller, err := queryingCaller(ctx); err == nil {
			entry.After = auditlog.Fields{"tenant": caller.Tenant}
		}

		recorder.Refused(ctx, entry)

		return result, err
	}
}
