package crashtest

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage/operations"
)

// outcome is what has to be the same in every run of a story.
type outcome struct {
	Operations []ended
	Outside    any
}

// ended is an operation at its end, without ids and times.
type ended struct {
	Kind           string
	State          process.State
	Description    string
	Problem        process.Problem
	FinishedStages []string
	SkippedSteps   []string
	Data           string
}

// run plays the story once and returns its outcome, and the faults that there were and could have been.
func run[D any](t *testing.T, scene Scene[D], plan []Fault) (outcome, *faults) {
	t.Helper()

	var (
		came   outcome
		faults *faults
	)

	synctest.Test(t, func(t *testing.T) {
		play := newPlay(t, scene.Open(t), plan)
		defer play.end()

		ids := play.world.Tell(play)
		all := play.all()

		for _, record := range all {
			play.Await(record.ID)
		}

		play.settle()

		for _, id := range ids {
			came.Operations = append(came.Operations, play.ending(play.get(id)))
		}

		for _, record := range all {
			for _, wrong := range play.judge(record.ID) {
				t.Error(wrong)
			}

			if taken := play.witness.of(record.ID).takeovers; taken > 0 && play.faults.happened == 0 {
				t.Errorf("%s was taken over %d times from replicas that nothing had befallen:\n%s",
					record.Kind, taken, tell(play.timeline(record.ID)))
			}
		}

		came.Outside = play.world.Outside()

		for _, wrong := range play.witness.wrong {
			t.Error(wrong)
		}

		faults = play.faults
	})

	return came, faults
}

// same fails the test unless the story came out as the undisturbed one did.
func same(t *testing.T, want, got outcome) {
	t.Helper()

	if diff := gocmp.Diff(want, got); diff != "" {
		t.Errorf("the story ended in another way, -undisturbed +now:\n%s", diff)
	}
}

// all lists the operations, the oldest first.
func (p *Play[D]) all() []process.Record {
	p.Helper()

	const enough = 1000

	records, err := p.world.Store.List(p.Context(), operations.Filter{Limit: enough})
	if err != nil {
		p.Fatal(err)
	}

	slices.SortFunc(records, func(one, other process.Record) int {
		return cmp.Or(one.CreatedAt.Compare(other.CreatedAt), cmp.Compare(one.Position, other.Position))
	})

	return records
}

// judge returns what must not be about an operation that has ended.
func (p *Play[D]) judge(id string) []string {
	p.Helper()

	record, timeline := p.get(id), p.timeline(id)

	wrong := Gaps(record.State, timeline)

	if record.Lease.Owner != "" {
		wrong = append(wrong, "it is under lease still")
	}

	told := 0
	done := map[string]bool{}

	for _, entry := range timeline {
		if entry.Outcome == process.TakenOver {
			told++
		}

		done[entry.Step] = done[entry.Step] ||
			slices.Contains([]process.Outcome{process.Done, process.NotCompleted, process.Skipped}, entry.Outcome)
	}

	p.witness.mutex.Lock()
	known := p.witness.of(id)

	if told > known.takeovers || told == 0 && known.takeovers > 0 {
		wrong = append(wrong, "takeovers are not told as they were")
	}

	for _, stage := range record.FinishedStages {
		for _, step := range known.ran[stage] {
			if !done[step] {
				wrong = append(wrong, "nothing tells that step "+step+" was done")
			}
		}
	}

	p.witness.mutex.Unlock()

	for i := range wrong {
		wrong[i] = fmt.Sprintf("%s %s: %s; its timeline:\n%s", record.Kind, record.State, wrong[i], tell(timeline))
	}

	return wrong
}

var (
	ids   = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
	times = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`)
)

// ending is the operation as it is compared.
func (p *Play[D]) ending(record process.Record) ended {
	data := ""
	if !p.world.AnyData {
		data = string(record.Payload)
	}

	for _, random := range []*regexp.Regexp{ids, times, p.world.Random} {
		if random != nil {
			data = random.ReplaceAllString(data, "…")
		}
	}

	return ended{
		Kind: record.Kind, State: record.State, Description: record.Description, Problem: record.Problem,
		FinishedStages: record.FinishedStages, SkippedSteps: record.SkippedSteps, Data: data,
	}
}

func at(moment time.Time) string { return moment.Format("15:04:05.000") }
