// Package logging creates the loggers of the services and defines the names of their fields. Every new field is a constant here, so that
// one thing has one name in all log lines.
package logging

import (
	"fmt"
	"io"

	"github.com/sirupsen/logrus"
)

// The fields of log lines. Kind is the kind of an operation or the action of a request, Attempt counts the attempts of a step from 1,
// NextRun is when the engine runs the operation again, and Duration is a Go duration such as 1.5s.
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

// New returns a logger that writes one JSON object per line, with the name of the service in each. It drops lines below the level: debug,
// info, warning or error.
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
