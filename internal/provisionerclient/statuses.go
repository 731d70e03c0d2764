package provisionerclient

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/Khan/genqlient/graphql"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/graphqlclient"
	"github.com/environment-broker/environment-broker/internal/provisionerclient/wire"
)

// MaxStatuses is the highest number of operations in one request. Our Provisioner allows 100; the Kyma Provisioner has no limit, but
// reads the operations of a request from its database at the same time.
const MaxStatuses = 50

// ErrTooManyOperations is wrapped by an error if the Provisioner, or a proxy in front of it, rejects a request because it asks for
// several operations at once. A request for one of them may succeed.
var ErrTooManyOperations = errors.New("the request asks for several operations at once")

// OperationResult is the response about one of several operations.
type OperationResult struct {
	Operation Operation
	// Err is like the error of OperationStatus.
	Err error
}

// OperationStatuses returns operations of one tenant, like OperationStatus but with a single request for all of them. The result has
// every ID. An error about one operation is the error of its result only; if the request fails as a whole, all results have its error.
//
// The tenant must own all operations: the Kyma Provisioner makes the tenant of a request the owner of each runtime in it. There may be
// at most MaxStatuses IDs.
func (c *Client) OperationStatuses(ctx context.Context, tenant string, operationIDs []string) map[string]OperationResult {
	results := make(map[string]OperationResult, len(operationIDs))

	if len(operationIDs) == 1 {
		operation, err := c.OperationStatus(ctx, tenant, operationIDs[0])
		results[operationIDs[0]] = OperationResult{Operation: operation, Err: err}

		return results
	}

	call := c.call("report the state of the operation", Caller{Tenant: tenant})
	statuses, err := call.statuses(ctx, operationIDs)

	for i, id := range operationIDs {
		alias := aliasOf(i)

		switch own := statuses.refused[alias]; {
		case own != nil:
			results[id] = failed(id, own)
		case statuses.operations[alias] != nil:
			results[id] = OperationResult{Operation: operationOf(statuses.operations[alias])}
		case err != nil:
			results[id] = failed(id, err)
		default:
			results[id] = failed(id, call.lacking("the operation"))
		}
	}

	return results
}

// failed returns the result of an operation whose state is unknown.
func failed(operationID string, err error) OperationResult {
	return OperationResult{Err: fmt.Errorf("reading operation %s: %w", operationID, err)}
}

// statuses is a response about several operations, by alias.
type statuses struct {
	operations map[string]*wire.Operation
	refused    map[string]error
}

// statuses asks for the operations. The error is about the whole request.
func (c *call) statuses(ctx context.Context, operationIDs []string) (statuses, error) {
	found := statuses{refused: map[string]error{}}

	answer, err := c.send(ctx, statusesRequest(operationIDs))
	if err != nil {
		return found, err
	}

	problems, err := graphqlclient.DecodePartial[graphqlError](answer, &found.operations)
	whole := c.malformed(err)

	if whole != nil {
		found.operations = nil // may be decoded in part
	}

	for _, problem := range problems {
		alias := problem.Path.alias()

		switch {
		case alias == "" && whole == nil:
			whole = c.refused(&problem)
		case alias != "" && found.refused[alias] == nil:
			found.refused[alias] = c.refused(&problem)
		}
	}

	if len(found.operations) == 0 && len(found.refused) == 0 && saysTooMany(answer.Status, whole) {
		whole = failure.Wrap(failure.Transient, fmt.Errorf("%w: %w", ErrTooManyOperations, whole),
			"the Provisioner rejected a request for %d operations at once, which are now requested one by one", len(operationIDs)).
			WithReason(failure.ReasonHTTPStatus, failure.ComponentProvisioner)
	}

	return found, whole
}

// saysTooMany recognizes a response that may be due to the number of operations: a GraphQL server that limits aliases refuses the
// request, and a proxy that limits its size responds with a status of its own.
func saysTooMany(status int, err error) bool {
	switch {
	case err == nil:
		return false
	case status == http.StatusBadRequest, status == http.StatusRequestEntityTooLarge, status == http.StatusUnprocessableEntity:
		return true
	default:
		return failure.Is(err, failure.Permanent)
	}
}

// aliasOf returns the alias of an operation by its position in the request.
func aliasOf(position int) string { return "a" + strconv.Itoa(position) }

// statusesRequest returns the request for several operations. The document is built here, because genqlient generates a document with a
// fixed number of fields: fifty fields with @include, and as many variables and members of a struct, would be more code and a
// longer request. The fields of an operation are those of the generated request for one.
func statusesRequest(operationIDs []string) *graphql.Request {
	const name = "OperationStatuses"

	var (
		parameters, fields strings.Builder

		variables = make(map[string]string, len(operationIDs))
	)

	for i, id := range operationIDs {
		alias := aliasOf(i)
		variables[alias] = id

		fmt.Fprintf(&parameters, "$%s: String! ", alias)
		fmt.Fprintf(&fields, "%s: runtimeOperationStatus(id: $%[1]s) { ...Operation }\n", alias)
	}

	_, fragment, _ := strings.Cut(wire.OperationStatus_Operation, "fragment Operation ")

	return &graphql.Request{
		OpName: name, Variables: variables,
		Query: "query " + name + "(" + parameters.String() + ") {\n" + fields.String() + "}\nfragment Operation " + fragment,
	}
}
