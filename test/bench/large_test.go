package bench

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"time"

	"github.com/environment-broker/environment-broker/internal/operatorapi"
	"github.com/environment-broker/environment-broker/internal/sandbox/postgrestest"
	"github.com/environment-broker/environment-broker/internal/secret"
	"github.com/environment-broker/environment-broker/test/bench/load"
	"github.com/environment-broker/environment-broker/test/bench/prefill"
	"github.com/environment-broker/environment-broker/test/bench/report"
	"github.com/environment-broker/environment-broker/test/bench/simulated"
	"github.com/environment-broker/environment-broker/test/harness"
)

const (
	// smallSize is the number of instances in the database to which the large one is compared.
	smallSize = 1_000
	// operationsEach is the number of operations of each instance: its creation and its updates.
	operationsEach = 5
	day            = 24 * time.Hour
	// turns is the number of turns in which a figure and its floor are measured. The speed of the machine changes from one
	// second to the next, so each figure is the median of its turns.
	turns = 5
	// turnWarmUp and turnPeriod are the durations of a turn that measures a rate.
	turnWarmUp = 100 * time.Millisecond
	turnPeriod = time.Second
	// largeAge is the age of the oldest instance. timelinesKept is the default of APP_TIMELINE_RETENTION.
	largeAge      = 365 * day
	timelinesKept = 30 * day
)

// largeSettings returns PostgreSQL settings for the large database on a machine with 24 GiB of memory.
func largeSettings() []string {
	return []string{
		"shared_buffers=4GB", "effective_cache_size=12GB", "maintenance_work_mem=512MB", "max_wal_size=24GB", "checkpoint_timeout=30min",
		"shared_preload_libraries=pg_stat_statements",
	}
}

// sized is an environment without a running broker whose database has many instances with several operations each.
type sized struct {
	*environment

	size   int
	copies []prefill.Copy
	// filledAt is the time on the database server when the database had been filled.
	filledAt time.Time
}

// measureLarge compares the figures of a large database with a small one, and measures the retention and the size of rows.
func measureLarge(s *scope) {
	small, large := s.fillOperated(smallSize, false), s.fillOperated(*large, true)

	small.measureBytes()
	s.add(report.Figure{Name: fmt.Sprintf("size of the database with %d instances and emptied operations", large.size), Unit: "GiB"}, large.bytes()/gibibyte)
	small.check(small.db.Close()) // PostgreSQL cannot copy a database that has connections.

	// Without this, the server would write the filled tables to disk while the first figures are measured.
	_, err := large.db.ExecContext(s.Context(), `CHECKPOINT`)
	s.check(err)
	s.Logf("measuring")

	s.rounds(func(s *scope) {
		few := s.copied(small).measureSize(s)
		many := large.measureSize(s)

		for _, name := range few.names {
			before, after := few.samples[name], many.samples[name]

			for _, sized := range []struct {
				*sized
				sample
			}{{small, before}, {large, after}} {
				s.addWithFloor(report.Figure{Name: fmt.Sprintf("%s at %d instances", name, sized.size), Unit: sized.unit}, sized.broker, sized.floor)
			}

			s.add(report.Figure{Name: name + ": ratio compared to 1000 instances", Unit: "%", AtLeast: 85}, 100*after.share()/before.share())
		}

		large.reset()
	})

	large.measureRetention(s)
}

