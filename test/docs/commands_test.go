package docs_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/environment-broker/environment-broker/internal/sandbox"
	"github.com/environment-broker/environment-broker/resources"
	"github.com/environment-broker/environment-broker/test/docs/markdown"
)

const root = "../.."

// commandLimit is the time limit for the commands of one page, which normally take seconds.
const commandLimit = 5 * time.Minute

// simulatorsAddress is the address of the simulated systems in the documentation. The tested sandbox uses a free port instead.
const simulatorsAddress = "127.0.0.1:43210"

// block is a block of shell commands on a page.
type block struct {
	// line is the line number of the first command.
	line     int
	commands string
	// notRun is the reason in a "not run" comment before the block. If it is empty, the test runs the block.
	notRun string
}

var (
	fence  = regexp.MustCompile("^ *```([a-z]*)")
	notRun = regexp.MustCompile(`^<!-- not run: (.+) -->$`)
)

// TestCommands runs the commands in README.md, docs/tutorials, docs/user and docs/operator on a sandbox, in Bash. The blocks of a
// page run in order in one shell. A comment `<!-- not run: REASON -->` before a block exempts it.
//
// testdata/commands contains a script for each page that needs one. The script prepares the state that the page assumes, such as an
// instance, and calls `replace` for names that only readers can know, such as the ID of an operation.
func TestCommands(t *testing.T) {
	t.Parallel()

	programs := t.TempDir()
	build := exec.CommandContext(t.Context(), "go", "build", "-buildvcs=false", "-o", programs, "./cmd/ebctl", "./cmd/bundler")
	build.Dir = root

	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building ebctl and bundler: %v\n%s", err, output)
	}

	bundler := filepath.Join(programs, "bundler")
	services := startSandbox(t, bundler, nil)
	ran := 0

	for _, page := range markdown.Pages(t, root) {
		if page != "README.md" && !regexp.MustCompile(`^docs/(tutorials|user|operator)/`).MatchString(page) {
			continue
		}

		blocks := commands(t, page)
		ran += len(blocks)

		if len(blocks) == 0 {
			continue
		}

		t.Run(page, func(t *testing.T) {
			t.Parallel()

			services := services
			if change, has := separate()[page]; has {
				services = startSandbox(t, bundler, change)
			}

			services.run(t, programs, page, blocks)
		})
	}

	if ran < 20 {
		t.Errorf("found %d blocks of commands to run: the test looks for the wrong ones", ran)
	}
}

// separate returns the pages whose commands would disturb those of other pages, each with a function that changes the settings of
// its own sandbox. A nil function changes nothing.
func separate() map[string]func(*sandbox.Config) {
	return map[string]func(*sandbox.Config){
		"docs/tutorials/stuck-operation.md": nil,
		"docs/tutorials/custom-plan.md":     func(config *sandbox.Config) { config.Integrations = false },
	}
}

// commands returns the blocks of a page that the test runs. A block without a language fails the test, because it could contain
// untested commands.
func commands(t *testing.T, page string) []block {
	t.Helper()

	var (
		found  []block
		reason string
		inside *block
	)

	for i, line := range strings.Split(markdown.Read(t, root, page), "\n") {
		match := fence.FindStringSubmatch(line)

		switch {
		case match == nil && inside != nil:
			inside.commands += line + "\n"
		case match == nil:
			if marked := notRun.FindStringSubmatch(line); marked != nil {
				reason = marked[1]
			} else {
				reason = ""
			}
		case inside == nil:
			if match[1] == "" {
				t.Errorf("%s:%d: the block has no language", page, i+1)
			}

			inside = &block{line: i + 2, notRun: reason}
			if match[1] != "sh" {
				inside.notRun = "not a shell"
			}
		default:
			if inside.notRun == "" {
				found = append(found, *inside)
			}

			inside, reason = nil, ""
		}
	}

	return found
}

// addresses maps the addresses and the sandbox folder in the documentation to those of the running sandbox.
type addresses map[string]string

