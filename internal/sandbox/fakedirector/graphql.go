package fakedirector

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/validator"
	"github.com/vektah/gqlparser/v2/validator/rules"
)

// longestRequest limits the body of a request, in bytes.
const longestRequest = 1 << 20

// serveGraphQL answers a query or mutation. Errors have status 200, as in GraphQL. Validation against the schema comes first,
// then an injected fault, then the access token and the tenant.
func (d *Director) serveGraphQL(w http.ResponseWriter, request *http.Request) {
	field, arguments, err := d.parse(w, request)
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
		value, err = d.execute(tenant, field.Name, arguments)
	}

	if fault.Lost {
		panic(http.ErrAbortHandler)
	}

	if err != nil {
		answerError(w, err)

		return
	}

	writeJSON(w, http.StatusOK, map[string]any{"data": map[string]any{field.Alias: project(value, field.SelectionSet)}})
}

// parse returns the one field of a request and its arguments, validated against the schema.
func (d *Director) parse(w http.ResponseWriter, request *http.Request) (*ast.Field, map[string]any, error) {
	var received struct {
		Query         string         `json:"query"`
		OperationName string         `json:"operationName"`
		Variables     map[string]any `json:"variables"`
	}

	if err := json.NewDecoder(http.MaxBytesReader(w, request.Body, longestRequest)).Decode(&received); err != nil {
		return nil, nil, errors.New("the request is not JSON")
	}

	document, problems := gqlparser.LoadQueryWithRules(d.schema, received.Query, rules.NewDefaultRules())
	if len(problems) > 0 {
		return nil, nil, problems
	}

	operation := document.Operations.ForName(received.OperationName)
	if operation == nil || len(operation.SelectionSet) != 1 {
		return nil, nil, errors.New("the request must have one operation")
	}

	field, isField := operation.SelectionSet[0].(*ast.Field)
	if !isField {
		return nil, nil, errors.New("the request must select a field")
	}

	variables, err := validator.VariableValues(d.schema, operation, received.Variables)
	if err != nil {
		return nil, nil, err
	}

	return field, field.ArgumentMap(variables), nil
}

// project returns the selected fields of a value under their aliases. A value is a map, a list of maps or a scalar; a nil map is
// null. Labels are a map without a selection, because their type is a scalar of the schema.
func project(value any, selection ast.SelectionSet) any {
	switch value := value.(type) {
	case []map[string]any:
		projected := make([]any, 0, len(value))
		for _, element := range value {
			projected = append(projected, project(element, selection))
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
		for _, field := range fields(selection) {
			projected[field.Alias] = project(value[field.Name], field.SelectionSet)
		}

		return projected
	default:
		return value
	}
}

// fields returns the fields of a selection and of its fragments. No type condition of a fragment is evaluated: the schema has no
// interfaces.
func fields(selection ast.SelectionSet) []*ast.Field {
	var found []*ast.Field

	for _, each := range selection {
		switch each := each.(type) {
		case *ast.Field:
			found = append(found, each)
		case *ast.FragmentSpread:
			found = append(found, fields(each.Definition.SelectionSet)...)
		case *ast.InlineFragment:
			found = append(found, fields(each.SelectionSet)...)
		}
	}

	return found
}

// answerError responds with an error. Only errors of Director's rules have a code; errors of GraphQL itself have none.
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
