package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/internal/ebctl"
	"github.com/environment-broker/environment-broker/internal/ebctl/follow"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
	"github.com/environment-broker/environment-broker/internal/program/replica"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakedirector"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakegarden"
	"github.com/environment-broker/environment-broker/internal/sandbox/freeport"
	"github.com/environment-broker/environment-broker/internal/sandbox/postgrestest"
	"github.com/environment-broker/environment-broker/internal/secret"
	provisioner "github.com/environment-broker/environment-broker/provisioner/service"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/test/harness"
)

const backupPage = harness.Root + "/docs/operator/backup.md"

// backedUp contains the commands from the page on backups, and runs them on the databases of both services.
type backedUp struct {
	*testing.T

	// folder is the working directory of the commands.
	folder    string
	variables []string
	// blocks contains the command blocks of the page by the heading of their section.
	blocks map[string][]string
	ran    map[string]int
	user   func(*exec.Cmd)
}

func newBackedUp(t *testing.T) *backedUp {
	t.Helper()

	text, err := os.ReadFile(backupPage)
	if err != nil {
		t.Fatal(err)
	}

	b := &backedUp{T: t, blocks: map[string][]string{}, ran: map[string]int{}, user: func(*exec.Cmd) {}}

	for _, section := range strings.Split(string(text), "\n## ")[1:] {
		heading, _, _ := strings.Cut(section, "\n")
		for _, block := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(section, -1) {
			b.blocks[heading] = append(b.blocks[heading], block[1])
		}
	}

	if b.folder, err = os.MkdirTemp("", "backup"); err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { _ = os.RemoveAll(b.folder) })

	b.variables = []string{"BACKUP=" + filepath.Join(b.folder, "backup")}

	return b
}

// page runs a block of the page. number is the block's position in its section, from 0.
func (b *backedUp) page(heading string, number int, variables ...string) {
	b.Helper()

	if number >= len(b.blocks[heading]) {
		b.Fatalf("the section %q has no block %d", heading, number)
	}

	b.ran[fmt.Sprint(heading, number)]++
	b.shell(b.blocks[heading][number], variables...)
}

// shell runs commands and returns their output.
func (b *backedUp) shell(commands string, variables ...string) string {
	b.Helper()

	command := exec.CommandContext(b.Context(), "bash", "-euo", "pipefail", "-c", commands)
	command.Dir, command.Env = b.folder, slices.Concat(os.Environ(), b.variables, variables)
	b.user(command)

	output, err := command.CombinedOutput()
	if err != nil {
		b.Fatalf("%v\n%s\n%s", err, commands, output)
	}

	return strings.TrimSpace(string(output))
}

// postgres starts a PostgreSQL server that archives its write-ahead log, and returns a function that returns the settings of a
// service's database on it.
func (b *backedUp) postgres() func(service string) replica.Database {
	b.Helper()

	attributes, owner, err := postgrestest.Unprivileged()
	if err != nil {
		b.Fatal(err)
	}

	if owner >= 0 {
		if err := os.Chown(b.folder, owner, -1); err != nil {
			b.Fatal(err)
		}
	}

	b.user = func(command *exec.Cmd) { command.SysProcAttr = attributes }

	initdb, err := postgrestest.Binary("initdb")
	if err != nil {
		b.Fatal(err)
	}

	if resolved, err := filepath.EvalSymlinks(initdb); err == nil {
		initdb = resolved
	}

	folders, err := filepath.Glob("/usr/lib/postgresql/*/bin")
	if err != nil {
		b.Fatal(err)
	}

	port, err := freeport.Draw(b.Context())
	if err != nil {
		b.Fatal(err)
	}

	b.variables = append(b.variables, "PGDATA="+filepath.Join(b.folder, "data"), "PGHOST="+b.folder, fmt.Sprintf("PGPORT=%d", port), "PGUSER=postgres",
		"PATH="+strings.Join(append(folders, filepath.Dir(initdb), os.Getenv("PATH")), ":"))
	b.shell(`initdb --username=postgres --auth=trust --no-sync >/dev/null
cat >>"$PGDATA/postgresql.conf" <<END
port = $PGPORT
unix_socket_directories = '$PGHOST'
listen_addresses = '127.0.0.1'
fsync = off
END
mkdir "$BACKUP"`)
	b.page("PostgreSQL: point-in-time recovery", 0)
	b.shell(`pg_ctl start --wait --log="$BACKUP/first.log" && createdb broker && createdb provisioner`)
	b.Cleanup(func() {
		stop := exec.Command("bash", "-c", "pg_ctl stop --mode=immediate")
		stop.Dir, stop.Env = b.folder, slices.Concat(os.Environ(), b.variables)
		b.user(stop)
		_ = stop.Run()
	})

	return func(service string) replica.Database {
		return harness.PostgresSettings(storage.Config{
			Driver: storage.DriverPostgres, User: "postgres", Password: "none", Host: "127.0.0.1", Port: strconv.Itoa(port), Name: service, SSLMode: "disable",
		}, service)
	}
}

