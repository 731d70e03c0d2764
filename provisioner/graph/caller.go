package graph

import (
	"context"
	"net/http"

	"github.com/99designs/gqlgen/graphql"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/environment-broker/environment-broker/internal/failure"
)

// The headers that say who calls.
const (
	HeaderTenant         = "tenant"
	HeaderSubAccount     = "sub-account"
	HeaderIdempotencyKey = "Idempotency-Key"
)

const maxIdempotencyKey = 255

// queryingCaller reads the headers that count for a query.
func queryingCaller(ctx context.Context) (Caller, error) {
	headers := graphql.GetOperationContext(ctx).Headers
	caller := Caller{Tenant: headers.Get(HeaderTenant), SubAccount: headers.Get(HeaderSubAccount)}

	if caller.Tenant == "" {
		return Caller{}, invalid("the header %s is missing: it names the account", HeaderTenant)
	}

	// Both become labels of the Shoot.
	for _, header := range []string{HeaderTenant, HeaderSubAccount} {
		if problems := validation.IsValidLabelValue(headers.Get(header)); len(problems) > 0 {
			return Caller{}, invalid("the header %s cannot be used as a label: %s", header, problems[0])
		}
	}

	return caller, nil
}

// mutatingCaller reads the headers that count for a mutation.
func mutatingCaller(ctx context.Context) (Caller, error) {
	caller, err := queryingCaller(ctx)
	if err != nil {
		return Caller{}, err
	}

	operation := graphql.GetOperationContext(ctx)

	caller.IdempotencyKey, err = idempotencyKey(operation.Headers)
	if err != nil {
		return Caller{}, err
	}

	mutations := graphql.CollectFields(operation, operation.Operation.SelectionSet, []string{"Mutation"})
	if caller.IdempotencyKey != "" && len(mutations) > 1 {
		return Caller{}, invalid("the header %s stands for one mutation, the request has %d", HeaderIdempotencyKey, len(mutations))
	}

	return caller, nil
}

func idempotencyKey(headers http.Header) (string, error) {
	key := headers.Get(HeaderIdempotencyKey)
	if len(key) > maxIdempotencyKey {
		return "", invalid("the header %s has more than %d characters", HeaderIdempotencyKey, maxIdempotencyKey)
	}

	for _, char := range key {
		if char < ' ' || char > '~' {
			return "", invalid("the header %s holds a character that is not printable ASCII", HeaderIdempotencyKey)
		}
	}

	return key, nil
}

func invalid(format string, args ...any) error {
	return failure.New(failure.Invalid, format, args...)
}
