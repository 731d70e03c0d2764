package e2e

import (
	"crypto/tls"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/internal/sandbox"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakegarden"
	"github.com/environment-broker/environment-broker/test/harness"
)

// unsteadyGarden serves a fake garden. When it breaks, it closes all connections, and then responds to requests with the error
// pages of a proxy.
type unsteadyGarden struct {
	server *httptest.Server
	broken atomic.Bool
}

// serveUnsteadily serves a fake garden as an unsteadyGarden, and returns it with the path of a kubeconfig.
func serveUnsteadily(t *testing.T, memory *fakegarden.Memory) (garden *unsteadyGarden, kubeconfig string) {
	t.Helper()

	garden = &unsteadyGarden{}
	handler := memory.Handler()

	garden.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if garden.broken.Load() {
			http.Error(w, "<html>Bad gateway</html>", http.StatusBadGateway)

			return
		}

		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		garden.server.CloseClientConnections()
		garden.server.Close()
	})

	return garden, harness.WriteKubeconfig(t, garden.server.URL)
}

// set breaks or repairs the garden.
func (g *unsteadyGarden) set(broken bool) {
	g.broken.Store(broken)
	g.server.CloseClientConnections()
}

// launchMerged starts a program whose log includes its standard output.
func launchMerged(t *testing.T, service string, variables ...string) *harness.Program {
	t.Helper()

	return harness.Launch(t, variables, "/bin/sh", "-c", "exec '"+harness.Build(t, service)+"' >&2")
}

// Parts of log lines that libraries write. The services themselves write the lines of OpenTelemetry's exporter.
const (
	lineNetHTTP           = `"library":"net/http"`
	lineClientGo          = `"library":"client-go"`
	lineControllerRuntime = `"library":"controller-runtime"`
	lineTraces            = `"msg":"sending spans failed"`
)

// wantLogLines checks that each line of a log is a JSON object with the fields of our log format, and that the log contains all
// parts.
func wantLogLines(t *testing.T, service, log string, parts ...string) {
	t.Helper()

	for line := range strings.Lines(log) {
		var fields map[string]any
		if err := json.Unmarshal([]byte(line), &fields); err != nil {
			t.Errorf("%s writes a line that is not JSON: %s", service, line)

			continue
		}

		for _, name := range []string{"time", "level", "msg", logging.Service} {
			if text, is := fields[name].(string); !is || text == "" {
				t.Errorf("%s writes a line without the field %s: %s", service, name, line)
			}
		}
	}

	for _, part := range parts {
		if !strings.Contains(log, part) {
			t.Errorf("%s has written no line with %s, so the test shows nothing about such lines", service, part)
		}
	}
}

// wrote returns a condition that is true once the program has written a log line that contains part.
func wrote(program *harness.Program, part string) func() bool {
	return func() bool { return strings.Contains(program.Log(), part) }
}

// TestLogLinesOfServices runs the broker and the Provisioner as separate processes while the garden breaks their watches, the trace
// collector is unreachable, and a client connects without TLS. From start to exit, each line that they write must be a JSON log
// line.
func TestLogLinesOfServices(t *testing.T) {
	t.Parallel()

	garden, kubeconfig := serveUnsteadily(t, harness.StartGarden(t, 100*time.Millisecond))
	if err := poolAPI(t, kubeconfig).Create(t.Context(), poolAccount(harness.GardenNamespace(), 0)); err != nil {
		t.Fatal(err)
	}

	files := newCertificates(t)
	files.server("server", "unused")

	rules := filepath.Join(t.TempDir(), "rules.yaml")
	if err := os.WriteFile(rules, []byte("rule: [aws, azure, azure_lite, gcp, sap-converged-cloud, free, preview, trial]"), 0o600); err != nil {
		t.Fatal(err)
	}

	address := map[string]string{"broker": harness.FreeAddress(t), "provisioner": harness.FreeAddress(t)}
	programs := map[string]*harness.Program{}

	for service := range address {
		programs[service] = launchMerged(t, service, append(harness.DatabaseVariables(harness.SQLite(t, service)),
			"APP_ADDRESS="+address[service], "APP_STATUS_ADDRESS="+harness.FreeAddress(t), "APP_SHUTDOWN_DELAY=0s",
			"APP_AUTH_BASIC_USERS="+harness.User+":"+harness.Password+":osb+operator+admin",
			"APP_TLS_CERT_FILE="+files.file("server.pem"), "APP_TLS_KEY_FILE="+files.file("server.key"),
			"APP_GARDENER_PROJECT="+fakegarden.DefaultProject, "APP_GARDENER_KUBECONFIG_PATH="+kubeconfig, "APP_ACCOUNT_POOL_RULES_FILE="+rules,
			"APP_PROVISIONER_URL=https://"+address["provisioner"]+"/graphql", "APP_PROVISIONER_CA_FILE="+files.file("ca.pem"),
			"APP_PROVISIONER_USER="+harness.User, "APP_PROVISIONER_PASSWORD="+harness.Password,
			"APP_TRACING_ENDPOINT=http://"+harness.FreeAddress(t), "OTEL_BSP_SCHEDULE_DELAY=100", "OTEL_EXPORTER_OTLP_TIMEOUT=200")...)
	}

	p := newPlatform(t, "https://"+address["broker"])
	p.Transport = &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}

	p.Until("the broker", func() bool {
		_, err := p.Try(http.MethodGet, "/v2/catalog", nil)

		return err == nil
	})

	for service := range programs {
		var connection net.Conn

		p.Until("the "+service, func() bool {
			var err error

			connection, err = net.Dial("tcp", address[service])

			return err == nil
		})

		if _, err := connection.Write([]byte("GET / HTTP/1.0\r\n\r\n")); err != nil {
			t.Error(err)
		}

		p.Until("the line about a client without TLS", wrote(programs[service], lineNetHTTP))
		connection.Close()
	}

	p.Create("first", harness.PlanAWS)
	p.WantSucceeded("first")

	garden.set(true)
	p.Create("second", harness.PlanAWS)

	p.Until("the line about the watch of Shoots", wrote(programs["provisioner"], lineClientGo))

	for service := range programs {
		p.Until("the line about the traces of the "+service, wrote(programs[service], lineTraces))
	}

	garden.set(false)
	p.WantSucceeded("second")

	for service, program := range programs {
		if code := program.Terminate(); code != 0 {
			t.Errorf("%s ends with status %d", service, code)
		}

		wantLogLines(t, service, program.Log(), lineNetHTTP, lineTraces)
	}
}

