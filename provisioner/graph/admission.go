package graph

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"

	"github.com/99designs/gqlgen/graphql"
	"github.com/99designs/gqlgen/graphql/errcode"
	"github.com/99designs/gqlgen/graphql/handler/lru"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"
	"github.com/vektah/gqlparser/v2/parser"
	"github.com/vektah/gqlparser/v2/validator/core"
	"github.com/vektah/gqlparser/v2/validator/rules"
)

const (
	// maxErrors is the maximum number of validation errors that a response lists.
	maxErrors = 20
	// cachedQueries is the maximum number of parsed requests in the cache. Requests longer than maxCachedQuery bytes are not cached.
	cachedQueries  = 500
	maxCachedQuery = 16 << 10
)

// admission parses and validates requests before gqlgen does. Unlike gqlgen, it rejects a request with too many parts before it
// validates the request, and it stops validating when it has found more than maxErrors errors. gqlgen gets the parsed request
// through queryCache.
type admission struct {
	schema *ast.Schema
	limits limits
	rules  []core.Rule
	// admitted caches parsed, valid requests, keyed by their text.
	admitted *lru.LRU[*ast.QueryDocument]
}

// newAdmission returns an admission for the schema. It applies the rules of the GraphQL specification, except
// OverlappingFieldsCanBeMerged, which takes quadratic time and is replaced by mergeable.
func newAdmission(schema *ast.Schema, limits limits) *admission {
	a := &admission{schema: schema, limits: limits, admitted: lru.New[*ast.QueryDocument](cachedQueries)}

	standard := rules.NewDefaultRules().GetInner()
	for _, name := range slices.Sorted(maps.Keys(standard)) {
		if name != rules.OverlappingFieldsCanBeMergedRule.Name {
			a.rules = append(a.rules, core.Rule{Name: name, RuleFunc: standard[name]})
		}
	}

	a.rules = append(a.rules, mergeable())

	return a
}

// document returns the parsed and validated request, or the errors for the client.
func (a *admission) document(ctx context.Context, query string) (*ast.QueryDocument, gqlerror.List) {
	if known, ok := a.admitted.Get(ctx, query); ok {
		return known, nil
	}

	document, err := parser.ParseQueryWithTokenLimit(&ast.Source{Input: query}, maxTokens)
	if err != nil {
		problem := gqlerror.Wrap(err)
		if known, ok := errors.AsType[*gqlerror.Error](err); ok {
			problem = known
		}

		errcode.Set(problem, errcode.ParseFailed)

		return nil, gqlerror.List{problem}
	}

	if len(document.Operations) == 0 {
		problem := gqlerror.Errorf("no operation provided")
		errcode.Set(problem, errcode.ValidationFailed)

		return nil, gqlerror.List{problem}
	}

	if problem := a.limits.check(document); problem != nil {
		return nil, gqlerror.List{problem}
	}

	if problems := a.validate(document); len(problems) > 0 {
		return nil, problems
	}

	if len(query) <= maxCachedQuery {
		a.admitted.Add(ctx, query, document)
	}

	return document, nil
}

// errTooMany is the panic value that stops a validation once it has found more than maxErrors errors.
var errTooMany = errors.New("too many errors")

// validate returns the first maxErrors errors. If there are more, it adds an error that says so.
func (a *admission) validate(document *ast.QueryDocument) (problems gqlerror.List) {
	defer func() {
		if recovered := recover(); recovered != nil && recovered != errTooMany { //nolint:errorlint // must be the same value
			panic(recovered)
		}

		for _, problem := range problems {
			errcode.Set(problem, errcode.ValidationFailed)
		}
	}()

	observers := &core.Events{}

	for _, rule := range a.rules {
		rule.RuleFunc(observers, func(options ...core.ErrorOption) {
			if len(problems) == maxErrors {
				problems = append(problems, gqlerror.Errorf("there are more errors, which are not listed"))

				panic(errTooMany) // the rules offer no other way to stop them
			}

			problem := &gqlerror.Error{Rule: rule.Name}
			for _, option := range options {
				option(problem)
			}

			problems = append(problems, problem)
		})
	}

	core.Walk(a.schema, document, observers)

	return problems
}

// documentKey is the context key of an admitted document.
type documentKey struct{}

// queryCache is gqlgen's query cache. It returns the admitted document from the context.
type queryCache struct{}

// Get implements graphql.Cache.
func (queryCache) Get(ctx context.Context, _ string) (*ast.QueryDocument, bool) {
	document, ok := ctx.Value(documentKey{}).(*ast.QueryDocument)

	return document, ok
}

// Add implements graphql.Cache. It does nothing, because admission has its own cache.
func (queryCache) Add(context.Context, string, *ast.QueryDocument) {}

// admitting wraps a gqlgen transport, so that the admission checks each request before gqlgen executes it.
type admitting struct {
	graphql.Transport

	admission *admission
}

// Do implements graphql.Transport.
func (t admitting) Do(w http.ResponseWriter, r *http.Request, executor graphql.GraphExecutor) {
	t.Transport.Do(w, r, admittingExecutor{executor, t.admission})
}

// admittingExecutor wraps gqlgen's executor and passes on only the requests that the admission accepts.
type admittingExecutor struct {
	graphql.GraphExecutor

	admission *admission
}

// CreateOperationContext implements graphql.GraphExecutor.
func (e admittingExecutor) CreateOperationContext(ctx context.Context, params *graphql.RawParams) (*graphql.OperationContext, gqlerror.List) {
	document, problems := e.admission.document(ctx, params.Query)
	if len(problems) > 0 {
		return &graphql.OperationContext{RawQuery: params.Query, Headers: params.Headers}, problems
	}

	return e.GraphExecutor.CreateOperationContext(context.WithValue(ctx, documentKey{}, document), params)
}
