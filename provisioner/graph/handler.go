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
)

// The limits of a request. Data queries have a depth of at most 6; the playground's introspection query has a depth of 13 and
// selects about 200 fields.
const (
	maxBody   = 1 << 20 // bytes
	maxTokens = 10_000
	maxFields = 1000
	maxDepth  = 20
	maxCost   = 100 // sum of the costs of all fields

	// cachedQueries is the number of parsed requests in memory.
	cachedQueries = 500
)

// Options are the dependencies of a handler.
type Options struct {
	Service Service
	Log     logrus.FieldLogger
	// Recorder records rejected mutations and denied kubeconfigs; nil records nothing.
	Recorder Recorder
	// Endpoint is the path of the API.
	Endpoint string
	// PlaygroundEndpoint is the path under which the playground at / reaches the API from a browser. It differs from Endpoint
	// behind a proxy that rewrites paths.
	PlaygroundEndpoint string
}

// NewHandler returns a handler that serves the GraphQL API at the endpoint and a playground at the root.
//
// A request that the Service rejects gets HTTP status 200 and an error, as GraphQL clients expect; a request that is not valid
// GraphQL gets status 400, 413 or 422. A request for changes may take half a minute, so the write timeout of the server must be
// longer.
func NewHandler(options Options) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/"+strings.TrimPrefix(options.Endpoint, "/"), bounded(newServer(options), errorPresenter(options.Log)))
	playground.Register(mux, options.PlaygroundEndpoint)

	return mux
}

// newServer returns gqlgen's server with the limits and middleware of the Provisioner. It has no transport for subscriptions and
// uploads, because the schema has neither.
func newServer(options Options) *handler.Server {
	server := handler.New(generated.NewExecutableSchema(generated.Config{
		Resolvers: root{service: options.Service},
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

	if options.Recorder != nil {
		server.AroundFields(audited(options.Recorder))
	}

	server.AroundFields(permitted)

	return server
}

// root provides gqlgen with the resolvers.
type root struct{ service Service }

// Mutation returns the resolvers of type Mutation.
func (r root) Mutation() generated.MutationResolver { return mutation{r.service} }

// Query returns the resolvers of type Query.
func (r root) Query() generated.QueryResolver { return query{r.service} }

// GardenerConfig returns the resolver of providerSpecificConfig, the only field of GardenerConfig that gqlgen cannot read from
// the struct.
func (root) GardenerConfig() generated.GardenerConfigResolver { return cluster{} }
