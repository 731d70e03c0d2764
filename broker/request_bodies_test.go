package broker_test

import (
	"bufio"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/environment-broker/environment-broker/broker"
)

func TestUnknownFieldsAreIgnored(t *testing.T) {
	b := newFixture(t)

	b.want("PUT", b.put(instanceID, order(
		with("unknown", map[string]any{"a": 1}), with("SERVICE_ID", 5), with("previous_values", "x"),
		with("maintenance_info", map[string]any{"version": "1.0.0", "unknown": []int{1}}),
		with("context", map[string]any{"platform": "x", "unknown": map[string]any{}, "organization_annotations": map[string]any{"a/b": "c"}}),
	)), 202)
	b.want("PATCH", b.do(call{
		method: "PATCH", path: path(instanceID) + "?accepts_incomplete=true",
		body: `{"service_id":"` + serviceID + `","previous_values":{"x":1},"unknown":null}`,
	}), 422)
}

func TestRequestBodies(t *testing.T) {
	bodies := map[string]string{
		"broken": "{bad", "empty": "", "array": "[]", "text": `"x"`, "number": "5", "null": "null",
		"rubbish behind": order() + "x", "two objects": order() + order(), "invalid UTF-8 outside of strings": "\xff{}",
	}
	targets := map[string]string{"PUT": path("new"), "PATCH": path(instanceID)}

	b := newFixture(t)
	b.provisioned(instanceID)

	for name, body := range bodies {
		for method, target := range targets {
			b.want("A18: "+method+" "+name, b.do(call{method: method, path: target + "?accepts_incomplete=true", body: body}), 400)
		}

		b.want("A18: PUT B "+name, b.do(call{method: "PUT", path: path(instanceID) + "/service_bindings/b", body: body}), 400)
	}

	kinds := map[string]int{
		"": 202, "application/json": 202, "application/json; charset=utf-8": 202, "APPLICATION/JSON": 202,
		"application/x-www-form-urlencoded": 202, // curl's default
		"text/plain":                        400, "application/xml": 400, "nonsense/": 400,
	}
	for kind, status := range kinds {
		id := fmt.Sprintf("kind-%x", kind)
		b.want("A18, A19: "+kind, b.do(call{
			method: "PUT", path: path(id) + "?accepts_incomplete=true", body: order(), header: map[string]string{"Content-Type": kind},
		}), status)
	}
}

func TestLimitOfBodies(t *testing.T) {
	b := newFixture(t)
	filled := strings.Replace(order(), "{", `{"filler":"`+strings.Repeat("x", 1<<20)+`",`, 1)

	b.want("a declared length is checked before the body is read", b.put(instanceID, filled), 413)

	request, err := http.NewRequestWithContext(t.Context(), http.MethodPut, b.address+path(instanceID),
		struct{ *strings.Reader }{strings.NewReader(filled)}) // of undeclared length
	if err != nil {
		t.Fatal(err)
	}

	request.SetBasicAuth(user, password)
	request.Header.Set("X-Broker-API-Version", "2.17")

	response, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()

	if response.StatusCode != http.StatusRequestEntityTooLarge {
		t.Errorf("an undeclared length: want 413, got %d", response.StatusCode)
	}

	b.want("a shorter body", b.put(instanceID, strings.Replace(filled, strings.Repeat("x", 1<<10), "", 1)), 202)
}

// TestBodiesThatDoNotArrive sends incomplete requests over plain connections, because an HTTP client would not send
// them. The broker must respond with 400 and must not log an error of its own.
func TestBodiesThatDoNotArrive(t *testing.T) {
	cases := map[string]struct {
		reason string
		header string
		body   string
		status int
	}{
		"Short":    {"F5: shorter than declared", "Content-Length: 100", `{"service_id":`, 400},
		"BadChunk": {"F5: a malformed chunk", "Transfer-Encoding: chunked", "nonsense\r\n", 400},
	}

	b := newFixture(t)

	for name, test := range cases {
		got := b.sendRaw(test.header, test.body)
		if got.StatusCode != test.status {
			b.Errorf("%s: %s: want %d, got %s", name, test.reason, test.status, got.Status)
		}
	}

	for _, entry := range b.log.AllEntries() {
		if entry.Level <= logrus.ErrorLevel {
			b.Errorf("an error of the client is logged as an error of the broker: %s %v", entry.Message, entry.Data)
		}
	}
}

// TestStalledBody stops sending in the middle of a body. The server must respond with 408 after its timeout of 100 ms. The header has
// a longer timeout, because the server does not respond if that passes.
func TestStalledBody(t *testing.T) {
	b := newFixture(t)

	server := httptest.NewUnstartedServer(broker.NewHandler(b.options))
	server.Config.ReadTimeout, server.Config.ReadHeaderTimeout = 100*time.Millisecond, time.Minute
	server.Start()
	t.Cleanup(server.Close)

	b.address = server.URL

	if got := b.sendStalled("Content-Length: 100", "{"); got.StatusCode != http.StatusRequestTimeout {
		b.Errorf("F5: want 408, got %s", got.Status)
	}
}

// sendRaw sends an order with the header and the body, and closes the sending side of the connection.
func (b *fixture) sendRaw(header, body string) *http.Response {
	b.Helper()

	return b.sendOver(header, body, (*net.TCPConn).CloseWrite)
}

// sendStalled sends an order with the header and a part of the body, and keeps the connection open.
func (b *fixture) sendStalled(header, body string) *http.Response {
	b.Helper()

	return b.sendOver(header, body, func(*net.TCPConn) error { return nil })
}

func (b *fixture) sendOver(header, body string, end func(*net.TCPConn) error) *http.Response {
	b.Helper()

	dialed, err := (&net.Dialer{}).DialContext(b.Context(), "tcp", strings.TrimPrefix(b.address, "http://"))
	if err != nil {
		b.Fatal(err)
	}

	b.Cleanup(func() { _ = dialed.Close() })

	request := "PUT " + path(instanceID) + "?accepts_incomplete=true HTTP/1.1\r\nHost: broker\r\nX-Broker-API-Version: 2.17\r\n" +
		"Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password)) + "\r\n" + header + "\r\n\r\n" + body
	if _, err := io.WriteString(dialed, request); err != nil {
		b.Fatal(err)
	}

	connection, ok := dialed.(*net.TCPConn)
	if !ok {
		b.Fatalf("the connection is a %T", dialed)
	}

	if err := end(connection); err != nil {
		b.Fatal(err)
	}

	response, err := http.ReadResponse(bufio.NewReader(dialed), nil)
	if err != nil {
		b.Fatal(err)
	}

	b.Cleanup(func() { _ = response.Body.Close() })

	return response
}
