package delivery_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"
	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/internal/audit/chain"
	"github.com/environment-broker/environment-broker/internal/audit/delivery"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/internal/program/reload"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// records are an entry with line breaks in a text, and a record whose row was removed.
func records() []chain.Record {
	all := []chain.Record{
		{Number: 1, Source: "entry", ID: "e1", Row: &chain.Row{
			At: "2030-01-02T03:04:05.000000Z", Action: "cancel", InstanceID: "i1", Status: "202", OrderedBy: "älice\n<", Entry: `{"reason":"a\nb"}`,
		}},
		{Number: 2, Source: "operation", ID: "o1", Row: &chain.Row{At: "2030-01-02T03:04:06.000000Z", Action: "provision"}},
	}

	previous := ""
	for i := range all {
		all[i].Seal(previous)
		previous = all[i].Hash
	}

	return append(all, chain.Record{Number: 3, Source: "entry", ID: "e3", Hash: "h"})
}

// collector returns the collector of a configuration.
func collector(t *testing.T, config delivery.Config) delivery.Collector {
	t.Helper()

	watcher := reload.NewWatcher(logging.Discard(), clock.RealClock{}, prometheus.NewRegistry())

	made, err := delivery.New(config, "broker", watcher)
	if err != nil {
		t.Fatal(err)
	}

	return made
}

// serve accepts one connection and passes it to the handler. The channel receives the result of the handler.
func serve[T any](t *testing.T, listener net.Listener, handle func(net.Conn) T) <-chan T {
	t.Helper()
	t.Cleanup(func() { _ = listener.Close() })

	done := make(chan T, 1)

	go func() {
		connection, err := listener.Accept()
		if err != nil {
			close(done)

			return
		}
		defer connection.Close()

		done <- handle(connection)
	}()

	return done
}

func listen(t *testing.T) net.Listener {
	t.Helper()

	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}

	return listener
}

// readSyslog reads messages with octet counting until the client closes its side.
func readSyslog(connection net.Conn) []string {
	reader, messages := bufio.NewReader(connection), []string{}

	for {
		length, err := reader.ReadString(' ')
		if err != nil {
			return messages
		}

		count, _ := strconv.Atoi(strings.TrimSpace(length))
		message := make([]byte, count)

		if _, err := io.ReadFull(reader, message); err != nil {
			return append(messages, "cut")
		}

		messages = append(messages, string(message))
	}
}

func checkSyslog(t *testing.T, messages []string) {
	t.Helper()

	if len(messages) != 3 {
		t.Fatalf("want 3 messages, got %q", messages)
	}

	fields := strings.SplitN(messages[0], " ", 8)
	host, _ := os.Hostname()

	if diff := cmp.Diff([]string{"<109>1", "2030-01-02T03:04:05.000000Z", host, "environment-broker", "-", "audit", "-"}, fields[:7]); diff != "" {
		t.Errorf("header: -want +got\n%s", diff)
	}

	for i, message := range messages {
		_, text, _ := strings.Cut(message, "{")
		messages[i] = "{" + text
	}

	checkMessages(t, messages)
}

func checkMessages(t *testing.T, texts []string) {
	t.Helper()

	all := records()
	want := []delivery.Message{
		{Service: "broker", Number: 1, Source: "entry", ID: "e1", At: "2030-01-02T03:04:05.000000Z", Action: "cancel", InstanceID: "i1", Status: "202", OrderedBy: "älice\n<", Entry: json.RawMessage(`{"reason":"a\nb"}`)},
		{Service: "broker", Number: 2, Source: "operation", ID: "o1", At: "2030-01-02T03:04:06.000000Z", Action: "provision"},
		{Service: "broker", Number: 3, Source: "entry", ID: "e3", Hash: "h"},
	}

	if len(texts) != len(want) {
		t.Fatalf("want %d messages, got %q", len(want), texts)
	}

	for i, text := range texts {
		if strings.Contains(text, "salt") || all[i].Salt != "" && strings.Contains(text, all[i].Salt) || strings.Contains(text, "\n") {
			t.Errorf("a message contains a salt or a line break: %s", text)
		}

		var got delivery.Message
		if err := json.Unmarshal([]byte(text), &got); err != nil {
			t.Fatal(err)
		}

		if want[i].Hash == "" {
			got.Hash = "" // the salt is random
		}

		if diff := cmp.Diff(want[i], got); diff != "" {
			t.Errorf("message %d: -want +got\n%s", i, diff)
		}
	}
}

