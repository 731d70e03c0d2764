package orders

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
	"github.com/environment-broker/environment-broker/provisioner/operation"
	"github.com/environment-broker/environment-broker/storage/operations"
)

const (
	// feedPause is the interval at which a waiting request queries the database.
	feedPause = 250 * time.Millisecond
	// feedOverlap is how far before its cursor a request starts to read, to find changes that became visible late. The time of a
	// change is the start of its write, but the change becomes visible only with the commit. A write may wait ten seconds for the
	// database (see packages process and storage), so it can become visible after changes that are up to ten seconds newer.
	feedOverlap = 12 * time.Second
	// feedPage is the maximum number of changes in one response.
	feedPage = 500
)

// Change reports that an operation has changed. It contains only those fields of operation.Status that any client may see,
// because the feed covers all tenants.
type Change struct {
	ID, RuntimeID, Kind string
	State               process.State
}

// cursor is a position in the feed. The client stores it and the server has no state for it, so any replica can continue the
// feed, even after a restart.
type cursor struct {
	// At is the time of the newest change that the client has.
	At time.Time
	// Sent contains the mark of each change that the client already has from the overlap before At.
	Sent []uint32
}

// Changes returns the operations of all tenants that changed after the cursor, and the next cursor. It blocks until the first
// change. It returns no changes when the wait is over, when the context ends, or when the replica drains its connections. With
// an empty cursor it immediately returns the current position. Its error is failure.Invalid if after is not a cursor, and
// failure.Transient if the database does not respond.
func (s *Service) Changes(ctx context.Context, after string, wait time.Duration) (string, []Change, error) {
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
			return after, nil, nil // the replica is stopping: the client continues with another replica
		case <-s.Clock.After(feedPause):
		}
	}
}

// changesAfter reads one page of changes. The query also returns the changes in the overlap that the client already has. The
// limit of the query grows with the number of these changes, so that the page always has room for new changes.
func (s *Service) changesAfter(ctx context.Context, from cursor) (cursor, []Change, error) {
	sent := make(map[uint32]bool, len(from.Sent))
	for _, mark := range from.Sent {
		sent[mark] = true
	}

	found, err := s.Operations.ChangedSince(ctx, from.At.Add(-feedOverlap), feedPage+len(sent))
	if err != nil {
		return from, nil, unavailable(err)
	}

	next := from
	changes := []Change{}

	for _, change := range found {
		// The clock of another replica may be ahead. A cursor in the future would skip changes of replicas whose clocks are behind.
		at := change.At.Time
		if now := s.Clock.Now(); at.After(now) {
			at = now
		}

		if at.After(next.At) {
			next.At = at
		}

		if !sent[mark(change)] {
			changes = append(changes, Change{
				ID: change.ID, RuntimeID: change.InstanceID,
				Kind: operation.PublicKind(change.Kind), State: operation.PublicState(process.State(change.State)),
			})
		}
	}

	next.Sent = nil

	for _, change := range found {
		if !change.At.Before(next.At.Add(-feedOverlap)) {
			next.Sent = append(next.Sent, mark(change))
		}
	}

	return next, changes, nil
}

// mark returns a hash that identifies one change of one operation. If the hashes of two changes in the overlap collide, the
// client misses one of them. It then learns the state from the operation's next change or from a query.
func mark(change operations.Change) uint32 {
	hash := fnv.New32a()
	_, _ = fmt.Fprint(hash, change.ID, change.State, change.At.UnixMicro()) // never fails

	return hash.Sum32()
}

// markSize is the size of a mark in bytes.
const markSize = 4

// String encodes the cursor for clients: the time in microseconds since 1970, then the marks, all big-endian and in base64.
// Clients must not rely on the format.
func (c cursor) String() string {
	encoded := binary.BigEndian.AppendUint64(make([]byte, 0, 8+markSize*len(c.Sent)), uint64(c.At.UnixMicro()))
	for _, mark := range c.Sent {
		encoded = binary.BigEndian.AppendUint32(encoded, mark)
	}

	return base64.RawURLEncoding.EncodeToString(encoded)
}

// parseCursor decodes a client's cursor. It accepts any time: an old cursor only results in more changes.
func parseCursor(text string) (cursor, error) {
	encoded, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(encoded) < 8 || len(encoded)%markSize != 0 {
		return cursor{}, failure.New(failure.Invalid, "after: must be a cursor from operationChanges; omit it to start again")
	}

	parsed := cursor{At: time.UnixMicro(int64(binary.BigEndian.Uint64(encoded)))} //nolint:gosec // any number is a time
	for rest := encoded[8:]; len(rest) > 0; rest = rest[markSize:] {
		parsed.Sent = append(parsed.Sent, binary.BigEndian.Uint32(rest))
	}

	return parsed, nil
}
