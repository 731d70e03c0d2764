package crashtest

import (
	"context"
	"sync"
	"testing"
	"time"

	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/process"
)

const (
	// look is how often the play looks whether something has happened.
	look = time.Second
	// patience is how long an operation may take. Nothing in a story takes as long.
	patience = 2 * time.Hour
	// settle is how long the story goes on after its end, so that late calls do what harm they can.
	settle = 3 * latency
	// poll is how often a replica looks for work: seldom, because each look costs real time.
	poll = 4 * time.Second
)

// Play is one run of a story: the replicas, and what is told of them.
type Play[D any] struct {
	*testing.T

	world   World[D]
	faults  *faults
	witness *witness
	running sync.WaitGroup
	lines   []*Line
}

func newPlay[D any](t *testing.T, world World[D], plan []Fault) *Play[D] {
	t.Helper()

	play := &Play[D]{T: t, world: world, faults: newFaults(plan), witness: newWitness()}
	play.employ()

	return play
}

// Begin has faults happen from now on. What was before is the past of the story.
func (p *Play[D]) Begin() { p.faults.begin() }

// Sleep lets time pass. Replicas that die or freeze meanwhile are replaced.
func (p *Play[D]) Sleep(d time.Duration) {
	p.Helper()

	for end := time.Now().Add(d); time.Now().Before(end); {
		time.Sleep(min(look, time.Until(end)))

		if !p.lines[len(p.lines)-1].works() {
			p.employ()
		}
	}
}

// Await lets time pass until the operations have ended.
func (p *Play[D]) Await(operationIDs ...string) {
	p.Helper()

	for _, id := range operationIDs {
		for end := time.Now().Add(patience); !p.get(id).State.Terminal(); p.Sleep(look) {
			if time.Now().After(end) {
				p.Fatalf("operation %s does not come to an end: %+v\n%s", id, p.get(id), tell(p.timeline(id)))
			}
		}
	}
}

// employ starts another replica.
func (p *Play[D]) employ() {
	p.Helper()

	ctx, kill := context.WithCancel(context.WithoutCancel(p.Context()))
	line := &Line{faults: p.faults, kill: kill}
	p.lines = append(p.lines, line)

	processes := watch(p.world.Processes(line), line, p.witness)

	config := process.DefaultConfig()
	config.Poll = poll

	engine, err := process.NewEngine(store{Store: p.world.Store, line: line, witness: p.witness}, config, clock.RealClock{},
		logging.Discard(), processes...)
	if err != nil {
		p.Fatal(err)
	}

	p.running.Go(func() {
		if err := engine.Run(ctx); err != nil {
			p.Error(err)
		}
	})
}

// settle lets late calls arrive.
func (p *Play[D]) settle() {
	p.Helper()

	for _, line := range p.lines {
		_ = line.stand()
	}

	p.Sleep(settle)
}

// end stops the replicas that are left.
func (p *Play[D]) end() {
	for _, line := range p.lines {
		line.kill()
	}

	p.running.Wait()
}

func (p *Play[D]) get(id string) process.Record {
	p.Helper()

	record, err := p.world.Store.Get(p.Context(), p.world.Store.Reader(), id)
	if err != nil {
		p.Fatal(err)
	}

	return record
}

func (p *Play[D]) timeline(id string) []process.Entry {
	p.Helper()

	timeline, err := p.world.Store.Timeline(p.Context(), id)
	if err != nil {
		p.Fatal(err)
	}

	return timeline
}
