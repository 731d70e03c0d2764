package graph

import (
	"context"
	"fmt"

	"github.com/99designs/gqlgen/graphql"

	"github.com/environment-broker/environment-broker/internal/auth"
	"github.com/environment-broker/environment-broker/internal/failure"
)

const reasonForbidden = "err_provisioner_forbidden"

// mayAccessClusters reports whether the client may get admin kubeconfigs and order changes to runtimes. Only admins and the
// broker, whose role is RoleOSB, may do so. Orders are included because an order can name new administrators of a cluster.
func mayAccessClusters(ctx context.Context) bool {
	return auth.FromContext(ctx).Has(auth.RoleOSB, auth.RoleAdmin)
}

// permitted is a middleware that rejects mutations and the kubeconfig field unless mayAccessClusters returns true. Package
// service requires one of the roles osb, operator or admin for the whole API, so the rejected clients are operators.
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

// idOf returns the id argument of the field or of the closest enclosing field that has one, or "" if there is none.
func idOf(field *graphql.FieldContext) string {
	for ; field != nil; field = field.Parent {
		if id, found := field.Args["id"]; found {
			return fmt.Sprint(id)
		}
	}

	return ""
}
