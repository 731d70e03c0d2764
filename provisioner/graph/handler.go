package graph

import (
	"net/http"
	"strings"

	"github.com/99designs/gqlgen/graphql/handler"
	"github.com/99designs/gqlgen/graphql/handler/extension"
	"github.com/99designs/gqlgen/graphql/handler/lru"
	"github.com/99designs/gqlgen/graphql/handler/transport"
	"github.com/sirupsen/logrus"
	"github.com/vektah/gqlparser/v2/ast"

	"github.com/environment-broker/environment-broker/provisioner/graph/generated"
	"github.com/environment-broker/environment-broker/provisioner/graph/playground"
	"github.com/environment-broker/environment-broker/provisioner/validation"
)

// What a request may be at most. Queries of the schema nest six fields at most; the playground's introspection nests 13 and
// selects some 200.
const (
	maxBody   = 1 << 20
	maxTokens = 10_000
	maxFields = 1000
	maxDepth  = 20
	maxCost   = 100

	cachedQueries = 500
)

// Options are what a handler needs.
type Options struct {
	Runtimes Runtimes
	// Rules are what orders have to obey in this landscape.
	Rules validation.Rules
	Log   logrus.FieldLogger
	// Trail is told of changes that are refused; nil for nobody.
	Trail Trail
	// Endpoint is the path of the API.
	Endpoint string
	// PlaygroundEndpoint is where the playground, at /, finds the API: the path that a browser sees, which differs from
	// Endpoint behind a proxy that rewrites paths.
	PlaygroundEndpoint string
}

// NewHandler returns a handler that answers GraphQL requests at the endpoint and shows a playground at the root.
//
// An error of an operation is answered with HTTP status 200, as clients expect; only what is no valid GraphQL request has
// 400, 413 or 422. A request for changes takes half a minute: write time-outs of the server have to be longer.
func NewHandler(options Options) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/"+strings.TrimPrefix(options.Endpoint, "/"), bounded(newServer(options), errorPresenter(options.Log)))
	playground.Register(mux, options.PlaygroundEndpoint)

	return mux
}

func newServer(options Options) *handler.Server {
	server := handler.New(generated.NewExecutableSchema(generated.Config{
		Resolvers: root{
			mutation: mutation{runtimes: options.Runtimes, rules: options.Rules},
			query:    query{runtimes: options.Runtimes},
		},
	}))

	server.AddTransport(transport.GET{})
	server.AddTransport(transport.POST{})
	server.SetErrorPresenter(errorPresenter(options.Log))
	server.SetRecoverFunc(recoverer(options.Log))
	server.SetParserTokenLimit(maxTokens)
	server.SetQueryCache(lru.New[*ast.QueryDocument](cachedQueries))
	server.Use(extension.Introspection{})
	server.Use(limits{fields: maxFields, depth: maxDepth, cost: maxCost})
	server.AroundResponses(traced)

	if options.Trail != nil {
		server.AroundFields(audited(options.Trail))
	}

	return server
}

// root hands gqlgen the resolvers.
type root struct {
	mutation mutation
	query    query
}

// Mutation returns the resolvers of type Mutation.
func (r root) Mutation() generated.MutationResolver { return r.mutation }

// Query returns the resolvers of type Query.
func (r root) Query() generated.QueryResolver { return r.query }
