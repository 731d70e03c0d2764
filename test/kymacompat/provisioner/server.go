package provisioner

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"time"

	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"
	"github.com/vektah/gqlparser/v2/validator"
	"github.com/vektah/gqlparser/v2/validator/rules"
)

// contract is the schema of the last Kyma Provisioner that installed Kyma.
//
//go:embed schema.graphql
var contract string

// Provisioner is a simulated Kyma Provisioner that serves GraphQL at URL. Its methods can be called concurrently.
type Provisioner struct {
	URL string

	takes  time.Duration
	schema *ast.Schema
	access *httptest.Server

	// mutex guards the fields below. The Provisioner executes one operation at a time.
	mutex      sync.Mutex
	runtimes   map[string]*runtime
	operations map[string]*operation
	calls      []Call
	requests   int
	faults     map[string][]Fault
}

// Call is a request for a field of Mutation or Query. If the request violates the schema, Field is empty and Rejected contains
// the reason.
type Call struct {
	Field, Rejected string
	At              time.Time
	// Request numbers the requests from 1. The fields of one request have the same number.
	Request int
}

// Start serves a Provisioner until closed is called. Each operation succeeds after the given duration.
func Start(takes time.Duration) (p *Provisioner, closed func(), err error) {
	schema, err := gqlparser.LoadSchema(&ast.Source{Name: "schema.graphql", Input: contract})
	if err != nil {
		return nil, nil, fmt.Errorf("reading the schema of a Kyma Provisioner: %w", err)
	}

	p = &Provisioner{
		takes: takes, schema: schema, access: newAccess(),
		runtimes: map[string]*runtime{}, operations: map[string]*operation{}, faults: map[string][]Fault{},
	}
	server := httptest.NewServer(p)
	p.URL = server.URL + "/graphql"

	return p, func() {
		server.Close()
		p.access.Close()
	}, nil
}

// Calls returns all calls so far in order of arrival, including calls that a fault prevented.
func (p *Provisioner) Calls() []Call {
	p.mutex.Lock()
	defer p.mutex.Unlock()

	return append([]Call(nil), p.calls...)
}

// graphQLRequest is the body of a GraphQL request. A GET request has only a query.
type graphQLRequest struct {
	Query         string         `json:"query"`
	OperationName string         `json:"operationName"`
	Variables     map[string]any `json:"variables"`
}

// ServeHTTP responds like the Kyma Provisioner: with 422 if a request violates the schema, otherwise with 200, even if a field
// fails.
func (p *Provisioner) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	request := graphQLRequest{Query: r.URL.Query().Get("query")}

	if r.Method == http.MethodPost {
		decoder := json.NewDecoder(r.Body)
		decoder.UseNumber()

		if err := decoder.Decode(&request); err != nil {
			http.Error(w, "malformed JSON", http.StatusBadRequest)

			return
		}
	}

	number := p.number()

	operation, variables, err := p.parse(request)
	if err != nil {
		p.record(Call{Rejected: err.Message, Request: number})

		err.Extensions = map[string]any{"code": "GRAPHQL_VALIDATION_FAILED"}
		respond(w, http.StatusUnprocessableEntity, nil, err)

		return
	}

	caller := caller{tenant: r.Header.Get("tenant"), subAccount: r.Header.Get("sub-account")}
	data := map[string]any{}

	var problems []*gqlerror.Error

	for _, selection := range operation.SelectionSet {
		field, isField := selection.(*ast.Field)
		if !isField {
			respond(w, http.StatusUnprocessableEntity, nil, gqlerror.Errorf("fragments at the root are not supported"))

			return
		}

		p.record(Call{Field: field.Name, Request: number})

		fault := p.fault(field.Name)
		if fault == Unavailable {
			http.Error(w, "upstream connect error", http.StatusServiceUnavailable)

			return
		}

		value, err := p.resolve(caller, field, variables, fault)
		if fault == ResponseLost {
			panic(http.ErrAbortHandler) // closes the connection after the call has taken effect
		}

		data[field.Alias] = nil
		if err != nil {
			problems = append(problems, toGraphQL(field, err))
		} else {
			data[field.Alias] = project(field.SelectionSet, value)
		}
	}

	respond(w, http.StatusOK, data, problems...)
}

// parse validates the request against the schema. It returns the operation and the variables, with default values filled in.
func (p *Provisioner) parse(request graphQLRequest) (*ast.OperationDefinition, map[string]any, *gqlerror.Error) {
	document, problems := gqlparser.LoadQueryWithRules(p.schema, request.Query, rules.NewDefaultRules())
	if len(problems) > 0 {
		return nil, nil, problems[0]
	}

	operation := document.Operations.ForName(request.OperationName)
	if operation == nil {
		return nil, nil, gqlerror.Errorf("unknown operation %q", request.OperationName)
	}

	variables, err := validator.VariableValues(p.schema, operation, request.Variables)
	if err != nil {
		return nil, nil, gqlerror.Wrap(err)
	}

	return operation, variables, nil
}

// number returns the number of the next request.
func (p *Provisioner) number() int {
	p.mutex.Lock()
	defer p.mutex.Unlock()

	p.requests++

	return p.requests
}

func (p *Provisioner) record(call Call) {
	p.mutex.Lock()
	defer p.mutex.Unlock()

	call.At = time.Now()
	p.calls = append(p.calls, call)
}

// respond writes a GraphQL response. Data and errors can both be present, as in the GraphQL specification.
func respond(w http.ResponseWriter, status int, data any, problems ...*gqlerror.Error) {
	body := map[string]any{"data": data}
	if len(problems) > 0 {
		body["errors"] = problems
	}

	text, err := json.Marshal(body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)

		return
	}

	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(text)
}

// project returns the selected fields of a value, recursively. It projects lists element by element and returns scalars
// unchanged.
func project(selections ast.SelectionSet, value any) any {
	switch value := value.(type) {
	case []any:
		all := make([]any, 0, len(value))
		for _, element := range value {
			all = append(all, project(selections, element))
		}

		return all
	case map[string]any:
		if len(selections) == 0 {
			return value
		}

		selected := map[string]any{}
		collect(selected, selections, value)

		return selected
	default:
		return value
	}
}

// collect adds the selected fields of an object to selected, including the fields of fragments. An inline fragment applies if
// its type condition equals the __typename of the object, or if the object has no __typename.
func collect(selected map[string]any, selections ast.SelectionSet, value map[string]any) {
	for _, selection := range selections {
		switch selection := selection.(type) {
		case *ast.Field:
			selected[selection.Alias] = project(selection.SelectionSet, value[selection.Name])
		case *ast.InlineFragment:
			if is := value["__typename"]; is == nil || is == selection.TypeCondition {
				collect(selected, selection.SelectionSet, value)
			}
		case *ast.FragmentSpread:
			collect(selected, selection.Definition.SelectionSet, value)
		}
	}
}
