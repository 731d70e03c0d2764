package tracing

import (
	"errors"
	"fmt"
	"net/url"

	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
)

// Config says where spans go.
type Config struct {
	Endpoint string  `env:"TRACING_ENDPOINT" help:"where spans are sent by OTLP over HTTP, like http://collector:4318; empty for nowhere. Headers, certificates and limits: the standard OTEL_… variables"`
	Sample   float64 `env:"TRACING_SAMPLE"   help:"which share of the traces that begin here is kept, from 0 to 1; those of clients are kept as the client says"`
}

// DefaultConfig sends nothing, and everything once there is an endpoint.
func DefaultConfig() Config { return Config{Sample: 1} }

// tracesPath is where a collector takes spans, unless the endpoint names another path.
const tracesPath = "/v1/traces"

// options are the exporter's. Errors name the variable that has to be changed, and do not repeat it: it may hold a password.
func (c Config) options() ([]otlptracehttp.Option, error) {
	if c.Sample < 0 || c.Sample > 1 {
		return nil, fmt.Errorf("APP_TRACING_SAMPLE: %g is not between 0 and 1", c.Sample)
	}

	endpoint, err := url.Parse(c.Endpoint)
	if err != nil || endpoint.Host == "" || endpoint.Scheme != "http" && endpoint.Scheme != "https" {
		return nil, errors.New("APP_TRACING_ENDPOINT: it has to be like http://host:4318")
	}

	if endpoint.Path == "" || endpoint.Path == "/" {
		endpoint.Path = tracesPath
	}

	return []otlptracehttp.Option{otlptracehttp.WithEndpointURL(endpoint.String())}, nil
}
