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
)

// The keys of an error's extensions, which clients decide by.
const (
	extensionCode      = "error_code"
	extensionReason    = "error_reason"
	extensionComponent = "error_component"
	// extensionFields is there only where fields of the request are wrong. Clients of the former Provisioner pass it by.
	extensionFields = "error_fields"
)

const (
	reasonInternal   = "err_provisioner_internal"
	reasonBadRequest = "err_provisioner_bad_request"

	textInternal = "internal error"
	// maxMessage bounds the messages about requests that are no valid GraphQL, as they repeat parts of it.
	maxMessage = 300
)

// explained makes sure that an error of a Runtimes is known to be one: what has no kind is a fault of ours. Errors that reach
// the presenter without a kind are then gqlgen's, about the request.
func explained(ctx context.Context, err error) error {
	var known *failure.Error
	if err == nil || errors.As(err, &known) {
		return err
	}

	if ctx.Err() != nil {
		return failure.Wrap(failure.Transient, err, "the request ended before its answer was ready")
	}

	return failure.Wrap(failure.Internal, err, textInternal)
}

// errorPresenter turns errors into what clients get, and logs what they must not get.
func errorPresenter(log logrus.FieldLogger) graphql.ErrorPresenterFunc {
	return func(ctx context.Context, err error) *gqlerror.Error {
		presented := *graphql.DefaultErrorPresenter(ctx, err)

		known, ours := errors.AsType[*failure.Error](err)
		if !ours {
			known = failure.New(failure.Invalid, "%s", requestProblem(presented.Message)).At(argument(presented.Path)...)
		}

		presented.Message = known.Text
		if known.Kind == failure.Internal {
			presented.Message = textInternal
		}

		presented.Extensions = extended(presented.Extensions, known)

		if ours {
			logError(log, &presented, known)
		} else {
			// Whoever sent it reads what is wrong with it. That may repeat a value, which may be secret.
			log.WithField(logging.Kind, known.Kind).Info("a request is no valid GraphQL for the schema")
		}

		return &presented
	}
}

func logError(log logrus.FieldLogger, presented *gqlerror.Error, known *failure.Error) {
	log = log.WithFields(logrus.Fields{logging.Kind: known.Kind, logging.Reason: known.Reason}).WithError(known)
	text := "GraphQL request failed"

	if path := presented.Path.String(); path != "" {
		text = "GraphQL field " + path + " failed"
	}

	if known.Kind == failure.Internal {
		log.Error(text)
	} else {
		log.Info(text)
	}
}

// recoverer turns a panic into an internal error and leaves its stack in the log.
func recoverer(log logrus.FieldLogger) graphql.RecoverFunc {
	return func(_ context.Context, panicked any) error {
		log.WithField(logging.Stack, string(debug.Stack())).Error("panic in a resolver")

		return failure.Wrap(failure.Internal, fmt.Errorf("panic: %v", panicked), textInternal)
	}
}

// requestProblem shortens gqlgen's message about a request and keeps the request's body out of it.
func requestProblem(message string) string {
	if strings.HasPrefix(message, "json request body could not be decoded") {
		message, _, _ = strings.Cut(message, " body:")
	}

	if letters := []rune(message); len(letters) > maxMessage {
		message = string(letters[:maxMessage]) + "…"
	}

	return message
}

// argument is the part of a request that gqlgen's path of an error leads to: below the field that was asked for, or in a variable.
func argument(path ast.Path) []string {
	if len(path) < 2 {
		return nil
	}

	return []string{path[1:].String()}
}

// extended returns the extensions, which gqlgen may have set already, with what clients decide by.
func extended(extensions map[string]any, known *failure.Error) map[string]any {
	reason := reasonInternal
	if known.Kind == failure.Invalid {
		reason = reasonBadRequest
	}

	all := map[string]any{
		extensionCode:      failure.MappingOf(known.Kind).GraphQL,
		extensionReason:    cmp.Or(known.Reason, reason),
		extensionComponent: cmp.Or(known.Component, failure.ComponentProvisioner),
	}

	if len(known.Fields) > 0 {
		all[extensionFields] = known.Fields
	}

	maps.Copy(all, extensions)

	return all
}
