package tracing_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/internal/tracing"
	"github.com/environment-broker/environment-broker/process"
)

func TestRequestsThatChangeSomethingHaveSpans(t *testing.T) {
	for name, test := range map[string]struct {
		reason, header string
		changes        bool
		want           []told
	}{
		"Change":      {"a change begins a trace", "", true, []told{{Name: "change"}}},
		"Sent":        {"a change goes on with its client's trace", sent, true, []told{{"change", otherTrace, sender, ""}}},
		"Poll":        {"polls would make most of the traces", "", false, nil},
		"Traced poll": {"whoever traces a read wants to see it", sent, false, []told{{"change", otherTrace, sender, ""}}},
		"Unwanted":    {"a client may want none", unwanted, true, nil},
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

		got := toldOf(kept)
		for i := range got {
			if test.header == "" {
				got[i].Trace = "" // by chance
			}
		}

		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s: %s: -want +got\n%s", name, test.reason, diff)
		}
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (r roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return r(request) }

func TestTransportTellsTheTraceAndNoSecret(t *testing.T) {
	const password = "hunter2"

	for name, test := range map[string]struct {
		reason string
		status int
		err    error
		want   string
	}{
		"Answered": {"an answer is one, also a refusal", http.StatusNotFound, nil, ""},
		"Failed":   {"the system has failed", http.StatusBadGateway, nil, "502 Bad Gateway"},
		"Silent":   {"an error of the transport may hold the address, and that a password", 0, errors.New("https://u:" + password + "@host: refused"), "no answer"},
	} {
		where, kept := inMemory(1)
		header := ""

		next := roundTripper(func(request *http.Request) (*http.Response, error) {
			header = request.Header.Get("traceparent")

			return &http.Response{StatusCode: test.status, Status: "502 Bad Gateway", Body: http.NoBody}, test.err
		})

		ctx, end := where.Operations().Attempt(t.Context(), process.Record{ID: operationID, Trace: sent}, process.Attempt{Step: "Order"})

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

		end(process.Done, "")

		call, attempt := kept.GetSpans()[0], kept.GetSpans()[1]
		if call.Name != "POST provisioner" || call.Parent.SpanID() != attempt.SpanContext.SpanID() || call.Status.Description != test.want {
			t.Errorf("%s: %s: got %s, %+v", name, test.reason, call.Name, call.Status)
		}

		if want := "00-" + otherTrace + "-" + call.SpanContext.SpanID().String() + "-01"; header != want {
			t.Errorf("%s: the system is told %q, want %q", name, header, want)
		}

		if request.Header.Get("traceparent") != "" {
			t.Errorf("%s: the caller's request is not to be changed", name)
		}

		for _, span := range kept.GetSpans() {
			for _, attribute := range span.Attributes {
				if strings.Contains(attribute.Value.String(), password) {
					t.Errorf("%s: %s holds the password: %s", name, span.Name, attribute.Value.String())
				}
			}
		}
	}
}

func TestCallsOutsideOfASpanGoBy(t *testing.T) {
	request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://host/", http.NoBody)
	next := roundTripper(func(passed *http.Request) (*http.Response, error) {
		if passed != request || passed.Header.Get("traceparent") != "" {
			t.Error("the request is to stay as it is")
		}

		return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
	})

	response, err := tracing.Transport("gardener", next).RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}

	response.Body.Close()
}
