package logging

import (
	"fmt"
	stdlog "log"
	"strings"

	"github.com/go-logr/logr"
	"github.com/sirupsen/logrus"
	"go.opentelemetry.io/otel"
	"k8s.io/klog/v2"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
)

// Library is the log field that names the library that wrote the line, or the part of the library.
const Library = "library"

// CaptureLibraries makes the libraries of the process write to log: client-go and its watches (klog), controller-runtime,
// OpenTelemetry, and everything that uses the standard logger, such as net/http and log/slog. By default, they would write to
// standard error in their own formats. Because it changes global variables of these libraries, only main may call it, before
// anything else.
func CaptureLibraries(log logrus.FieldLogger) {
	klog.SetLogger(Logr(log).WithName("client-go"))
	ctrllog.SetLogger(Logr(log).WithName("controller-runtime"))

	otel.SetLogger(Logr(log).WithName("opentelemetry"))
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) {
		log.WithField(Library, "opentelemetry").WithError(err).Warn("tracing failed")
	}))

	stdlog.SetFlags(0)
	stdlog.SetPrefix("")
	stdlog.SetOutput(standard{log.WithField(Library, "go")})
}

// standard is the output of the standard logger, which calls Write once per line.
type standard struct{ log logrus.FieldLogger }

// Write implements io.Writer.
func (s standard) Write(line []byte) (int, error) {
	s.log.Warn(strings.TrimSpace(string(line)))

	return len(line), nil
}

// Logr returns a logger for Kubernetes libraries that writes to log. The keys of a line become fields, and the name of the logger
// becomes the Library field. Lines with verbosity 1 have level debug. Lines with a higher verbosity are dropped.
func Logr(log logrus.FieldLogger) logr.Logger { return logr.New(sink{log: log}) }

// sink implements logr.LogSink.
type sink struct {
	log  logrus.FieldLogger
	name string
}

// Init implements logr.LogSink.
func (sink) Init(logr.RuntimeInfo) {}

// Enabled implements logr.LogSink. Levels above 1 are off, because they print each request and each object.
func (s sink) Enabled(level int) bool {
	entry, is := s.log.(*logrus.Entry)

	return level == 0 || level == 1 && is && entry.Logger.IsLevelEnabled(logrus.DebugLevel)
}

// Info implements logr.LogSink.
func (s sink) Info(level int, text string, pairs ...any) {
	if level == 0 {
		s.fields(pairs).Info(text)
	} else {
		s.fields(pairs).Debug(text)
	}
}

// Error implements logr.LogSink. The level is warning, because the libraries retry after most problems. If an operation finally
// fails, the service itself logs an error.
func (s sink) Error(err error, text string, pairs ...any) {
	s.fields(pairs).WithError(err).Warn(text)
}

// WithValues implements logr.LogSink.
func (s sink) WithValues(pairs ...any) logr.LogSink {
	s.log = s.fields(pairs)

	return s
}

// WithName implements logr.LogSink.
func (s sink) WithName(name string) logr.LogSink {
	if s.name != "" {
		name = s.name + "/" + name
	}

	s.name = name

	return s
}

// fields returns the logger with the key-value pairs as fields. A key that our own lines always have, or that logrus sets, gets
// the "library." prefix.
func (s sink) fields(pairs []any) *logrus.Entry {
	const pair = 2

	fields := logrus.Fields{}
	if s.name != "" {
		fields[Library] = s.name
	}

	for i := 0; i+1 < len(pairs); i += pair {
		key := fmt.Sprint(pairs[i])
		switch key {
		case Service, Library, "error", "msg", "level", "time":
			key = "library." + key
		}

		fields[key] = plain(pairs[i+1])
	}

	return s.log.WithFields(fields)
}

// named is implemented by Kubernetes objects. Only the namespace and the name of an object are logged, because the object can be
// a Secret.
type named interface {
	GetNamespace() string
	GetName() string
}

// plain converts a value to one that JSON can encode. A Kubernetes object becomes its name, and other structures become text.
func plain(value any) any {
	switch typed := value.(type) {
	case nil, bool, string, int, int32, int64, uint64, float64:
		return value
	case error:
		return typed.Error()
	case named:
		return strings.TrimPrefix(typed.GetNamespace()+"/"+typed.GetName(), "/")
	default:
		return fmt.Sprint(value)
	}
}
