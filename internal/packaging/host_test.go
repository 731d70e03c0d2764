package main

import (
	"context"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/environment-broker/environment-broker/internal/sandbox/postgrestest"
	"github.com/environment-broker/environment-broker/test/harness"
)

// hostMark matches the comment before the blocks of the page on installation that TestHost runs.
const hostMark = `<!-- not run: [^\n]*; TestHost of internal/packaging runs it[^\n]*-->`

// hostLimit is the time limit of the blocks, which take less than a second, except for the start of the broker.
const hostLimit = 4 * time.Minute

// TestHost runs the commands of the page for Linux hosts: it installs the programs, creates the databases, writes the settings, and starts the broker
// with them, on PostgreSQL. Folders of the test replace the machine's, and sudo runs the commands as the user of the test. The
// broker listens on the loopback interface only.
func TestHost(t *testing.T) {
	page, err := os.ReadFile("../../docs/operator/install.md")
	if err != nil {
		t.Fatal(err)
	}

	blocks := regexp.MustCompile("(?s)"+hostMark+"\n```sh\n(.*?)```").FindAllSubmatch(page, -1)
	if len(blocks) != 4 {
		t.Fatalf("the page has %d blocks for a host, want 4: programs, databases, settings, start", len(blocks))
	}

	folder := t.TempDir()
	status := harness.FreeAddress(t)
	server := postgrestest.Own(t).Config(t, "postgres")

	// Build only the broker.
	broker := harness.Build(t, "broker")
	for _, name := range []string{"broker", "provisioner", "bundler", "ebctl"} {
		path := filepath.Join(folder, "bin", name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}

		if err := os.Symlink(broker, path); err != nil {
			t.Fatal(err)
		}
	}

	programs := filepath.Join(folder, "programs")
	if err := os.Mkdir(programs, 0o700); err != nil {
		t.Fatal(err)
	}

	var script strings.Builder

	script.WriteString(`make() { :; }
sudo() { if [ "$1" = -u ]; then shift 2; fi; "$@"; }
`)

	for _, block := range blocks {
		script.Write(block[1])
	}

	commands := strings.NewReplacer("/usr/local/bin/", programs+"/", "/etc/environment-broker", filepath.Join(folder, "etc"), "0.0.0.0:8080", "127.0.0.1:0",
		"\nbroker\n", "\nexec broker\n").Replace(script.String())

	environment := []string{
		"HOME=" + folder, "PATH=" + programs + ":" + os.Getenv("PATH"),
		"PGHOST=" + server.Host, "PGPORT=" + server.Port, "PGUSER=" + server.User, "PGPASSWORD=" + server.Password.Reveal(), "PGDATABASE=postgres",
		"APP_DATABASE_HOST=" + server.Host, "APP_DATABASE_PORT=" + server.Port, "APP_STATUS_ADDRESS=" + status,
	}

	ctx, cancel := context.WithTimeout(t.Context(), hostLimit)
	defer cancel()

	log, err := os.Create(filepath.Join(folder, "log"))
	if err != nil {
		t.Fatal(err)
	}

	shell := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", commands)
	shell.Dir, shell.Stdout, shell.Stderr = folder, log, log
	shell.Env = append(os.Environ(), environment...)
	shell.Cancel = func() error { return shell.Process.Signal(syscall.SIGTERM) }
	shell.WaitDelay = hostLimit

	if err := shell.Start(); err != nil {
		t.Fatal(err)
	}

	ended := make(chan error, 1)
	go func() { ended <- shell.Wait() }()

	harness.Until(t, "the broker of the page is ready", func() bool {
		select {
		case err := <-ended:
			content, _ := os.ReadFile(log.Name())
			t.Fatalf("the commands ended: %v\n%s", err, harness.LastLines(string(content)))
		default:
		}

		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+status+"/readyz", nil)
		if err != nil {
			return false
		}

		response, err := http.DefaultClient.Do(request)

		return err == nil && response.Body.Close() == nil && response.StatusCode == http.StatusOK
	})

	cancel()

	<-ended // the error comes from the context

	if code := shell.ProcessState.ExitCode(); code != 0 {
		t.Errorf("the broker ended with %d", code)
	}

	for _, name := range []string{"broker.env", "provisioner.env"} {
		info, err := os.Stat(filepath.Join(folder, "etc", name))
		if err != nil {
			t.Fatal(err)
		}

		if info.Mode().Perm() != 0o600 {
			t.Errorf("%s has the mode %s", name, info.Mode())
		}
	}
}
