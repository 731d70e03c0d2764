package process

import "time"

// The limits from which an operation in progress needs the attention of an operator. An operation that an error delays needs it at
// once.
const (
	// Overdue is how late an operation may start its next attempt. Workers normally claim a due operation within a second, so an
	// operation that is later indicates stopped or overloaded replicas.
	Overdue = time.Minute
	// TooLong is the duration from which an operation counts as stuck. The slowest one, the creation of a cluster, takes less than
	// an hour.
	TooLong = time.Hour
)
