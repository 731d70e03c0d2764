// Package logging creates the loggers of the services and defines the names of log fields. To add a field, add a constant to this
// package, so a value has the same name in all log lines.
package logging

import (
	"fmt"
	"io"
	"os"

	"github.com/sirupsen/logrus"
)

// The fields of log lines. Kind is the kind of an operation or the action of a request. Attempt is the number of the attempt at a
// step, starting at 1. NextRun is the time at which the engine runs the operation again. Duration is a Go duration such as 1.5s.
// SuccessorID is the ID of the operation that retries a failed or canceled operation. Operators filter log lines by these names,
// so renaming a field breaks their filters.
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

// Config sets the minimum level and the format of log lines.
type Config struct {
	Level  string `env:"LOG_LEVEL"  help:"minimum level of log lines: debug, info, warning or error"`
	Format string `env:"LOG_FORMAT" help:"format of log lines: json (one object per line) or text (for people; in color on a terminal, unless NO_COLOR is set)"`
}

// DefaultConfig returns the defaults: level info in JSON.
func DefaultConfig() Config { return Config{Level: "info", Format: FormatJSON} }

// formatter returns the formatter for the configured format. The text format is for people, so each line has the time of day; by
// default, logrus would write the seconds since the start.
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

// New returns a logger that writes one line per entry, with the name of the service in the Service field. It drops lines below
// the configured level. If the level or the format is unknown, the error names the environment variable, without its prefix.
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
