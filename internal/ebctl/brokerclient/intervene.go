package brokerclient

import (
	"context"
	"net/http"

	"github.com/environment-broker/environment-broker/internal/operatorapi"
)

// The verbs of interventions.
const (
	Cancel = "cancel"
	Retry  = "retry"
	Skip   = "skip"
)

// Intervene has something done about an operation: the verb is Cancel, Retry or Skip. It returns the operation as it is then,
// without its timeline; after Retry that is the new one. The broker records who asked and why.
func (c *Client) Intervene(ctx context.Context, verb, operationID string, wanted operatorapi.Intervention) (operatorapi.Operation, error) {
	var operation operatorapi.Operation

	path := joined([]string{"operations", operationID, verb})
	_, err := c.call(ctx, request{method: http.MethodPost, path: path, body: wanted}, &operation)

	return operation, err
}
