package graph

import (
	"context"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/99designs/gqlgen/graphql"
	"k8s.io/utils/ptr"

	"github.com/environment-broker/environment-broker/internal/auth"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/httpserver/bounds"
	"github.com/environment-broker/environment-broker/internal/labels/tenancy"
	"github.com/environment-broker/environment-broker/provisioner/orders"
)

// The headers that identify the caller, as in Kyma Provisioner. Mutations also read orders.HeaderIdempotencyKey.
const (
	// HeaderTenant contains the global account. Every query and mutation needs it, except operationChanges and the lists that
	// clients with the operator role read.
	HeaderTenant = "tenant"
	// HeaderSubAccount contains the subaccount. It is optional.
	HeaderSubAccount = "sub-account"
)

// maxIdempotencyKey is the maximum length of an idempotency key, in characters.
const maxIdempotencyKey = 255

// queryingCaller reads the caller of a query from the headers. If an ID is not a valid label value, it replaces the ID with the
// value of the label on the Shoots, so that all ownership checks compare labels. It trusts the headers, because package service
// admits only authorized clients.
func queryingCaller(ctx context.Context) (orders.Caller, error) {
	headers := graphql.GetOperationContext(ctx).Headers

	var caller orders.Caller
	caller.Tenant, caller.OriginalTenant = tenancy.Read(headers, HeaderTenant, tenancy.HeaderOriginalTenant)
	caller.SubAccount, caller.OriginalSubAccount = tenancy.Read(headers, HeaderSubAccount, tenancy.HeaderOriginalSubAccount)

	if caller.Tenant == "" {
		return orders.Caller{}, invalid("the %s header is missing: it must contain the account ID", HeaderTenant)
	}

	if max(utf8.RuneCountInString(caller.OriginalTenant), utf8.RuneCountInString(caller.OriginalSubAccount)) > bounds.ID {
		return orders.Caller{}, invalid("the %s and %s headers must each have at most %d characters", HeaderTenant, HeaderSubAccount, bounds.ID)
	}

	return caller, nil
}

// listingTenant returns the tenant whose entries a list may contain, or "" for all tenants. wanted is the tenant in the filter,
// or nil. If the request has both a tenant header and a tenant in the filter, they must name the same tenant. Only clients with
// the operator role may omit the header.
func listingTenant(ctx context.Context, wanted *string) (string, error) {
	tenant := tenancy.Label(ptr.Deref(wanted, ""))

	if graphql.GetOperationContext(ctx).Headers.Get(HeaderTenant) == "" {
		if auth.FromContext(ctx).Has(auth.RoleOperator) {
			return tenant, nil
		}

		return "", invalid("the %s header is missing: a list without it requires the %s role", HeaderTenant, auth.RoleOperator)
	}

	caller, err := queryingCaller(ctx)
	if err != nil {
		return "", err
	}

	if tenant != "" && tenant != caller.Tenant {
		return "", invalid("the %s header contains a different account than the filter", HeaderTenant).At("filter.tenant")
	}

	return caller.Tenant, nil
}

// mutatingCaller reads the caller of a mutation from the headers. It rejects an idempotency key on a request with several
// mutations, because a key identifies one operation.
func mutatingCaller(ctx context.Context) (orders.Caller, error) {
	caller, err := queryingCaller(ctx)
	if err != nil {
		return orders.Caller{}, err
	}

	operation := graphql.GetOperationContext(ctx)

	caller.IdempotencyKey, err = idempotencyKey(operation.Headers)
	if err != nil {
		return orders.Caller{}, err
	}

	mutations := graphql.CollectFields(operation, operation.Operation.SelectionSet, []string{"Mutation"})
	if caller.IdempotencyKey != "" && len(mutations) > 1 {
		return orders.Caller{}, invalid("the %s header identifies one mutation, but the request has %d",
			orders.HeaderIdempotencyKey, len(mutations))
	}

	return caller, nil
}

// idempotencyKey returns the idempotency key, or "" if there is none. The key must be printable ASCII: it is stored, logged and
// sent in headers without encoding.
func idempotencyKey(headers http.Header) (string, error) {
	key := headers.Get(orders.HeaderIdempotencyKey)
	if len(key) > maxIdempotencyKey {
		return "", invalid("the %s header has more than %d characters", orders.HeaderIdempotencyKey, maxIdempotencyKey)
	}

	if strings.ContainsFunc(key, func(char rune) bool { return char < ' ' || char > '~' }) {
		return "", invalid("the %s header contains a character that is not printable ASCII", orders.HeaderIdempotencyKey)
	}

	return key, nil
}

// invalid returns failure.Invalid without a reason. The error presenter adds reasonBadRequest.
func invalid(format string, args ...any) *failure.Error {
	return failure.New(failure.Invalid, format, args...)
}
