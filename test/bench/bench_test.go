package bench

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/jmoiron/sqlx"
	"github.com/prometheus/procfs"

	"github.com/environment-broker/environment-broker/internal/sandbox/postgrestest"
	"github.com/environment-broker/environment-broker/test/bench/report"
)

const pageHead = `# Benchmarks

Written by ` + "`make bench`" + `. The broker runs as a separate process; load, broker, PostgreSQL and a simulated Provisioner share one machine. %d clients
send one request after another. A floor is the minimum cost of the same request: the same server, driver, pool, user check and log line, with
only the bare work in between. The strict floor has neither user check nor log line, and uses pgx instead of lib/pq. Each figure and its floor are measured alternately, and each ratio compares two consecutive measurements. Figures are
medians of %d rounds unless stated otherwise. The Provisioner, its load and the fake garden run in one process. The bundle provisioner is a process
of its own, with a kube-apiserver and etcd, and installs on the cluster that has its Bundles.
[benchmark-bounds.md](benchmark-bounds.md) explains the figures that are close to their targets.

Machine: %s.

`

// largeHead is the introduction of the page about a large database. Its verbs are the numbers of clients, of instances, of
// operations per instance, of rounds and of turns, and the description of the machine.
const largeHead = `# Benchmarks of a large database

Written by ` + "`make bench-large`" + `. The setup is the same as for [benchmarks.md](benchmarks.md), with %d clients, but the broker's database has %d instances
with %d operations each, whose ages are up to a year. Each instance has an endpoint and an entry in the audit log; all rows are in the hash
chain. Operations of the last 30 days have timelines. In the large database, only the newest operation of each instance has a payload: nothing
that is measured reads the others, which would take 3 GiB per million operations. Sizes of rows are therefore measured in the small database. The
tables of the floor have as many rows as the broker's.

In each of %d rounds, the figures are measured in a database with 1,000 such instances and then in the large one, each alternately with its
floor, in %d turns. The first are measured in a new copy of the small database, and after each round, the rows that it has added to the large one are removed, so that the
first pages of lists contain the same kinds of rows in both. The rows "compared to 1000 instances" are the
quotients of the two ratios; for times, of their inverses. Figures are medians. Accepted operations stay pending. At each start, the broker begins to
look for values that are sealed with old keys and for instances without a stored address or maintenance window. These searches read all sealed rows
and instances, rest nine times as long as they work, and are not finished when the round ends.

In the group "while rows are removed", the column floor has the same broker without rows to remove, measured in the same round. The retention
removes timelines, audit log entries and operations at the same time. Three of the five operations of an instance are removed, the others are
examined and stay. The longest statement includes the time that it waits for a processor.

Machine: %s.

`

var (
	large  = flag.Int("large", 0, "number of instances of a large database; 0 runs the scenarios of ordinary size")
	rounds = flag.Int("rounds", 5, "number of rounds for each figure that is a median")
	out    = flag.String("out", "", "file to which the page is written; without it, no page is written")
)

// TestMain runs the floor instead of the tests if the environment variable named in floorAddress is set. startFloor sets it to run
// the test binary again, as the floor's process.
func TestMain(m *testing.M) {
	if os.Getenv(floorAddress) == "" {
		os.Exit(m.Run())
	}

	run := runFloor
	if os.Getenv(floorStrict) != "" {
		run = runStrictFloor
	}

	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "running the floor:", err)
		os.Exit(1)
	}
}

// scenario is a group of figures that share a setup.
type scenario struct {
	name    string
	measure func(s *scope)
}

// scenarios returns all scenarios in the order of the page.
func scenarios() []scenario {
	return []scenario{
		{"accept", measureAccept},
		{"last_operation", measureLastOperation},
		{"busy", measureBusy},
		{"viewers", measureViewers},
		{"telemetry", measureTelemetry},
		{"catalog", measureCatalog},
		{"throughput", measureThroughput},
		{"integrations", measureIntegrations},
		{"pickup", measurePickUp},
		{"slow_runtimes", measureSlowRuntimes},
		{"waiting", measureWaiting},
		{"polling", measurePolling},
		{"killed", measureKilled},
		{"finished", measureFinished},
		{"orchestration", measureOrchestration},
		{"idle", measureIdle},
		{"provisioner", measureProvisioner},
		{"bundles", measureBundles},
		{"unpack", measureUnpack},
		{"pivot", measurePivot},
		{"sandbox", measureSandbox},
	}
}