// sqlite returns a function that returns the settings of a service's SQLite database in the working directory.
func (b *backedUp) sqlite() func(service string) replica.Database {
	b.Helper()
	b.shell(`mkdir "$BACKUP"`)

	return func(service string) replica.Database {
		settings := harness.SQLite(b, service)
		settings.Path = filepath.Join(b.folder, service+".db")

		return settings
	}
}

// pair is a broker and a Provisioner that can be stopped and started on the same garden.
type pair struct {
	platform

	metrics     prometheus.Gatherer
	provisioner string
	stop        func()
}

// startPair starts the services. The Provisioner requires credentials, and the broker's user has the documented roles.
func (b *backedUp) startPair(garden *fakegarden.Memory, databases map[string]replica.Database, director provisioner.Director) pair {
	b.Helper()

	ordered := harness.ProvisionerSettings(databases["provisioner"])
	ordered.AuthBasicUsers, ordered.Director = "broker:secret:osb+operator,admin:secret:admin", director

	url, stopProvisioner := harness.StartProvisioner(b, garden.Client(), ordered, logging.Discard())

	broker := harness.BrokerSettings(databases["broker"])
	broker.ReconcileInterval = time.Second
	broker.Provisioner.URL, broker.Provisioner.User, broker.Provisioner.Password = url, "broker", secret.String("secret")

	started := harness.StartBroker(b, broker, logging.Discard())

	return pair{newPlatform(b, started.URL), started.Metrics, strings.TrimSuffix(url, "/graphql"), func() {
		started.Stop()
		stopProvisioner()
	}}
}

// ebctl runs an ebctl command with admin credentials for both services.
func (p pair) ebctl(args ...string) string {
	p.Helper()

	output, problems, code := p.run(args...)
	if code != 0 {
		p.Fatalf("ebctl %v exited with code %d: %s", args, code, problems)
	}

	return output
}

func (p pair) run(args ...string) (stdout, stderr string, code int) {
	variables := map[string]string{
		"EBCTL_ADDRESS": p.URL, "EBCTL_USERNAME": p.User, "EBCTL_PASSWORD": p.Password,
		"EBCTL_PROVISIONER_ADDRESS": p.provisioner, "EBCTL_PROVISIONER_USERNAME": "admin", "EBCTL_PROVISIONER_PASSWORD": "secret",
	}

	var output, problems bytes.Buffer

	code = ebctl.App{
		Out: &output, Err: &problems, Environment: func(name string) string { return variables[name] }, Clock: clock.RealClock{},
		Terminal:    func() (follow.Size, bool) { return follow.Size{}, false },
		Interactive: func() bool { return false }, PollInterval: 100 * time.Millisecond,
	}.Run(p.Context(), args)

	return output.String(), problems.String(), code
}

// differences returns the kinds of differences that `ebctl reconcile` finds, by instance.
func (p pair) differences(flags ...string) map[string]string {
	p.Helper()

	output, problems, _ := p.run(append([]string{"reconcile", "--dry-run", "-o", "json"}, flags...)...)

	var list operatorapi.DifferenceList
	if err := json.Unmarshal([]byte(output), &list); err != nil {
		p.Fatalf("%v: %s", err, problems)
	}

	// The bindings in a runtime without a cluster cannot be compared.
	for _, text := range list.Incomplete {
		if !strings.Contains(text, "of instance deleted: ") {
			p.Errorf("not compared: %s", text)
		}
	}

	found := map[string]string{}
	for _, each := range list.Data {
		found[each.InstanceID] = strings.TrimSpace(found[each.InstanceID] + " " + string(each.Kind))

		if each.Meaning == "" || !each.Restorable && len(each.Commands) == 0 {
			p.Errorf("a difference has no meaning or no command: %+v", each)
		}
	}

	return found
}

// reported returns the number of differences of a kind, from the metric of the periodic report, or -1 before the first report.
func (p pair) reported(kind string) float64 {
	p.Helper()

	families, err := p.metrics.Gather()
	if err != nil {
		p.Fatal(err)
	}

	for _, family := range families {
		for _, metric := range family.GetMetric() {
			if family.GetName() == "environment_broker_differences" && metric.GetLabel()[0].GetValue() == kind {
				return metric.GetGauge().GetValue()
			}
		}
	}

	return -1
}

