// Package logging creates the loggers of the services and defines the names of log fields. A new field is a constant in this package, so that
// the same value has the same name in all log lines.
package logging

import (
	"fmt"
	"io"
	"os"

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
	TraceID     = "traceID"
	Version     = "version"
	Commit      = "commit"
)

// The values of Config.Format.
const (
	FormatJSON = "json"
	FormatText = "text"
)

// Config sets which lines a service logs and their format.
type Config struct {
	Level  string `env:"LOG_LEVEL"  help:"debug, info, warning or error"`
	Format string `env:"LOG_FORMAT" help:"json (one object per line) or text (for people; in colour on a terminal, unless NO_COLOR is set)"`
}

// DefaultConfig returns the defaults: JSON without lines for debugging.
func DefaultConfig() Config { return Config{Level: "info", Format: FormatJSON} }

// formatter returns the formatter of the configured format. Text is for people, so it has the time of day of each line; logrus would write
// the seconds since the start.
func (c Config) formatter() (logrus.Formatter, error) {
	switch c.Format {
	case FormatJSON:
		return &logrus.JSONFormatter{}, nil
	case FormatText:
		return &logrus.TextFormatter{FullTimestamp: true, DisableColors: os.Getenv("NO_COLOR") != ""}, nil
	default:
		return nil, fmt.Errorf("LOG_FORMAT: %q is unknown: use %s or %s", c.Format, FormatJSON, FormatText)
	}
}

// New returns a logger that writes one line per entry, with the name of the service in the field Service. It drops lines below the level. The
// error of an unknown level or format names the variable without its prefix.
func New(service string, config Config, output io.Writer) (logrus.FieldLogger, error) {
	level, err := logrus.ParseLevel(config.Level)
	if err != nil {
		return nil, fmt.Errorf("LOG_LEVEL: %q is unknown: use debug, info, warning or error", config.Level)
	}

	formatter, err := config.formatter()
	if err != nil {
		return nil, err
	}

	logger := logrus.New()
	logger.SetOutput(output)
	logger.SetLevel(level)
	logger.SetFormatter(formatter)

	return logger.WithField(Service, service), nil
}

// Discard returns a logger that writes nothing, for tests.
func Discard() logrus.FieldLogger {
	logger := logrus.New()
	logger.SetOutput(io.Discard)

	return logger
}
