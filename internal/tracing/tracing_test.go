package tracing_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	logtest "github.com/sirupsen/logrus/hooks/test"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/internal/tracing"
)

func TestOffWithoutAnEndpoint(t *testing.T) {
	off, err := tracing.New(t.Context(), "broker", tracing.DefaultConfig(), logging.Discard())
	if off != nil || err != nil {
		t.Fatalf("got %v, %v, want nil", off, err)
	}

	if off.Receive(nil) != nil || off.Close(t.Context()) != nil {
		t.Error("methods of a nil Tracing have an effect")
	}
}

func TestInvalidConfiguration(t *testing.T) {
	for name, test := range map[string]struct {
		reason string
		config tracing.Config
		want   string
	}{
		"No address": {"a host and port is not a URL", tracing.Config{Endpoint: "collector:4318", Sample: 1}, "APP_TRACING_ENDPOINT"},
		"Share":      {"a share is at most 1", tracing.Config{Endpoint: "http://collector:4318", Sample: 2}, "APP_TRACING_SAMPLE"},
		"Password":   {"the error does not quote the URL", tracing.Config{Endpoint: "u:secret@x", Sample: 1}, "APP_TRACING_ENDPOINT"},
	} {
		_, err := tracing.New(t.Context(), "broker", test.config, logging.Discard())
		if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %s: got %v", name, test.reason, err)
		}
	}
}

func TestSpansReachTheCollector(t *testing.T) {
	var (
		path  string
		names []string
	)

	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		path = r.URL.Path
		body, _ := io.ReadAll(r.Body)

		var request collector.ExportTraceServiceRequest
		if err := proto.Unmarshal(body, &request); err != nil {
			t.Error(err)
		}

		for _, resource := range request.GetResourceSpans() {
			for _, attribute := range resource.GetResource().GetAttributes() {
				if attribute.GetKey() == "service.name" {
					names = append(names, attribute.GetValue().GetStringValue())
				}
			}

			for _, spans := range resource.GetScopeSpans() {
				for _, span := range spans.GetSpans() {
					names = append(names, span.GetName())
				}
			}
		}
	}))
	defer server.Close()

	where, err := tracing.New(t.Context(), "broker", tracing.Config{Endpoint: server.URL, Sample: 1}, logging.Discard())
	if err != nil {
		t.Fatal(err)
	}

	_, span := where.Start(t.Context(), "Order")
	span.End()

	if err := where.Close(t.Context()); err != nil {
		t.Error(err)
	}

	if diff := cmp.Diff([]string{"broker", "Order"}, names); diff != "" || path != "/v1/traces" {
		t.Errorf("request to %s, spans: -want +got\n%s", path, diff)
	}
}

func TestFailedExportIsLogged(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadRequest) }))
	defer server.Close()

	log, lines := logtest.NewNullLogger()

	where, err := tracing.New(t.Context(), "broker", tracing.Config{Endpoint: server.URL, Sample: 1}, log)
	if err != nil {
		t.Fatal(err)
	}

	_, span := where.Start(t.Context(), "Order")
	span.End()

	if err := where.Close(t.Context()); err != nil {
		t.Errorf("Close fails after a failed export: %v", err)
	}

	if len(lines.AllEntries()) != 1 || !strings.Contains(lines.LastEntry().Message, "sending spans failed") {
		t.Errorf("the lost spans are not logged: %v", lines.AllEntries())
	}
}