// wantDifferences waits until the report contains exactly the differences in want. It must wait, because the effects of operations
// that ended seconds ago may not be visible yet.
func (p pair) wantDifferences(want map[string]string, flags ...string) {
	p.Helper()

	var got map[string]string

	if !harness.Within(harness.Patience, func() bool {
		got = p.differences(flags...)

		return maps.Equal(got, want)
	}) {
		p.Errorf("-want +got\n%s", cmp.Diff(want, got))
	}
}

// TestBackup runs the commands from the page on backups: it backs up the databases of two running services, creates, changes and
// deletes instances, restores the databases to the time before these changes, and restores the lost rows.
func TestBackup(t *testing.T) {
	t.Parallel()

	const dumps, recovery, sqlite = "PostgreSQL: dumps", "PostgreSQL: point-in-time recovery", "SQLite"

	ran := map[string]int{}

	t.Run("point in time", func(t *testing.T) {
		b := newBackedUp(t)
		target := ""

		b.story(b.postgres(), func() {
			b.page(recovery, 1)
			target = b.shell(`psql --no-align --tuples-only --command='SELECT now()' postgres`)
		}, func() { b.page(recovery, 2, "TARGET="+target) })
		maps.Copy(ran, b.ran)
	})
	t.Run("dumps", func(t *testing.T) {
		b := newBackedUp(t)
		b.story(b.postgres(), func() { b.page(dumps, 0) }, func() { b.page(dumps, 1) })
		maps.Copy(ran, b.ran)
	})
	t.Run("SQLite", func(t *testing.T) {
		b := newBackedUp(t)
		b.story(b.sqlite(), func() { b.page(sqlite, 0) }, func() { b.page(sqlite, 1) })
		maps.Copy(ran, b.ran)
	})

	if len(ran) == 0 || t.Failed() {
		return
	}

	for heading, blocks := range newBackedUp(t).blocks {
		for number, block := range blocks {
			// The test runs ebctl in its own process, with the same arguments.
			if ran[fmt.Sprint(heading, number)] == 0 && !strings.HasPrefix(block, "ebctl reconcile") {
				t.Errorf("%s: no test runs block %d of %q", backupPage, number, heading)
			}
		}
	}
}

// story backs up the databases, changes instances, restores the databases and reconciles them.
func (b *backedUp) story(settings func(service string) replica.Database, backup, restore func()) {
	b.Helper()

	garden := harness.StartGarden(b, 100*time.Millisecond)
	director, configured := newDirector(b.T)
	databases := map[string]replica.Database{"broker": settings("broker"), "provisioner": settings("provisioner")} // with one key each

	p := b.startPair(garden, databases, configured)
	p.Create("kept", harness.PlanAWS)
	p.Create("deleted", harness.PlanAWS)
	p.WantSucceeded("kept")
	p.WantSucceeded("deleted")

	// The Shoot of an unfinished creation exists, but is not ready before the backup.
	harness.InjectClusterFaults(b, garden, harness.StuckClusters())
	p.Create("unfinished", harness.PlanAWS)
	p.Until("the Shoot", func() bool { return len(harness.Shoots(b, garden)) == 3 })
	backup()
	harness.InjectClusterFaults(b, garden, nil)
	p.WantSucceeded("unfinished")

	p.Create("lost", harness.PlanAWS)
	p.WantSucceeded("lost")
	p.Update("lost", map[string]any{"parameters": map[string]any{"autoScalerMax": 17}})
	p.WantSucceeded("lost")
	p.Send(http.MethodPut, harness.BindingPath("kept", "b"), bindingOf(harness.PlanAWS, "view"), http.StatusCreated)
	p.Delete("deleted", harness.PlanAWS)
	p.WantGone("deleted")
	p.wantDifferences(map[string]string{}, "--bindings")
	p.stop()
	restore()

	before := harness.Shoots(b, garden)
	p = b.startPair(garden, databases, configured)
	p.WantSucceeded("unfinished")
	p.wantDifferences(map[string]string{"lost": "shoot-without-runtime", "deleted": "runtime-without-shoot", "kept": "unknown-binding"}, "--bindings")

	if text := p.ebctl("reconcile"); !strings.Contains(text, "Restored the row of the runtime: instance lost") ||
		!strings.Contains(text, "Restored the row of the instance: instance lost") {
		b.Errorf("want both rows restored, got:\n%s", text)
	}

	p.wantDifferences(map[string]string{"deleted": "runtime-without-shoot"})
	p.Until("the metric of the periodic report", func() bool {
		return p.reported("runtime-without-shoot") == 1 && p.reported("shoot-without-runtime") == 0
	})
	p.ebctl("reconcile") // a second run restores nothing

	for _, service := range []string{"", "provisioner"} {
		args := strings.Fields(service + " audit list --action restore -o name")
		if entries := strings.Fields(p.ebctl(args...)); len(entries) != 1 {
			b.Errorf("%s %s: want one entry, got %q", service, args, entries)
		}

		// The hash chain from the backup continues with the restored operations.
		verify := append(strings.Fields(service+" audit verify -o"), "jsonpath={.valid} {.pending}")
		p.Until(service+" a complete hash chain", func() bool { return strings.TrimSpace(p.ebctl(verify...)) == "true 0" })
	}

	p.ebctl("audit", "verify")
	p.ebctl("provisioner", "audit", "verify")
	wantSameShoots(b, before, garden)
	p.wantUsable("lost", director)
	p.Delete("deleted", harness.PlanAWS)
	p.WantGone("deleted")
	p.wantDifferences(map[string]string{})
}

