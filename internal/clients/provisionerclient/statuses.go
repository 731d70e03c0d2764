package provisionerclient

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/Khan/genqlient/graphql"

	"github.com/environment-broker/environment-broker/internal/clients/provisionerclient/wire"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/upstream/graphqlclient"
)

// MaxStatuses is the maximum number of operations in one request. Our Provisioner allows 100. The Kyma Provisioner has no limit,
// but reads all operations of a request from its database concurrently.
const MaxStatuses = 50

// ErrTooManyOperations is wrapped by an error if the Provisioner, or a proxy in front of it, may have rejected the request
// because of its number of operations. Requests for single operations may succeed.
var ErrTooManyOperations = errors.New("the request may contain too many operations")

// OperationResult is the result of OperationStatuses for one operation.
type OperationResult struct {
	Operation Operation
	// Err is the error for the operation, or nil. It is an error that OperationStatus could return, or one that wraps
	// ErrTooManyOperations.
	Err error
}

// OperationStatuses returns the states of several operations with a single request. The result has an entry for each ID. An error
// about one operation affects only its entry; if the whole request fails, each entry contains the error of the request.
//
// The tenant must own all operations: the Kyma Provisioner makes the tenant of a request the owner of each runtime to which the
// request refers. operationIDs must have at most MaxStatuses elements.
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
			results[id] = failed(id, call.missing("the operation"))
		}
	}

	return results
}

func failed(operationID string, err error) OperationResult {
	return OperationResult{Err: fmt.Errorf("reading operation %s: %w", operationID, err)}
}

// statuses contains the operations in a response, and the errors that affect single operations. Both are indexed by alias.
type statuses struct {
	operations map[string]*wire.Operation
	refused    map[string]error
}

// statuses sends one request for all operations. The returned error applies to each operation that has neither a status nor an
// error in the result.
func (c *call) statuses(ctx context.Context, operationIDs []string) (statuses, error) {
	found := statuses{refused: map[string]error{}}

	answer, err := c.send(ctx, statusesRequest(operationIDs))
	if err != nil {
		return found, err
	}

	problems, err := graphqlclient.DecodePartial[graphqlError](answer, &found.operations)
	whole := c.malformed(err)

	if whole != nil {
		found.operations = nil // decoding may have stopped halfway
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
			"the Provisioner rejected a request for %d operations at once: the operations are now requested one by one", len(operationIDs)).
			WithReason(failure.ReasonHTTPStatus, failure.ComponentProvisioner)
	}

	return found, whole
}

// saysTooMany reports whether a request may have failed because it contained too many operations. A GraphQL server that limits
// aliases rejects the request, and a proxy that limits the size of requests responds with a 4xx status.
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

// aliasOf returns the GraphQL alias for the operation at the given position in the request.
func aliasOf(position int) string { return "a" + strconv.Itoa(position) }

// statusesRequest returns the request for several operations, with one field per operation. It is not generated, because
// genqlient supports only a fixed number of fields. With fifty optional fields, the generated code and each request would be
// larger. Each field selects the same subfields as the generated request for a single operation.
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
