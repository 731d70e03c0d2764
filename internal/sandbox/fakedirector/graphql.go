package fakedirector

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"
)

// longestRequest limits the body of a request, in bytes.
const longestRequest = 1 << 20

// serveGraphQL answers a query or mutation. Errors have status 200, as in GraphQL. Validation against the schema comes first,
// then an injected fault, then the access token and the tenant. So a request that the real Director would not understand fails in
// every test, whatever fault is injected. The query __typename needs a token but no tenant: clients probe Director with it.
func (d *Director) serveGraphQL(w http.ResponseWriter, request *http.Request) {
	operation, field, err := d.parse(w, request)
	if err != nil {
		answerError(w, err)

		return
	}

	fault := d.faultOf(field.Name)
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
		err = refuse(TenantRequired, "the header Tenant is missing")
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

	writeJSON(w, http.StatusOK, map[string]any{"data": map[string]any{field.Alias: project(operation, value, field.SelectionSet)}})
}

// schema makes the parsed schema known to the executor of gqlgen, which parses and validates requests. The Director executes them
// itself, because its operations have dynamic values.
type schema struct {
	graphql.ExecutableSchema

	parsed *ast.Schema
}

// Schema implements graphql.ExecutableSchema. No other method of it is called.
func (s schema) Schema() *ast.Schema { return s.parsed }

// parse returns the one field of a request, with the operation that holds the variables, validated against the schema.
func (d *Director) parse(w http.ResponseWriter, request *http.Request) (*graphql.OperationContext, *ast.Field, error) {
	var received graphql.RawParams

	if err := json.NewDecoder(http.MaxBytesReader(w, request.Body, longestRequest)).Decode(&received); err != nil {
		return nil, nil, errors.New("the request is not JSON")
	}

	operation, problems := d.executor.CreateOperationContext(graphql.StartOperationTrace(request.Context()), &received)
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

// project returns the selected fields of a value under their aliases. A value is a map, a list of maps or a scalar; a nil map is
// null. Labels are a map without a selection, because their type is a scalar of the schema.
func project(operation *graphql.OperationContext, value any, selection ast.SelectionSet) any {
	switch value := value.(type) {
	case []map[string]any:
		projected := make([]any, 0, len(value))
		for _, element := range value {
			projected = append(projected, project(operation, element, selection))
		}

		return projected
	case map[string]any:
		if value == nil {
			return nil
		}

		if len(selection) == 0 { // labels
			return value
		}

		projected := map[string]any{}
		for _, field := range graphql.CollectFields(operation, selection, nil) {
			projected[field.Alias] = project(operation, value[field.Name], field.Selections)
		}

		return projected
	default:
		return value
	}
}

// answerError responds with an error. Only errors of Director's rules have a code; errors of GraphQL itself have none. The codes are in
// the extensions error_code (a number) and error (its name), where Director's clients look for them.
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
