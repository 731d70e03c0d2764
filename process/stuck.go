package process

import "time"

// Limits beyond which an operation in progress needs the attention of an operator. An operation that is delayed by an error needs
// attention immediately.
const (
	// Overdue is how long after its due time an operation may start its next attempt. Workers normally claim a due operation
	// within a second, so a longer delay indicates stopped or overloaded replicas.
	Overdue = time.Minute
	// TooLong is the duration after which an operation counts as stuck. The slowest operation, creating a cluster, takes less
	// than an hour.
	TooLong = time.Hour
)