// Benchmark runs the scenarios that -bench selects and writes the page. If a scenario fails, a row of the page reports the
// failure, and the next scenario runs.
func Benchmark(b *testing.B) {
	broker := filepath.Join(b.TempDir(), "broker")

	build := exec.CommandContext(b.Context(), "go", "build", "-o", broker, "../../cmd/broker")
	if output, err := build.CombinedOutput(); err != nil {
		b.Fatalf("building the broker: %v\n%s", err, output)
	}

	postgres, err := launch()
	if err != nil {
		b.Fatal(err)
	}

	b.Cleanup(func() {
		if err := postgres.Remove(); err != nil {
			b.Error(err)
		}
	})

	var page strings.Builder

	all := scenarios()

	if *large == 0 {
		fmt.Fprintf(&page, pageHead, clients, *rounds, machine(b, postgres, "its own settings"))
	} else {
		all = []scenario{{"large", measureLarge}}

		fmt.Fprintf(&page, largeHead, clients, *large, operationsEach, *rounds, turns, machine(b, postgres, strings.Join(largeSettings(), ", ")))
	}

	page.WriteString(report.Header)

	for _, scenario := range all {
		table := &report.Table{}

		if !b.Run(scenario.name, func(b *testing.B) {
			if b.N == 1 { // If a benchmark takes less than a second, Go calls it again with a higher N.
				(&scope{TB: b, postgres: postgres, broker: broker, table: table}).within(scenario.measure)
			}

			b.ReportMetric(0, "ns/op") // The duration of a scenario is meaningless.

			for name, median := range table.Medians() {
				b.ReportMetric(median, strings.ReplaceAll(name, " ", "-"))
			}
		}) {
			table.Fail(scenario.name)
		}

		page.WriteString(table.String())
	}

	if *out == "" {
		return
	}

	if err := os.WriteFile(*out, []byte(page.String()), 0o644); err != nil {
		b.Fatal(err)
	}
}

// machine returns a description of the hardware, the versions of Go and PostgreSQL, and PostgreSQL's settings.
func machine(tb testing.TB, postgres *postgrestest.Server, settings string) string {
	tb.Helper()

	proc, err := procfs.NewDefaultFS()
	if err != nil {
		tb.Fatal(err)
	}

	processors, err := proc.CPUInfo()
	if err != nil || len(processors) == 0 {
		tb.Fatalf("found %d processors: %v", len(processors), err)
	}

	memory, err := proc.Meminfo()
	if err != nil || memory.MemTotalBytes == nil || memory.HugePagesTotal == nil {
		tb.Fatalf("reading the memory of the machine: %v", err)
	}

	var database string
	if err := open(tb, postgres, "postgres").GetContext(tb.Context(), &database,
		`SELECT format('PostgreSQL %s with %s: fsync %s, synchronous_commit %s', split_part(current_setting('server_version'), ' ', 1),
			$1::text, current_setting('fsync'), current_setting('synchronous_commit'))`, settings); err != nil {
		tb.Fatalf("reading the settings of PostgreSQL: %v", err)
	}

	return fmt.Sprintf("%s, %d cores, %.0f GiB of memory, %d huge pages; %s; %s", processors[0].ModelName, runtime.NumCPU(),
		float64(*memory.MemTotalBytes)/gibibyte, *memory.HugePagesTotal, runtime.Version(), database)
}

// open returns a connection to a database, which is closed when the test ends.
func open(tb testing.TB, postgres *postgrestest.Server, database string) *sqlx.DB {
	tb.Helper()

	dsn, err := postgres.DSN(database)
	if err != nil {
		tb.Fatal(err)
	}

	db, err := sqlx.Open("postgres", dsn)
	if err != nil {
		tb.Fatal(err)
	}

	db.SetMaxOpenConns(1)
	tb.Cleanup(func() {
		if err := db.Close(); err != nil {
			tb.Error(err)
		}
	})

	return db
}

// scope is a part of a scenario. At its end, its programs are stopped and its databases are dropped. Because a scope is a
// testing.TB with its own cleanups, the harness can start services in it.
type scope struct {
	testing.TB

	postgres *postgrestest.Server
	// broker is the path of the broker's binary.
	broker string
	table  *report.Table

	cleanups []func()
}

// Cleanup registers a function to be called when the scope ends. The last registered function is called first.
func (s *scope) Cleanup(function func()) { s.cleanups = append(s.cleanups, function) }

// within calls measure with a new scope, and ends the scope afterwards.
func (s *scope) within(measure func(s *scope)) {
	inner := &scope{TB: s.TB, postgres: s.postgres, broker: s.broker, table: s.table}

	defer func() {
		for _, cleanup := range slices.Backward(inner.cleanups) {
			cleanup()
		}
	}()

	measure(inner)
}

// rounds calls measure once per round, each time with a new scope.
func (s *scope) rounds(measure func(s *scope)) {
	for range *rounds {
		s.within(measure)
	}
}

// add adds a sample to the table and the log.
func (s *scope) add(figure report.Figure, value float64) {
	s.Helper()
	s.Logf("%s: %.4g %s %s", figure.Name, value, figure.Unit, figure.Note)
	s.table.Add(figure, value)
}

// addWithFloor adds a sample to the table and the log, together with the floor of the same round.
func (s *scope) addWithFloor(figure report.Figure, value, floor float64) {
	s.Helper()
	s.Logf("%s: %.4g %s, floor %.4g", figure.Name, value, figure.Unit, floor)
	s.table.AddWithFloor(figure, value, floor)
}

func (s *scope) check(err error) {
	s.Helper()

	if err != nil {
		s.Fatal(err)
	}
}
