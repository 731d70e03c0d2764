package crashtest

import (
	"regexp"
	"testing"

	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage/operations"
)

// Scene is a story that is played again and again. D is the data of its operations.
type Scene[D any] struct {
	// Name is that of the scene's tests.
	Name string
	// Kind is the process that the story is about.
	Kind string
	// Open builds the world of one run, on the time of a synctest bubble.
	Open func(t *testing.T) World[D]
}

// World is what a story is played in.
type World[D any] struct {
	Store *operations.Store
	// Processes are what a replica registers: all that the service does. Their calls to the outside go by the line.
	Processes func(line *Line) []process.Process[D]
	// AnyData says that the data of the operations, too, depends on what had happened when a fault struck.
	AnyData bool
	// Random, if set, finds what the world draws at random besides UUIDs. It is not compared.
	Random *regexp.Regexp
	// Tell tells the story. It returns the operations whose end has to be the same whatever goes wrong; of others it is only asked that
	// they come to an end.
	Tell func(play *Play[D]) (operationIDs []string)
	// Outside is what there is outside when the story has ended, as a value that is compared. It also notes what must never be.
	Outside func() any
}
