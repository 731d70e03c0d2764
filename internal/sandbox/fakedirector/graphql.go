package fakedirector

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"

	"github.com/environment-broker/environment-broker/internal/sandbox/fakegraphql"
	"github.com/environment-broker/environment-broker/internal/sandbox/simulator"
)

// maxRequestBytes is the maximum size of a request body.
const maxRequestBytes = 1 << 20

// serveGraphQL validates a query or mutation against the schema, then applies injected faults, then checks the access token and
// the tenant, and then executes it. A request that the real Director would not understand therefore fails in every test,
// regardless of injected faults. Error responses have status 200, as usual in GraphQL.
func (d *Director) serveGraphQL(w http.ResponseWriter, request *http.Request) {
	operation, field, err := d.parse(w, request)
	if err != nil {
		simulator.WriteJSON(w, http.StatusOK, errorBody(err))

		return
	}

	d.Handle(field.Name, func(w http.ResponseWriter, request *http.Request) {
		value, err := d.resolve(request, operation, field)
		if err != nil {
			simulator.WriteJSON(w, http.StatusOK, errorBody(err))

			return
		}

		simulator.WriteJSON(w, http.StatusOK, map[string]any{
			"data": map[string]any{field.Alias: fakegraphql.Select(operation, value, field.SelectionSet)},
		})
	})(w, request)
}

// resolve returns the value of the requested field. The query __typename needs a token but no tenant, because clients use it to probe
// Director.
func (d *Director) resolve(request *http.Request, operation *graphql.OperationContext, field *ast.Field) (any, error) {
	switch tenant := request.Header.Get("Tenant"); {
	case !d.authorized(strings.TrimPrefix(request.Header.Get("Authorization"), "Bearer ")):
		return nil, refuse(Unauthorized, "the token is invalid")
	case field.Name == "__typename":
		return field.ObjectDefinition.Name, nil
	case tenant == "":
		return nil, refuse(TenantRequired, "the Tenant header is missing")
	default:
		return d.execute(tenant, field.Name, field.ArgumentMap(operation.Variables))
	}
}

// parse validates a request against the schema. It returns the only field of the request, and the operation with its variables.
func (d *Director) parse(w http.ResponseWriter, request *http.Request) (*graphql.OperationContext, *ast.Field, error) {
	var received graphql.RawParams

	if err := json.NewDecoder(http.MaxBytesReader(w, request.Body, maxRequestBytes)).Decode(&received); err != nil {
		return nil, nil, errors.New("the request is not JSON")
	}

	operation, problems := d.schema.Validate(request.Context(), received)
	if len(problems) > 0 {
		return nil, nil, problems
	}

	if len(operation.Operation.SelectionSet) != 1 {
		return nil, nil, errors.New("the request must have one operation")
	}

	field, isField := operation.Operation.SelectionSet[0].(*ast.Field)
	if !isField {
		return nil, nil, errors.New("the request must select a field")
	}

	return operation, field, nil
}