// startSandbox runs a sandbox until the test ends. Its clusters are ready after a tenth of a second. If change is not nil, it changes the
// settings.
func startSandbox(t *testing.T, bundler string, change func(*sandbox.Config)) addresses {
	t.Helper()

	config := sandbox.DefaultConfig()
	config.Dir, config.ClusterCreation = t.TempDir(), 100*time.Millisecond
	config.BrokerAddress, config.ProvisionerAddress = "127.0.0.1:0", "127.0.0.1:0"
	config.StatusAddress, config.ProvisionerStatusAddress = "127.0.0.1:0", "127.0.0.1:0"
	config.BundlesAddress, config.BundlesStatusAddress = "127.0.0.1:0", "127.0.0.1:0"
	config.CatalogDir = filepath.Join(config.Dir, "catalog")

	if err := os.CopyFS(config.CatalogDir, resources.Catalog()); err != nil {
		t.Fatal(err)
	}

	if change != nil {
		change(&config)
	}

	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	reader, writer := io.Pipe()
	ended := make(chan error, 1)

	go func() {
		err := sandbox.Run(ctx, config, sandbox.Programs{Bundler: "exec " + bundler}, writer)
		_ = writer.CloseWithError(errors.Join(err, io.EOF))
		ended <- err
	}()

	t.Cleanup(func() {
		cancel()

		if err := <-ended; err != nil {
			t.Errorf("the sandbox failed: %v", err)
		}
	})

	lines := bufio.NewReader(reader)

	announcement, err := lines.ReadString('\n')
	if err != nil {
		t.Fatalf("waiting for the sandbox: %v", err)
	}

	match := regexp.MustCompile(`broker http://(\S+) .*provisioner http://([^/]+)/.*status http://([^\s,]+)`).FindStringSubmatch(announcement)
	if match == nil {
		t.Fatalf("the sandbox announced no addresses: %s", announcement)
	}

	simulators := []string{"", simulatorsAddress}
	for config.Integrations && simulators[0] == "" {
		line, err := lines.ReadString('\n')
		if err != nil {
			t.Fatalf("waiting for the address of the simulated systems: %v", err)
		}

		if found := regexp.MustCompile(`http://([^/]+)/simulators`).FindStringSubmatch(line); found != nil {
			simulators = found
		}
	}

	go func() { _, _ = io.Copy(io.Discard, lines) }()

	return addresses{
		"127.0.0.1:8080": match[1], "127.0.0.1:3000": match[2], "127.0.0.1:8071": match[3],
		simulatorsAddress: simulators[1], ".sandbox/": config.Dir + "/",
	}
}

// run runs the page's script, if it has one, and then the blocks of the page.
func (a addresses) run(t *testing.T, programs, page string, blocks []block) {
	t.Helper()

	folder := t.TempDir()
	if err := os.Symlink(programs, filepath.Join(folder, "bin")); err != nil {
		t.Fatal(err)
	}

	script := filepath.Join("testdata", "commands", strings.ReplaceAll(strings.TrimSuffix(page, ".md"), "/", "-")+".sh")

	preparation, err := os.ReadFile(script)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}

	library, err := os.ReadFile(filepath.Join("testdata", "commands", "library.sh"))
	if err != nil {
		t.Fatal(err)
	}

	shell := func(name, commands string) {
		for documented, actual := range a {
			commands = strings.ReplaceAll(commands, documented, actual)
		}

		ctx, cancel := context.WithTimeout(t.Context(), commandLimit)
		defer cancel()

		command := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", string(library)+commands)
		command.Dir = folder
		command.Env = append(os.Environ(), "HOME="+folder, "PATH="+programs+":"+os.Getenv("PATH"), "ROOT="+absolute(t, root),
			"EBCTL_ADDRESS=http://"+a["127.0.0.1:8080"], "EBCTL_USERNAME="+sandbox.User, "EBCTL_PASSWORD="+sandbox.Password,
			"EBCTL_PROVISIONER_ADDRESS=http://"+a["127.0.0.1:3000"])

		if output, err := command.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", name, err, lastLines(output))
		}
	}

	shell(script, string(preparation))

	var all strings.Builder

	for _, block := range blocks {
		fmt.Fprintf(&all, "echo '# %s:%d'\n%s\n", page, block.line, block.commands)
	}

	shell(page, replaced(t, filepath.Join(folder, "replacements"), all.String()))
}

// replaced applies the replacements that a page's script requested. The file has one replacement per line: the old and the new
// text, separated by a tab. A replacement whose old text is not in the commands is an error.
func replaced(t *testing.T, file, commands string) string {
	t.Helper()

	content, err := os.ReadFile(file)
	if os.IsNotExist(err) {
		return commands
	}

	if err != nil {
		t.Fatal(err)
	}

	for line := range strings.Lines(string(content)) {
		before, after, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")

		pattern := regexp.MustCompile(`(^|[^A-Za-z0-9_])` + regexp.QuoteMeta(before) + `($|[^A-Za-z0-9_])`)
		if !pattern.MatchString(commands) {
			t.Fatalf("the commands have no %q to replace: adapt the script of the page", before)
		}

		commands = pattern.ReplaceAllString(commands, "${1}"+strings.ReplaceAll(after, "$", "$$")+"${2}")
	}

	return commands
}

func absolute(t *testing.T, path string) string {
	t.Helper()

	found, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}

	return found
}

func lastLines(output []byte) []byte {
	const limit = 40

	lines := bytes.Split(output, []byte("\n"))

	return bytes.Join(lines[max(0, len(lines)-limit):], []byte("\n"))
}
