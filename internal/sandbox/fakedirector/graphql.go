package fakedirector

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"

	"github.com/environment-broker/environment-broker/internal/sandbox/fakegraphql"
)

// maxRequestBytes is the maximum size of a request body.
const maxRequestBytes = 1 << 20

// serveGraphQL validates a query or mutation against the schema, then applies injected faults, then checks the access token and
// the tenant, and then executes it. A request that the real Director would not understand therefore fails in every test,
// regardless of injected faults. Error responses have status 200, as usual in GraphQL. The query __typename needs a token but no
// tenant, because clients use it to probe Director.
func (d *Director) serveGraphQL(w http.ResponseWriter, request *http.Request) {
	operation, field, err := d.parse(w, request)
	if err != nil {
		answerError(w, err)

		return
	}

	fault, w, done := d.begin(field.Name, w, request)
	defer done()

	if fault.answer(w, request) {
		return
	}

	var value any

	switch tenant := request.Header.Get("Tenant"); {
	case fault.Code != 0:
		err = refuse(fault.Code, "injected: %s", fault.Code)
	case !d.authorized(strings.TrimPrefix(request.Header.Get("Authorization"), "Bearer ")):
		err = refuse(Unauthorized, "the token is invalid")
	case field.Name == "__typename":
		value = field.ObjectDefinition.Name
	case tenant == "":
		err = refuse(TenantRequired, "the Tenant header is missing")
	default:
		value, err = d.execute(tenant, field.Name, field.ArgumentMap(operation.Variables))
	}

	if fault.Lost {
		panic(http.ErrAbortHandler)
	}

	if err != nil {
		answerError(w, err)

		return
	}

	writeJSON(w, http.StatusOK, map[string]any{"data": map[string]any{field.Alias: fakegraphql.Select(operation, value, field.SelectionSet)}})
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

// answerError writes an error response. Errors from Director's rules have a code; errors of GraphQL itself have none. The code is
// in the extensions error_code (the number) and error (its name), where Director's clients look for it.
func answerError(w http.ResponseWriter, err error) {
	problem := map[string]any{"message": err.Error()}
	if refused, ok := errors.AsType[*refusal](err); ok {
		problem["extensions"] = map[string]any{"error_code": int(refused.code), "error": refused.code.String()}
	}

	writeJSON(w, http.StatusOK, map[string]any{"data": map[string]any{"result": nil}, "errors": []any{problem}})
}

func writeJSON(w http.ResponseWriter, status int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(value) //nolint:errchkjson // it fails if the client has disconnected
}
