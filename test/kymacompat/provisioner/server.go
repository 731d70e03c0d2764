package provisioner

import (
	_ "embed"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"sync"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/environment-broker/environment-broker/internal/sandbox/fakegraphql"
)

// contract is the schema of the last version of Kyma Provisioner that could install Kyma.
//
//go:embed schema.graphql
var contract string

// Provisioner is a simulated Kyma Provisioner that serves GraphQL at URL. Its methods can be called concurrently.
type Provisioner struct {
	URL string

	takes  time.Duration
	schema *fakegraphql.Schema
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
	// Request is the number of the request, starting at 1. All fields of a request have the same number.
	Request int
}

// Start runs a Provisioner until closed is called. takes is the duration of each operation, after which the operation succeeds.
func Start(takes time.Duration) (p *Provisioner, closed func(), err error) {
	schema, err := fakegraphql.NewSchema("of a Kyma Provisioner", contract)
	if err != nil {
		return nil, nil, err
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

// Calls returns all calls so far in order of arrival, including calls that were not executed because of a fault.
func (p *Provisioner) Calls() []Call {
	p.mutex.Lock()
	defer p.mutex.Unlock()

	return append([]Call(nil), p.calls...)
}

// ServeHTTP responds like the Kyma Provisioner: with 422 if a request violates the schema, otherwise with 200, even if a field
// fails. In a GET request, only the query parameter is read.
func (p *Provisioner) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	request := graphql.RawParams{Query: r.URL.Query().Get("query")}

	if r.Method == http.MethodPost {
		decoder := json.NewDecoder(r.Body)
		decoder.UseNumber()

		if err := decoder.Decode(&request); err != nil {
			http.Error(w, "malformed JSON", http.StatusBadRequest)

			return
		}
	}

	number := p.number()

	operation, invalid := p.schema.Validate(r.Context(), request)
	if len(invalid) > 0 {
		p.record(Call{Rejected: invalid[0].Message, Request: number})
		respond(w, http.StatusUnprocessableEntity, nil, invalid[0])

		return
	}

	caller := caller{tenant: r.Header.Get("tenant"), subAccount: r.Header.Get("sub-account")}
	data := map[string]any{}

	var problems []*gqlerror.Error

	for _, selection := range operation.Operation.SelectionSet {
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

		value, err := p.resolve(caller, field, operation.Variables, fault)
		if fault == ResponseLost {
			panic(http.ErrAbortHandler) // closes the connection after the call has taken effect
		}

		data[field.Alias] = nil
		if err != nil {
			problems = append(problems, toGraphQL(field, err))
		} else {
			data[field.Alias] = fakegraphql.Select(operation, value, field.SelectionSet)
		}
	}

	respond(w, http.StatusOK, data, problems...)
}

// number assigns and returns the number of the next request.
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

// respond writes a GraphQL response. As the GraphQL specification allows, a response can contain both data and errors.
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