func TestSyslog(t *testing.T) {
	listener := listen(t)
	got := serve(t, listener, readSyslog)

	if err := collector(t, delivery.Config{URL: "syslog://" + listener.Addr().String(), Timeout: time.Minute}).Send(t.Context(), records()); err != nil {
		t.Fatal(err)
	}

	checkSyslog(t, <-got)
}

func TestSyslogOverTLS(t *testing.T) {
	certified := httptest.NewUnstartedServer(nil)
	certified.StartTLS()
	certified.Close()

	authorities := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(authorities, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certified.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}

	for name, file := range map[string]string{"trusted": authorities, "unknown authority": ""} {
		listener := tls.NewListener(listen(t), &tls.Config{Certificates: certified.TLS.Certificates})
		got := serve(t, listener, readSyslog)

		err := collector(t, delivery.Config{
			URL: "syslog+tls://" + listener.Addr().String(), CAFile: file, Timeout: time.Minute,
		}).Send(t.Context(), records())

		messages := <-got

		if file == "" {
			if err == nil || len(messages) > 0 {
				t.Errorf("%s: want an error and no messages, got %v, %q", name, err, messages)
			}

			continue
		}

		if err != nil {
			t.Errorf("%s: %v", name, err)
		}

		checkSyslog(t, messages)
	}
}

// TestSyslogServerThatFails checks that a batch is delivered only if the server has read all of it.
func TestSyslogServerThatFails(t *testing.T) {
	cases := map[string]func(connection net.Conn) bool{
		"reset before the end": func(connection net.Conn) bool {
			_, err := connection.Read(make([]byte, 10))

			return err == nil && connection.(*net.TCPConn).SetLinger(0) == nil
		},
		"sends a response": func(connection net.Conn) bool {
			_, err := connection.Write(make([]byte, 100<<10))

			return err == nil
		},
	}

	for name, handle := range cases {
		listener := listen(t)
		done := serve(t, listener, handle)

		many := []chain.Record{}
		for range 100 {
			many = append(many, chain.Record{Number: 1, ID: strings.Repeat("x", 10_000), Row: &chain.Row{}})
		}

		if err := collector(t, delivery.Config{URL: "syslog://" + listener.Addr().String(), Timeout: time.Minute}).Send(t.Context(), many); err == nil {
			t.Errorf("%s: the batch counts as delivered", name)
		}

		<-done
	}
}

// TestSilentCollectors checks that a delivery ends when it is canceled, and when the collector does not respond within the timeout.
func TestSilentCollectors(t *testing.T) {
	listener := listen(t)
	t.Cleanup(func() { _ = listener.Close() })

	for _, scheme := range []string{"syslog://", "syslog+tls://", "http://"} {
		err := collector(t, delivery.Config{URL: scheme + listener.Addr().String(), Timeout: 50 * time.Millisecond}).Send(t.Context(), records())
		if err == nil {
			t.Errorf("%s: a collector that does not respond confirms a batch", scheme)
		}

		ctx, cancel := context.WithCancel(t.Context())
		cancel()

		if err := collector(t, delivery.Config{URL: scheme + listener.Addr().String(), Timeout: time.Hour}).Send(ctx, records()); err == nil {
			t.Errorf("%s: a canceled delivery is confirmed", scheme)
		}
	}
}

