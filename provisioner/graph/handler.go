package graph

import (
	"net/http"
	"strings"

	"github.com/99designs/gqlgen/graphql/handler"
	"github.com/99designs/gqlgen/graphql/handler/extension"
	"github.com/99designs/gqlgen/graphql/handler/transport"
	"github.com/sirupsen/logrus"

	"github.com/environment-broker/environment-broker/provisioner/graph/generated"
	"github.com/environment-broker/environment-broker/provisioner/graph/playground"
)

// Options are the dependencies of a handler.
type Options struct {
	Service Service
	Log     logrus.FieldLogger
	// Recorder records rejected mutations and denied requests for kubeconfigs. If it is nil, they are not recorded.
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
// GraphQL gets status 400, 413 or 422. An operationChanges query may take half a minute, so the server's write timeout must be
// longer.
func NewHandler(options Options) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/"+strings.TrimPrefix(options.Endpoint, "/"), bounded(newServer(options), errorPresenter(options.Log)))
	playground.Register(mux, options.PlaygroundEndpoint)

	return mux
}

// newServer returns gqlgen's server with the Provisioner's limits and middleware. It has no transport for subscriptions or
// uploads, because the schema has neither.
func newServer(options Options) *handler.Server {
	schema := generated.NewExecutableSchema(generated.Config{Resolvers: root{service: options.Service}})
	server := handler.New(schema)
	limits := limits{fields: maxFields, depth: maxDepth, cost: maxCost}
	admission := newAdmission(schema.Schema(), limits)

	server.AddTransport(admitting{transport.GET{}, admission})
	server.AddTransport(admitting{transport.POST{}, admission})
	server.SetErrorPresenter(errorPresenter(options.Log))
	server.SetRecoverFunc(recoverer(options.Log))
	server.SetQueryCache(queryCache{})
	server.Use(extension.Introspection{})
	server.Use(limits)
	server.AroundResponses(traced)
	server.AroundResponses(shortened)

	if options.Recorder != nil {
		server.AroundFields(audited(options.Recorder))
	}

	server.AroundFields(permitted)
	server.AroundFields(limited)

	return server
}

// root provides gqlgen with the resolvers.
type root struct{ service Service }

// Mutation returns the resolvers of the Mutation type.
func (r root) Mutation() generated.MutationResolver { return mutation{r.service} }

// Query returns the resolvers of the Query type.
func (r root) Query() generated.QueryResolver { return query{r.service} }

// OperationStatus returns the resolver of OperationStatus.errors, which needs another database query.
func (r root) OperationStatus() generated.OperationStatusResolver { return operationErrors{r.service} }

// GardenerConfig returns the resolver of providerSpecificConfig, the only field of GardenerConfig that gqlgen cannot read from
// the struct.
func (root) GardenerConfig() generated.GardenerConfigResolver { return cluster{} }
