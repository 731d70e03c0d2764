package tracing_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/trace"

	"github.com/environment-broker/environment-broker/internal/tracing"
)

func TestBegin(t *testing.T) {
	for name, test := range map[string]struct {
		reason, header string
		changes        bool
		want           []summary
	}{
		"Change":      {"a change starts a trace", "", true, []summary{{Name: "change"}}},
		"Sent":        {"a change continues its client's trace", sent, true, []summary{{"change", otherTrace, sender, ""}}},
		"Poll":        {"polls would make up most traces", "", false, nil},
		"Traced poll": {"a read within a trace of the client has a span", sent, false, []summary{{"change", otherTrace, sender, ""}}},
		"Unwanted":    {"a client can opt out", unwanted, true, nil},
	} {
		where, kept := inMemory(1)

		request := httptest.NewRequestWithContext(t.Context(), http.MethodPut, "/", http.NoBody)
		if test.header != "" {
			request.Header.Set("traceparent", test.header)
		}

		where.Receive(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			_, end := tracing.Begin(r.Context(), "change", test.changes)
			end("")
		})).ServeHTTP(httptest.NewRecorder(), request)

		got := summaries(kept)
		for i := range got {
			if test.header == "" {
				got[i].Trace = "" // random
			}
		}

		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s: %s: -want +got\n%s", name, test.reason, diff)
		}
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (r roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return r(request) }

func TestTransportSendsTraceWithoutSecrets(t *testing.T) {
	const password = "hunter2"

	for name, test := range map[string]struct {
		reason string
		status int
		err    error
		want   string
	}{
		"Answered": {"a 4xx response is not a failure of the system", http.StatusNotFound, nil, ""},
		"Failed":   {"a 5xx response is a failure", http.StatusBadGateway, nil, "502 Bad Gateway"},
		"Silent":   {"a transport error may contain a URL with a password", 0, errors.New("https://u:" + password + "@host: refused"), "no response"},
	} {
		where, kept := inMemory(1)
		header := ""

		next := roundTripper(func(request *http.Request) (*http.Response, error) {
			header = request.Header.Get("traceparent")

			return &http.Response{StatusCode: test.status, Status: "502 Bad Gateway", Body: http.NoBody}, test.err
		})

		ctx, span := where.Start(trace.ContextWithRemoteSpanContext(t.Context(), tracing.Parse(sent)), "Order")

		request, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://u:"+password+"@host/graphql?token="+password, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}

		request.Header.Set("Authorization", password)

		response, err := tracing.Transport("provisioner", next).RoundTrip(request)
		if !errors.Is(err, test.err) {
			t.Errorf("%s: %s: got %v", name, test.reason, err)
		}

		if response != nil {
			response.Body.Close()
		}

		span.End()

		call, attempt := kept.GetSpans()[0], kept.GetSpans()[1]
		if call.Name != "POST provisioner" || call.Parent.SpanID() != attempt.SpanContext.SpanID() || call.Status.Description != test.want {
			t.Errorf("%s: %s: got %s, %+v", name, test.reason, call.Name, call.Status)
		}

		if want := "00-" + otherTrace + "-" + call.SpanContext.SpanID().String() + "-01"; header != want {
			t.Errorf("%s: the traceparent header is %q, want %q", name, header, want)
		}

		if request.Header.Get("traceparent") != "" {
			t.Errorf("%s: the caller's request was changed", name)
		}

		for _, span := range kept.GetSpans() {
			for _, attribute := range span.Attributes {
				if strings.Contains(attribute.Value.String(), password) {
					t.Errorf("%s: span %s contains the password: %s", name, span.Name, attribute.Value.String())
				}
			}
		}
	}
}

func TestCallsOutsideOfASpanPassUnchanged(t *testing.T) {
	request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://host/", http.NoBody)
	next := roundTripper(func(passed *http.Request) (*http.Response, error) {
		if passed != request || passed.Header.Get("traceparent") != "" {
			t.Error("a request without a span was changed")
		}

		return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
	})

	response, err := tracing.Transport("gardener", next).RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}

	response.Body.Close()
}
