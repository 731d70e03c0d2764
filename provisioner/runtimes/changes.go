package runtimes

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"time"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/httpserver"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/provisioner/graph/model"
	"github.com/environment-broker/environment-broker/storage/operations"
)

const (
	// feedPause is how often a waiting feed looks.
	feedPause = 250 * time.Millisecond
	// feedOverlap is how far behind the newest change a feed reads again: what is stored may be a while old, for a write waits for the
	// database up to ten seconds (see process and storage).
	feedOverlap = 12 * time.Second
	// feedPage bounds the changes of one answer.
	feedPage = 500
)

// cursor is a place in the feed: the newest change that was told, and marks of those told within the overlap before it. It holds
// all that is needed, so any replica can go on from it.
type cursor struct {
	At   time.Time
	Told []uint32
}

// Changes implements graph.Runtimes.
func (s *Service) Changes(ctx context.Context, after string, wait time.Duration) (string, []model.OperationChange, error) {
	if after == "" {
		return cursor{At: s.Clock.Now()}.String(), nil, nil
	}

	from, err := parseCursor(after)
	if err != nil {
		return "", nil, err
	}

	deadline := s.Clock.Now().Add(wait)

	for {
		next, changes, err := s.changesAfter(ctx, from)
		if err != nil || len(changes) > 0 || !s.Clock.Now().Before(deadline) {
			return next.String(), changes, err
		}

		select {
		case <-ctx.Done():
			return after, nil, nil
		case <-httpserver.Draining(ctx):
			return after, nil, nil // the broker asks another replica
		case <-s.Clock.After(feedPause):
		}
	}
}

func (s *Service) changesAfter(ctx context.Context, from cursor) (cursor, []model.OperationChange, error) {
	told := make(map[uint32]bool, len(from.Told))
	for _, mark := range from.Told {
		told[mark] = true
	}

	found, err := s.Operations.ChangedSince(ctx, from.At.Add(-feedOverlap), feedPage+len(told))
	if err != nil {
		return from, nil, unavailable(err)
	}

	next := from
	changes := []model.OperationChange{}

	for _, change := range found {
		// A replica whose clock is ahead must not make the feed pass over what the others write.
		if at := earlier(change.At.Time, s.Clock.Now()); at.After(next.At) {
			next.At = at
		}

		if !told[mark(change)] {
			changes = append(changes, model.OperationChange{
				ID: change.ID, RuntimeID: change.InstanceID,
				Operation: typeOf(change.Kind), State: state(process.State(change.State)),
			})
		}
	}

	next.Told = nil

	for _, change := range found {
		if !change.At.Before(next.At.Add(-feedOverlap)) {
			next.Told = append(next.Told, mark(change))
		}
	}

	return next, changes, nil
}

func earlier(one, other time.Time) time.Time {
	if one.Before(other) {
		return one
	}

	return other
}

// mark stands for one change of one operation.
func mark(change operations.Change) uint32 {
	hash := fnv.New32a()
	_, _ = fmt.Fprint(hash, change.ID, change.State, change.At.UnixMicro()) // never fails

	return hash.Sum32()
}

// markSize is how many bytes a mark takes.
const markSize = 4

// String returns the cursor as clients get it: the time in microseconds since 1970, then the marks.
func (c cursor) String() string {
	encoded := binary.BigEndian.AppendUint64(make([]byte, 0, 8+markSize*len(c.Told)), uint64(c.At.UnixMicro()))
	for _, mark := range c.Told {
		encoded = binary.BigEndian.AppendUint32(encoded, mark)
	}

	return base64.RawURLEncoding.EncodeToString(encoded)
}

func parseCursor(text string) (cursor, error) {
	encoded, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(encoded) < 8 || len(encoded)%markSize != 0 {
		return cursor{}, failure.New(failure.Invalid, "after: this is no cursor of operationChanges; begin again without one")
	}

	parsed := cursor{At: time.UnixMicro(int64(binary.BigEndian.Uint64(encoded)))} //nolint:gosec // any number is a time
	for rest := encoded[8:]; len(rest) > 0; rest = rest[markSize:] {
		parsed.Told = append(parsed.Told, binary.BigEndian.Uint32(rest))
	}

	return parsed, nil
}
