package graph

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/httpserver"
	"github.com/environment-broker/environment-broker/internal/httpserver/bounds"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/internal/tracing"
	"github.com/environment-broker/environment-broker/storage/auditlog"
)

// bounded limits the body of a request to maxBody bytes and applies the limits of package bounds to its JSON. gqlgen would report a
// longer body as a failed operation with status 200, which proxies and other clients that do not know GraphQL take for a success.
func bounded(next http.Handler, present graphql.ErrorPresenterFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))

		var tooLong *http.MaxBytesError

		switch {
		case errors.As(err, &tooLong):
			refuse(w, http.StatusRequestEntityTooLarge, present(r.Context(),
				failure.New(failure.Invalid, "the request is larger than %d KiB: reduce it, or split it into several requests", maxBody>>10)))
		case err != nil:
			refuse(w, http.StatusBadRequest, present(r.Context(), failure.Wrap(failure.Invalid, err, "the request is incomplete")))
		case bounds.JSON("the request", variablesIn(r, body)) != nil:
			refuse(w, http.StatusBadRequest, present(r.Context(), bounds.JSON("the request", variablesIn(r, body))))
		default:
			r.Body = io.NopCloser(bytes.NewReader(body))
			next.ServeHTTP(w, r)
		}
	})
}

// variablesIn returns the JSON text of a request: the body or, for a GET request, an array of its variables and extensions.
func variablesIn(r *http.Request, body []byte) []byte {
	if r.Method == http.MethodGet {
		query := r.URL.Query()

		return []byte("[" + query.Get("variables") + "," + query.Get("extensions") + "]")
	}

	return body
}

// refuse responds to a request that does not reach gqlgen, in the format of gqlgen's errors.
func refuse(w http.ResponseWriter, status int, problem *gqlerror.Error) {
	text, err := json.Marshal(graphql.Response{Errors: gqlerror.List{problem}})
	if err != nil {
		http.Error(w, textInternal, http.StatusInternalServerError)

		return
	}

	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(text)
}

// traced starts the span of a request, and records the name of the request for the access log and the metrics. The span is named
// after the first field, because clients choose the names of GraphQL operations freely. An invalid request has no span.
func traced(ctx context.Context, next graphql.ResponseHandler) *graphql.Response {
	if !graphql.HasOperationContext(ctx) || graphql.GetOperationContext(ctx).Operation == nil {
		return next(ctx)
	}

	operation := graphql.GetOperationContext(ctx).Operation
	name := string(operation.Operation)

	if field, ok := operation.SelectionSet[0].(*ast.Field); ok {
		name += " " + field.Name
	}

	// The names come from the schema, so the number of metric labels is bounded. Queries count as polls, because most of them read the
	// status of an operation.
	httpserver.NoteRoute(ctx, name)
	httpserver.Note(ctx, logging.Kind, name)

	if operation.Operation != ast.Mutation {
		httpserver.NotePoll(ctx)
	}

	ctx, end := tracing.Begin(ctx, name, operation.Operation == ast.Mutation)
	if id := tracing.ID(ctx); id != "" {
		httpserver.Note(ctx, logging.TraceID, id)
	}

	response := next(ctx)

	if len(response.Errors) > 0 {
		httpserver.NoteResult(ctx, statusOf(response.Errors[0]))
		end(response.Errors[0].Message)
	} else {
		end("")
	}

	return response
}

// statusOf returns the HTTP status that an error would have in the operator API. Errors without a kind are caused by the request.
func statusOf(err *gqlerror.Error) int {
	problem, ours := errors.AsType[*failure.Error](err)
	if !ours {
		return http.StatusBadRequest
	}

	return failure.MappingOf(problem.Kind).HTTP
}

// Recorder records rejected mutations and denied requests for kubeconfigs in the audit log.
type Recorder interface {
	// Refused records the rejected request. It does not return an error: a failure to record is only logged, and the client gets
	// the same rejection either way.
	Refused(ctx context.Context, entry auditlog.Entry)
}

// audited records each rejected mutation under its name in the API, and each denied request for a kubeconfig. The record contains
// the tenant's label, if the request names a tenant. Accepted mutations are not recorded here: the transaction that accepts an
// operation stores the audit entry of that operation.
func audited(recorder Recorder) graphql.FieldMiddleware {
	return func(ctx context.Context, next graphql.Resolver) (any, error) {
		result, err := next(ctx)

		field := graphql.GetFieldContext(ctx)
		if err == nil || !isMutation(field) && !isKubeconfig(field) {
			return result, err
		}

		problem := failure.Of(err)

		entry := auditlog.Entry{
			Action: field.Field.Name, InstanceID: idOf(field), Status: failure.MappingOf(problem.Kind).HTTP, Code: problem.Reason,
		}
		if isKubeconfig(field) {
			entry.Action = auditlog.ActionAdminKubeconfig
		}

		if caller, err := queryingCaller(ctx); err == nil {
			entry.Account, entry.After = caller.Tenant, auditlog.Fields{"tenant": caller.Tenant}
		}

		recorder.Refused(ctx, entry)

		return result, err
	}
}