// fillOperated returns an environment whose database contains size instances, each with several operations, an audit log entry and
// an endpoint. The floor's tables have as many rows. The timelines of old operations are removed. If emptied is true, only the
// newest operation of each instance has a payload.
func (s *scope) fillOperated(size int, emptied bool) *sized {
	e := s.start(simulated.Behaviour{})
	e.create(1)
	e.waitFor(allSucceeded, 1)

	generator := load.New(1)
	defer generator.Close()

	var id string

	e.get(&id, `SELECT id FROM instances`)

	for i := range operationsEach - 1 {
		e.fetch(generator, e.request(http.MethodPatch, id, http.StatusAccepted, map[string]any{
			"service_id": harness.ServiceID, "parameters": map[string]any{"autoScalerMax": 6 + i},
		}))
		e.waitFor(allSucceeded, 2+i)
	}

	// The broker rejects a second order with the same ID, which adds an entry to the audit log.
	e.fetch(generator, e.request(http.MethodPut, id, http.StatusConflict, harness.Order(harness.PlanAzure)))
	e.until("the hash chain", func() (complete bool) {
		e.get(&complete, `SELECT count(*) = $1 FROM audit_chain`, operationsEach+1)

		return complete
	})
	e.broker.stop()

	keys, err := secret.ParseKeyring(e.database.SecretKeys)
	s.check(err)

	filled := &sized{environment: e, size: size}
	filled.copies = prefill.Multiply(s, e.db, keys, prefill.Options{Count: size, Age: largeAge, Timelines: timelinesKept, Emptied: emptied})

	for _, statement := range []string{
		floorTables,
		`INSERT INTO floor_instances (id, tenant, request) SELECT id, global_account_id, request FROM instances`,
		// A payload of full length is stored outside of the row, so only a short part of it counts.
		`INSERT INTO floor_operations (id, instance_id, state, description, payload)
			SELECT id, instance_id, state, description, left(payload, 32) FROM operations`,
		`INSERT INTO floor_list (number, entry) SELECT row_number() OVER (ORDER BY created_at), to_jsonb(instances) - 'request' FROM instances`,
		`CREATE INDEX floor_pending ON floor_operations (id) WHERE state = 'pending'`,
		`VACUUM ANALYZE`,
	} {
		_, err := e.db.ExecContext(s.Context(), statement)
		s.check(err)
	}

	e.get(&filled.filledAt, `SELECT now()`)

	return filled
}

// request returns a request for an instance. want is the expected status.
func (e *environment) request(method, instance string, want int, content map[string]any) load.Request {
	body, err := json.Marshal(content)
	e.check(err)

	return load.Request{
		Method: method, URL: e.broker.url + harness.InstancePath(instance) + harness.Incomplete, Header: header(), Body: body, Want: want,
	}
}

// copied returns an environment with a copy of the original's database, so that new instances do not make the original larger. The
// original database must not have connections.
func (s *scope) copied(original *sized) *sized {
	environment := *original.environment
	environment.scope = s
	environment.database.Name = s.postgres.Copy(s, original.database.Name).Name
	environment.db = open(s, s.postgres, environment.database.Name)

	return &sized{environment: &environment, size: original.size, copies: original.copies}
}

// sample is a figure with its floor.
type sample struct {
	broker, floor float64
	// unit is empty for a rate.
	unit string
}

// share returns the broker's speed as a share of the floor's speed.
func (s sample) share() float64 {
	if s.unit == "" {
		return s.broker / s.floor
	}

	return s.floor / s.broker
}

// samples contains the figures of a round. names is in the order of the page.
type samples struct {
	names   []string
	samples map[string]sample
}

func (s *samples) add(name string, sample sample) {
	s.names = append(s.names, name)
	s.samples[name] = sample
}

// measureSize measures all figures for one database size, each alternately with its floor.
func (z *sized) measureSize(s *scope) samples {
	measured := samples{samples: map[string]sample{}}

	s.within(func(s *scope) {
		generator := load.New(1)
		defer generator.Close()

		e := *z.environment
		e.scope = s

		broker, floor, started := s.startByTurns(&e, generator)
		measured.add("start to ready", started)

		list := func(path string) func(int) load.Request {
			return gets(fmt.Sprintf("%s%s?page_size=%d", broker.url, path, pageSize))
		}
		page := func(before int) func(int) load.Request {
			return gets(fmt.Sprintf("%s%s?before=%d", floor.url, floorList, before))
		}
		middle := z.middleOf(s, generator, broker)

		for _, figure := range []struct {
			name          string
			broker, floor func(number int) load.Request
		}{
			{"last_operation/s", lastOperations(broker.url, z.copies), lastOperations(floor.url, z.copies)},
			{"catalog/s", gets(broker.url + "/v2/catalog"), gets(floor.url + "/v2/catalog")},
			{"lists of 100 instances/s, first page", list("/runtimes"), page(math.MaxInt32)},
			{"lists of 100 instances/s, a page in the middle", gets(middle), page(z.size / 2)},
			{"lists of 100 operations/s, first page", list("/operations"), page(math.MaxInt32)},
			{"lists of 100 audit log entries/s, first page", list("/audit"), page(math.MaxInt32)},
			{"accepted creates/s", creates(broker.url, manyTenants), creates(floor.url, manyTenants)},
		} {
			measured.add(figure.name, z.alternate(s, figure.name, broker, figure.broker, figure.floor))
		}

		// On a slow machine, the measurements above create too few operations for the claims.
		e.send(claimed, creates(floor.url, manyTenants))
		e.send(claimed, creates(broker.url, manyTenants))
		measured.add("claimed operations/s, ten at a time", s.measureClaims(&e))
	})

	return measured
}