// TestLogLinesOfBundler checks the log lines of the bundle provisioner and the sandbox. The API server with the Bundles stops
// together with the sandbox, while a bundle provisioner watches it.
func TestLogLinesOfBundler(t *testing.T) {
	t.Parallel()

	folder, address := t.TempDir(), harness.FreeAddress(t)
	host := harness.Launch(t, []string{
		"SANDBOX_DIR=" + folder, "SANDBOX_CLUSTER_CREATION=100ms", "SANDBOX_BROKER_ADDRESS=" + address, "SANDBOX_PROVISIONER_ADDRESS=127.0.0.1:0",
		"SANDBOX_STATUS_ADDRESS=127.0.0.1:0", "SANDBOX_PROVISIONER_STATUS_ADDRESS=127.0.0.1:0", "SANDBOX_BUNDLES_ADDRESS=" + harness.FreeAddress(t),
		"SANDBOX_BUNDLES_STATUS_ADDRESS=127.0.0.1:0",
	}, harness.Build(t, "sandbox"), "--bundler=exec '"+harness.Build(t, "bundler")+"'")

	if line := host.Line(); !strings.HasPrefix(line, "sandbox ready") {
		t.Fatalf("the first line of the sandbox is %q", line)
	}

	p := newPlatform(t, "http://"+address)
	p.User, p.Password = sandbox.User, sandbox.Password

	p.Create("first", harness.PlanAWS)
	p.WantSucceeded("first")

	hubClient(t, folder, p)

	status := harness.FreeAddress(t)
	bundler := launchMerged(t, "bundler", "APP_ADDRESS="+harness.FreeAddress(t), "APP_STATUS_ADDRESS="+status, "APP_SHUTDOWN_DELAY=0s",
		"APP_KUBECONFIG_PATH="+filepath.Join(folder, "bundles.kubeconfig"), "APP_STORE_DIR="+t.TempDir(), "APP_LEASE_NAME=second",
		"APP_TLS_SELF_SIGNED=true")

	p.Until("the second bundle provisioner", func() bool {
		reply, err := harness.Endpoint{URL: "http://" + status}.Do(harness.Call{Method: http.MethodGet, Path: "/readyz"})

		return err == nil && reply.Status == http.StatusOK
	})
	p.Until("the controllers", wrote(bundler, lineControllerRuntime))

	if code := host.Terminate(); code != 0 {
		t.Errorf("the sandbox ends with status %d", code)
	}

	// When the bundle provisioner loses its lease, it ends with an error, which must also be a JSON log line.
	<-bundler.Ended

	if code := bundler.ExitCode(); code != 1 || !strings.Contains(bundler.Log(), "leader election lost") {
		t.Errorf("without an API server, the bundle provisioner ends with status %d", code)
	}

	wantLogLines(t, "bundler", bundler.Log(), lineControllerRuntime, lineClientGo)

	if host.Log() != "" {
		t.Errorf("the sandbox writes to standard error: %s", host.Log())
	}

	content, err := os.ReadFile(filepath.Join(folder, "sandbox.log"))
	if err != nil {
		t.Fatal(err)
	}

	wantLogLines(t, "sandbox", string(content))
}