// TestReconcileAfterOneDatabaseIsLost restores only one of the databases.
func TestReconcileAfterOneDatabaseIsLost(t *testing.T) {
	t.Parallel()

	for lost, want := range map[string]string{"broker": "runtime-without-instance", "provisioner": "shoot-without-runtime instance-without-runtime"} {
		t.Run(lost, func(t *testing.T) {
			t.Parallel()

			b := newBackedUp(t)
			settings := b.sqlite()
			databases := map[string]replica.Database{"broker": settings("broker"), "provisioner": settings("provisioner")}
			garden := harness.StartGarden(t, 100*time.Millisecond)
			director, configured := newDirector(t)

			p := b.startPair(garden, databases, configured)
			b.page("SQLite", 0)
			p.Create("i1", harness.PlanAWS)
			p.WantSucceeded("i1")
			p.Update("i1", map[string]any{"parameters": map[string]any{"autoScalerMax": 17}})
			p.WantSucceeded("i1")
			p.stop()
			b.shell(fmt.Sprintf(`rm -f %s.db-wal %[1]s.db-shm; cp "$BACKUP/%[1]s.db" %[1]s.db`, lost))

			p = b.startPair(garden, databases, configured)

			var kinds []string

			p.Until("the differences", func() bool {
				kinds = strings.Fields(p.ebctl("reconcile", "--dry-run", "-o", "jsonpath={.data[*].kind}"))
				slices.Sort(kinds)

				wanted := strings.Fields(want)
				slices.Sort(wanted)

				return slices.Equal(kinds, wanted)
			})
			p.ebctl("reconcile")
			p.wantDifferences(map[string]string{})
			p.wantUsable("i1", director)
		})
	}
}

// wantSameShoots checks that no Shoot has changed.
func wantSameShoots(b *backedUp, before []gardencorev1beta1.Shoot, garden *fakegarden.Memory) {
	b.Helper()

	for _, shoot := range before {
		for _, after := range harness.Shoots(b, garden) {
			if after.Name == shoot.Name && (after.UID != shoot.UID || after.ResourceVersion != shoot.ResourceVersion) {
				b.Errorf("the Shoot %s has changed", shoot.Name)
			}
		}
	}
}

// wantUsable checks that a restored instance can be ordered again, read, changed and deleted, and that the deletion also removes its
// registration in Director.
func (p pair) wantUsable(instance string, director *fakedirector.Director) {
	p.Helper()
	p.Send(http.MethodPut, harness.InstancePath(instance)+harness.Incomplete, harness.Order(harness.PlanAWS), http.StatusOK)

	read := p.Send(http.MethodGet, harness.InstancePath(instance), nil, http.StatusOK)
	if !strings.Contains(read.Raw, `"autoScalerMax":17`) {
		p.Errorf("the restored instance lacks the parameters of its update: %s", read.Raw)
	}

	p.Update(instance, map[string]any{"parameters": map[string]any{"autoScalerMax": 18}})
	p.WantSucceeded(instance)
	p.ebctl("instance", "kubeconfig", instance)

	registered := len(director.Runtimes())

	p.Delete(instance, harness.PlanAWS)
	p.WantGone(instance)

	if left := len(director.Runtimes()); left != registered-1 {
		p.Errorf("want %d registrations, got %d", registered-1, left)
	}
}
