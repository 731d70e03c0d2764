package ebctl_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/environment-broker/environment-broker/internal/ebctl"
	"github.com/environment-broker/environment-broker/internal/ebctl/follow"
)

var update = flag.Bool("update", false, "update the expected output of the scripts")

func TestMain(m *testing.M) {
	testscript.Main(tests{m}, map[string]func(){"ebctl": run})
}

// TestScripts runs ebctl as a process against a fakeBroker. Scripts have these commands in addition to the commands of
// testscript:
//
//	broker SCENARIO       starts a broker with the scenario and sets EBCTL_ADDRESS
//	provisioner SCENARIO  starts a Provisioner with the scenario and sets EBCTL_PROVISIONER_ADDRESS
//	requests FILE         writes the requests that the broker has received
//	exits CODE COMMAND…   runs the command and checks its exit code
func TestScripts(t *testing.T) {
	t.Parallel()

	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		UpdateScripts:       *update,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			env.Values[brokerKey{}] = new(*fakeBroker)

			// By default, the race detector delays the exit of each process by one second.
			env.Setenv("GORACE", "atexit_sleep_ms=0")

			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"broker":      startAt("EBCTL_ADDRESS"),
			"provisioner": startAt("EBCTL_PROVISIONER_ADDRESS"),
			"requests":    writeRequests,
			"exits":       runAndExpect,
		},
	})
}

// brokerKey is the key under which a script's environment stores its broker.
type brokerKey struct{}

// startAt returns the script command that starts a fake service and stores its address in the given environment variable. One
// fake serves both services, because they have the same operator API.
func startAt(variable string) func(ts *testscript.TestScript, _ bool, args []string) {
	return func(ts *testscript.TestScript, _ bool, args []string) { startBroker(ts, variable, args) }
}

func startBroker(ts *testscript.TestScript, variable string, args []string) {
	scenario, err := parseScenario([]byte(ts.ReadFile(args[0])))
	ts.Check(err)

	broker, err := newFakeBroker(scenario)
	ts.Check(err)

	server := httptest.NewServer(broker)
	ts.Defer(server.Close)
	ts.Setenv(variable, server.URL)

	if place, ok := ts.Value(brokerKey{}).(**fakeBroker); ok {
		*place = broker
	}
}

func writeRequests(ts *testscript.TestScript, _ bool, args []string) {
	place, ok := ts.Value(brokerKey{}).(**fakeBroker)
	if !ok || *place == nil {
		ts.Fatalf("the script has not started a broker")
	}

	requests := strings.Join((*place).Requests(), "\n") + "\n"
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(requests), 0o600))
}

func runAndExpect(ts *testscript.TestScript, _ bool, args []string) {
	want, err := strconv.Atoi(args[0])
	ts.Check(err)

	var (
		failed *exec.ExitError
		got    int
	)

	switch err := ts.Exec(args[1], args[2:]...); {
	case errors.As(err, &failed):
		got = failed.ExitCode()
	default:
		ts.Check(err)
	}

	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

// run is the main function of ebctl in scripts. It uses a fake clock and predictable IDs. If EBCTL_TEST_TERMINAL is set, it has a
// terminal; if EBCTL_TEST_INTERACTIVE is set, it asks for confirmation. EBCTL_TEST_KEYS are the keys that the user presses.
func run() {
	ids := 0

	os.Exit(ebctl.App{
		In:          os.Stdin,
		Out:         os.Stdout,
		Err:         os.Stderr,
		Environment: os.Getenv,
		Environ:     os.Environ(),
		Terminal: func() (follow.Size, bool) {
			return follow.Size{Width: 80, Height: 24}, os.Getenv("EBCTL_TEST_TERMINAL") != ""
		},
		Colors:       func() bool { return os.Getenv("EBCTL_TEST_COLORS") != "" },
		Interactive:  func() bool { return os.Getenv("EBCTL_TEST_INTERACTIVE") != "" },
		ReadPassword: func() (string, error) { return os.Getenv("EBCTL_TEST_PASSWORD"), nil },
		Keys:         pressedKeys,
		Clock:        newFakeClock(time.Date(2026, 5, 1, 10, 5, 0, 0, time.UTC)),
		NewID: func() string {
			ids++

			return fmt.Sprintf("00000000-0000-4000-8000-%012d", ids)
		},
		PollInterval: time.Second,
		Version:      "v1.2.3",
	}.RunChecked(context.Background(), os.Args[1:]))
}

// pressedKeys returns the keys of EBCTL_TEST_KEYS. The function that restores the terminal prints a line, so that scripts can check it.
func pressedKeys() (<-chan byte, func(), error) {
	keys := make(chan byte, len(os.Getenv("EBCTL_TEST_KEYS")))
	for _, key := range []byte(os.Getenv("EBCTL_TEST_KEYS")) {
		keys <- key
	}

	return keys, func() { fmt.Fprintln(os.Stderr, "terminal restored") }, nil
}