// TestSyslogOverUDPIsRejected checks that a UDP URL is an error, which names the alternatives. Nothing confirms a datagram, so entries
// could get lost although they count as delivered.
func TestSyslogOverUDPIsRejected(t *testing.T) {
	for _, url := range []string{"udp://host:514", "syslog+udp://host:514"} {
		config := delivery.Config{URL: url, Timeout: time.Minute}

		made, err := delivery.New(config, "broker", nil)
		if err == nil || made != nil {
			t.Fatalf("%s: want an error, got %v", url, made)
		}

		for _, part := range []string{"UDP is not supported", "TCP", "syslog+tls", "relay"} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%s: want %q in the error, got %v", url, part, err)
			}
		}
	}

	// A collector with the scheme syslog sends nothing over UDP, although 514 is the port of both protocols.
	datagrams, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer datagrams.Close()

	config := delivery.Config{URL: "syslog://" + datagrams.LocalAddr().String(), Timeout: time.Minute}
	if err := collector(t, config).Send(t.Context(), records()); err == nil {
		t.Error("a server that receives only UDP confirms a batch")
	}
}

func TestHTTP(t *testing.T) {
	const token = "m4rk3d"

	status, bodies := http.StatusAccepted, []string{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if r.Method == http.MethodPost && r.Header.Get("Authorization") == "Bearer "+token && r.Header.Get("Content-Type") == "application/x-ndjson" {
			bodies = append(bodies, string(body))
		}

		if status == http.StatusFound {
			w.Header().Set("Location", "/elsewhere")
		}

		w.WriteHeader(status)
		fmt.Fprint(w, strings.Repeat(token, 1000))
	}))
	defer server.Close()

	to := collector(t, delivery.Config{URL: server.URL + "/logs?key=" + token, Token: token, Timeout: time.Minute})
	if err := to.Send(t.Context(), records()); err != nil {
		t.Fatal(err)
	}

	checkMessages(t, strings.Split(strings.TrimSpace(bodies[0]), "\n"))

	for _, status = range []int{http.StatusFound, http.StatusForbidden, http.StatusServiceUnavailable} {
		if err := to.Send(t.Context(), records()); err == nil || strings.Contains(err.Error(), token) {
			t.Errorf("status %d: want an error without the response and the token, got %v", status, err)
		}
	}

	server.Close()

	if err := to.Send(t.Context(), records()); err == nil || strings.Contains(err.Error(), token) {
		t.Errorf("want an error without the URL, got %v", err)
	}
}

// TestHTTPLimit sends records to a collector that accepts only small requests.
func TestHTTPLimit(t *testing.T) {
	limit, accepted := 0, ""
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if len(body) > limit {
			w.WriteHeader(http.StatusRequestEntityTooLarge)

			return
		}

		accepted += string(body)
	}))
	defer server.Close()

	to := collector(t, delivery.Config{URL: server.URL, Timeout: time.Minute})
	if err := to.Send(t.Context(), records()); err == nil || !strings.Contains(err.Error(), "raise its limit") || accepted != "" {
		t.Errorf("without a record that the collector accepts: %v, accepted %q", err, accepted)
	}

	limit = 350
	if err := to.Send(t.Context(), records()); err != nil {
		t.Fatal(err)
	}

	checkMessages(t, strings.Split(strings.TrimSpace(accepted), "\n"))
}

func TestCheck(t *testing.T) {
	cases := map[string]bool{
		"":                              true,
		"syslog://host:514":             true,
		"syslog+tls://host:6514":        true,
		"https://host/path?x=y":         true,
		"http://host":                   true,
		"syslog://host":                 false,
		"syslog://host:514/path":        false,
		"udp://host:514":                false,
		"host:514":                      false,
		"https://user:m4rk3d@host/path": false,
		"https://%zz":                   false,
	}

	for url, valid := range cases {
		err := delivery.Config{URL: url, Timeout: time.Second}.Check()
		if (err == nil) != valid || err != nil && strings.Contains(err.Error(), "m4rk3d") {
			t.Errorf("%q: valid: want %t, got %v", url, valid, err)
		}
	}

	if (delivery.Config{URL: "http://host"}).Check() == nil || (delivery.Config{URL: "syslog://host:1", Token: "x", Timeout: 1}).Check() == nil {
		t.Error("a collector without a timeout, or a syslog server with a token, is valid")
	}
}
