// Package logging creates the loggers of the services and defines the names of log fields. A new field is a constant in this package, so that
// the same value has the same name in all log lines.
package logging

import (
	"fmt"
	"io"

	"github.com/sirupsen/logrus"
)

// The fields of log lines. Kind is the kind of an operation or the action of a request. Attempt is the number of a step's attempt, from 1.
// NextRun is the time at which the engine runs the operation again. Duration is a Go duration such as 1.5s. SuccessorID is the ID of the
// operation that retries another. Operators filter by these names, so a rename is a visible change.
const (
	Service     = "service"
	OperationID = "operationID"
	SuccessorID = "successorID"
	InstanceID  = "instanceID"
	BindingID   = "bindingID"
	RuntimeID   = "runtimeID"
	PlanID      = "planID"
	Kind        = "kind"
	Stage       = "stage"
	Step        = "step"
	Attempt     = "attempt"
	NextRun     = "nextRun"
	Reason      = "reason"
	State       = "state"
	Stack       = "stack"
	Shoot       = "shoot"
	Tenant      = "tenant"
	Address     = "address"
	User        = "user"
	Originator  = "originator"
	Method      = "method"
	Path        = "path"
	Status      = "status"
	Duration    = "duration"
	RequestID   = "requestID"
)

// New returns a logger that writes one JSON object per line, with the name of the service in the field Service. It drops lines below the
// level, which is debug, info, warning or error.
func New(service, level string, output io.Writer) (logrus.FieldLogger, error) {
	parsed, err := logrus.ParseLevel(level)
	if err != nil {
		return nil, fmt.Errorf("log level %q: use debug, info, warning or error", level)
	}

	logger := logrus.New()
	logger.SetOutput(output)
	logger.SetLevel(parsed)
	logger.SetFormatter(&logrus.JSONFormatter{})

	return logger.WithField(Service, service), nil
}

// Discard returns a logger that writes nothing, for tests.
func Discard() logrus.FieldLogger {
	logger := logrus.New()
	logger.SetOutput(io.Discard)

	return logger
}
