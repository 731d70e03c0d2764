package graph

import (
	"context"
	"maps"
	"slices"

	"github.com/99designs/gqlgen/graphql"
	"k8s.io/utils/ptr"

	"github.com/environment-broker/environment-broker/internal/httpserver/bounds"
	"github.com/environment-broker/environment-broker/provisioner/graph/model"
)

const (
	// argumentCursor is the argument for the position in a list or in the feed of changes.
	argumentCursor = "after"
	// argumentClientData is the argument with a client's own data. Package validation checks it.
	argumentClientData = "clientData"
	// maxCursor is the maximum length of a cursor in bytes. The cursor of operationChanges contains a mark for each recent change.
	maxCursor = 16 << 10
)

// limited is a middleware that rejects IDs, filters and cursors that are too long or contain invisible characters, before a
// resolver passes them to the database, the audit log or an error. It checks the arguments of queries and mutations. Package
// validation checks the strings in orders and adoptions.
func limited(ctx context.Context, next graphql.Resolver) (any, error) {
	field := graphql.GetFieldContext(ctx)
	if field.Object != "Query" && field.Object != "Mutation" {
		return next(ctx)
	}

	for _, name := range slices.Sorted(maps.Keys(field.Args)) {
		if name == argumentClientData {
			continue
		}

		longest := bounds.ID
		if name == argumentCursor {
			longest = maxCursor
		}

		for _, text := range textsIn(field.Args[name]) {
			if len(text) > longest || !bounds.Visible(text) {
				return nil, invalid("%s: a string must have at most %d bytes and no invisible characters", name, longest).At(name)
			}
		}
	}

	return next(ctx)
}

// textsIn returns the strings in an argument. It returns nil for an order or an adoption, because package validation checks their
// strings.
func textsIn(argument any) []string {
	switch argument := argument.(type) {
	case string:
		return []string{argument}
	case *string:
		return []string{ptr.Deref(argument, "")}
	case *model.RuntimeFilter:
		given := ptr.Deref(argument, model.RuntimeFilter{})

		return deref(given.ID, given.Tenant, given.SubAccount, given.ShootName, given.Region)
	case *model.OperationFilter:
		given := ptr.Deref(argument, model.OperationFilter{})

		return deref(given.Tenant, given.RuntimeID, given.ShootName, given.Region)
	default:
		return nil
	}
}

// deref returns the strings that the non-nil pointers refer to.
func deref(pointers ...*string) []string {
	var texts []string

	for _, pointer := range pointers {
		if pointer != nil {
			texts = append(texts, *pointer)
		}
	}

	return texts
}