// startByTurns starts the broker and its floor several times, by turns, and returns them running, and their median times until they
// were ready.
func (s *scope) startByTurns(e *environment, generator *load.Generator) (broker, floor *program, started sample) {
	var brokers, floors []time.Duration

	broker = s.startBroker(e, paused)
	catalog := s.fetch(generator, gets(broker.url+"/v2/catalog")(0)).Body

	for turn := range turns {
		if turn > 0 {
			floor.stop()
			broker.stop()
			broker = s.startBroker(e, paused)
		}

		floor = s.startFloor(e, len(catalog))
		brokers, floors = append(brokers, broker.startTook), append(floors, floor.startTook)
	}

	return broker, floor, sample{milliseconds(report.Median(brokers)), milliseconds(report.Median(floors)), "ms"}
}

// alternate measures the rates of the broker and of its floor by turns. It also measures the CPU time per request to the broker.
func (z *sized) alternate(s *scope, name string, broker *program, request, floor func(number int) load.Request) sample {
	programs := []string{"the broker", "PostgreSQL"}
	costs := make([]time.Duration, len(programs))
	requests := 0.0

	var brokers, floors []float64

	for range turns {
		floors = append(floors, s.rateOf(turnWarmUp, turnPeriod, floor).PerSecond)

		before := []time.Duration{s.cpuOf(broker.command.Process.Pid), s.cpuOf(s.postgres.ID())}
		rate := s.rateOf(turnWarmUp, turnPeriod, request).PerSecond
		after := []time.Duration{s.cpuOf(broker.command.Process.Pid), s.cpuOf(s.postgres.ID())}

		brokers = append(brokers, rate)
		requests += rate * (turnWarmUp + turnPeriod).Seconds()

		for i := range costs {
			costs[i] += after[i] - before[i]
		}
	}

	for i, program := range programs {
		s.add(report.Figure{Name: fmt.Sprintf("%s at %d instances: CPU time of %s per request", name, z.size, program), Unit: "ms"},
			milliseconds(costs[i])/requests)
	}

	return sample{broker: report.Median(brokers), floor: report.Median(floors)}
}

// middleOf returns the URL of the middle page of the list of instances.
func (z *sized) middleOf(s *scope, generator *load.Generator, broker *program) string {
	first := fmt.Sprintf("%s/runtimes?page_size=%d", broker.url, pageSize)

	var list operatorapi.RuntimeList

	s.check(json.Unmarshal(s.fetch(generator, gets(fmt.Sprintf("%s&page=%d", first, z.size/pageSize/2))(0)).Body, &list))

	if len(list.Data) != pageSize || list.Cursor == "" {
		s.Fatalf("the page in the middle has %d instances and the cursor %q", len(list.Data), list.Cursor)
	}

	return first + "&cursor=" + list.Cursor
}

// launch starts the PostgreSQL server for the benchmarks, with largeSettings if the large database is measured.
func launch() (*postgrestest.Server, error) {
	if *large == 0 {
		return postgrestest.Launch()
	}

	return postgrestest.Launch(largeSettings()...)
}
