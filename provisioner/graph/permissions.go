package graph

import (
	"context"
	"fmt"

	"github.com/99designs/gqlgen/graphql"

	"github.com/environment-broker/environment-broker/internal/auth"
	"github.com/environment-broker/environment-broker/internal/failure"
)

const reasonForbidden = "err_provisioner_forbidden"

// mayAccessClusters reports whether the client may get admin kubeconfigs and order changes of runtimes. These are the rights of
// admins and of the broker, whose role is RoleOSB. Orders are included because an order can name new administrators of a cluster.
func mayAccessClusters(ctx context.Context) bool {
	return auth.FromContext(ctx).Has(auth.RoleOSB, auth.RoleAdmin)
}

// permitted is a middleware that rejects mutations and the field kubeconfig for clients without mayAccessClusters. Package service
// requires one of the roles osb, operator or admin for the whole API, so the rejected clients are operators.
func permitted(ctx context.Context, next graphql.Resolver) (any, error) {
	field := graphql.GetFieldContext(ctx)
	if !isMutation(field) && !isKubeconfig(field) || mayAccessClusters(ctx) {
		return next(ctx)
	}

	return nil, failure.New(failure.Denied, "%s requires the %s role", field.Field.Name, auth.RoleAdmin).
		WithReason(reasonForbidden, failure.ComponentProvisioner)
}

func isMutation(field *graphql.FieldContext) bool { return field.Object == "Mutation" }

func isKubeconfig(field *graphql.FieldContext) bool {
	return field.Object == "RuntimeConfig" && field.Field.Name == "kubeconfig"
}

// idOf returns the argument id of the field or of the closest enclosing field, or "" if no field has this argument.
func idOf(field *graphql.FieldContext) string {
	for ; field != nil; field = field.Parent {
		if id, found := field.Args["id"]; found {
			return fmt.Sprint(id)
		}
	}

	return ""
}
