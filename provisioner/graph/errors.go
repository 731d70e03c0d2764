package graph

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime/debug"
	"strings"

	"github.com/99designs/gqlgen/graphql"
	"github.com/sirupsen/logrus"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/internal/tracing"
)

// The keys of an error's extensions. Kyma Provisioner uses the same names. Clients read the extensions instead of the message.
const (
	extensionCode      = "error_code"
	extensionReason    = "error_reason"
	extensionComponent = "error_component"
	// extensionFields is set only if fields of the request are invalid. Clients of Kyma Provisioner ignore it.
	extensionFields = "error_fields"
	// extensionTrace is set only if the trace of the request was sampled.
	extensionTrace = "trace_id"
)

const (
	// The reasons of errors that have no reason of their own, as in Kyma Provisioner.
	reasonInternal   = "err_provisioner_internal"
	reasonBadRequest = "err_provisioner_bad_request"

	// textInternal replaces the message of an internal error, which may contain details that clients must not see.
	textInternal = "internal error"
	// maxMessage limits messages about invalid GraphQL, in characters, because gqlgen repeats parts of the request in them.
	maxMessage = 300
	// maxText limits the Service's messages, in characters. Such a message can list many problems of an order.
	maxText = 2000
	// maxTexts limits the total length of the messages in a response, in bytes. In a longer response, each message has at most
	// maxShortMessage characters.
	maxTexts        = 16 << 10
	maxShortMessage = 100
)

// explained returns a failure.Error of the Service unchanged. It converts any other error to a transient error if the request has ended,
// and otherwise to an internal error. Resolvers pass all errors of the Service through explained. The presenter can therefore attribute
// any other error to gqlgen and the request.
func explained(ctx context.Context, err error) error {
	var problem *failure.Error
	if err == nil || errors.As(err, &problem) {
		return err
	}

	if ctx.Err() != nil {
		return failure.Wrap(failure.Transient, err, "the request ended before its response was ready")
	}

	return failure.Wrap(failure.Internal, err, textInternal)
}

// errorPresenter returns the function that converts errors to the form that clients see, and logs their causes.
func errorPresenter(log logrus.FieldLogger) graphql.ErrorPresenterFunc {
	return func(ctx context.Context, err error) *gqlerror.Error {
		presented := *graphql.DefaultErrorPresenter(ctx, err)

		problem, ours := errors.AsType[*failure.Error](err)
		if !ours {
			problem = failure.New(failure.Invalid, "%s", requestProblem(presented.Message)).At(argument(presented.Path)...)
		}

		presented.Message = failure.Shorten(problem.ForOperators(), maxText)
		if problem.Kind == failure.Internal {
			presented.Message = textInternal
		}

		presented.Extensions = extended(presented.Extensions, problem)
		if id := tracing.ID(ctx); id != "" {
			presented.Extensions[extensionTrace] = id
		}

		if ours {
			logError(log, &presented, problem)
		} else {
			// The log line omits the message, because it may quote a secret value of the request. Only the client sees it.
			log.WithField(logging.Kind, problem.Kind).Info("invalid GraphQL request")
		}

		return &presented
	}
}

// shortened is a middleware that limits the messages of a response to maxTexts bytes. One request can cause a hundred errors, one for
// each runtime that it names.
func shortened(ctx context.Context, next graphql.ResponseHandler) *graphql.Response {
	response := next(ctx)
	if response == nil {
		return nil
	}

	total := 0
	for _, problem := range response.Errors {
		total += len(problem.Message)
	}

	if total > maxTexts {
		for _, problem := range response.Errors {
			problem.Message = failure.Shorten(problem.Message, maxShortMessage)
		}
	}

	return response
}

// logError logs an error with its causes. An internal error is a fault of the Provisioner and has level error. All other errors
// have level info, because the client handles them.
func logError(log logrus.FieldLogger, presented *gqlerror.Error, problem *failure.Error) {
	log = log.WithFields(logrus.Fields{logging.Kind: problem.Kind, logging.Reason: problem.Reason}).WithError(problem)
	text := "GraphQL request failed"

	if path := presented.Path.String(); path != "" {
		text = "GraphQL field " + path + " failed"
	}

	if problem.Kind == failure.Internal {
		log.Error(text)
	} else {
		log.Info(text)
	}
}

// recoverer turns a panic into an internal error and logs its stack.
func recoverer(log logrus.FieldLogger) graphql.RecoverFunc {
	return func(_ context.Context, panicked any) error {
		log.WithField(logging.Stack, string(debug.Stack())).Error("panic in a resolver")

		return failure.Wrap(failure.Internal, fmt.Errorf("panic: %v", panicked), textInternal)
	}
}

// requestProblem removes the request's body from gqlgen's message about an invalid request, and shortens the message to
// maxMessage characters.
func requestProblem(message string) string {
	if strings.HasPrefix(message, "json request body could not be decoded") {
		message, _, _ = strings.Cut(message, " body:")
	}

	return failure.Shorten(message, maxMessage)
}

// argument returns the path of an error within the arguments or variables of a field. It drops the first element of the path,
// which is the field or the word "variable".
func argument(path ast.Path) []string {
	if len(path) < 2 {
		return nil
	}

	return []string{path[1:].String()}
}

// extended adds code, reason, component and fields of the error to the extensions. It does not replace values that gqlgen has
// set.
func extended(extensions map[string]any, problem *failure.Error) map[string]any {
	reason := reasonInternal
	if problem.Kind == failure.Invalid {
		reason = reasonBadRequest
	}

	all := map[string]any{
		extensionCode:      failure.MappingOf(problem.Kind).GraphQL,
		extensionReason:    cmp.Or(problem.Reason, reason),
		extensionComponent: cmp.Or(problem.Component, failure.ComponentProvisioner),
	}

	if len(problem.Fields) > 0 {
		all[extensionFields] = problem.Fields
	}

	maps.Copy(all, extensions)

	return all
}
