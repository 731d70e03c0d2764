package graph

import (
	"context"

	"github.com/99designs/gqlgen/graphql"

	"github.com/environment-broker/environment-broker/internal/audit"
	"github.com/environment-broker/environment-broker/internal/failure"
)

// Trail is told of changes that are refused.
type Trail interface {
	Refused(ctx context.Context, entry audit.Entry)
}

// audited tells the trail of mutations that are refused, under the names that they have in the API.
func audited(trail Trail) graphql.FieldMiddleware {
	return func(ctx context.Context, next graphql.Resolver) (any, error) {
		result, err := next(ctx)

		field := graphql.GetFieldContext(ctx)
		if err == nil || field.Object != "Mutation" {
			return result, err
		}

		known := failure.Of(err)
		entry := audit.Entry{Action: field.Field.Name, Status: failure.MappingOf(known.Kind).HTTP, Code: known.Reason}
		entry.InstanceID, _ = field.Args["id"].(string)

		if caller, err := queryingCaller(ctx); err == nil {
			entry.After = audit.Fields{"tenant": caller.Tenant}
		}

		trail.Refused(ctx, entry)

		return result, err
	}
}
