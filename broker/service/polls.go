package service

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/environment-broker/environment-broker/internal/clients/provisionerclient"
)

// countedPolls counts the requests for the states of the Provisioner's operations.
type countedPolls struct {
	client *provisionerclient.Client
	// counted is called before each request, with the number of operations. Nil disables counting.
	counted func(operations int)
}

// OperationStatus requests the state of one operation.
func (p countedPolls) OperationStatus(ctx context.Context, tenant, operationID string) (provisionerclient.Operation, error) {
	p.count(1)

	return p.client.OperationStatus(ctx, tenant, operationID)
}

// OperationStatuses requests the states of several operations of a tenant at once.
func (p countedPolls) OperationStatuses(ctx context.Context, tenant string, operationIDs []string,
) map[string]provisionerclient.OperationResult {
	p.count(len(operationIDs))

	return p.client.OperationStatuses(ctx, tenant, operationIDs)
}

func (p countedPolls) count(operations int) {
	if p.counted != nil {
		p.counted(operations)
	}
}

// countPolls registers the counters of polls, and returns a function that counts a request for the given number of operations.
func countPolls(metrics prometheus.Registerer) func(operations int) {
	requests := prometheus.NewCounter(prometheus.CounterOpts{
		Name: "environment_broker_poll_requests_total",
		Help: "Requests to the Provisioner for the states of its operations.",
	})
	operations := prometheus.NewCounter(prometheus.CounterOpts{
		Name: "environment_broker_poll_operations_total",
		Help: "Operations whose states were requested from the Provisioner. One request asks for up to 50.",
	})
	metrics.MustRegister(requests, operations)

	return func(count int) {
		requests.Inc()
		operations.Add(float64(count))
	}
}
