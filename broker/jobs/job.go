package jobs

import (
	"context"
	"time"
)

// Job is periodic work on items that are due. All fields except Limit and Daily are required.
type Job struct {
	// Name identifies the job in the operator API, in metrics and in the database. It never changes.
	Name string
	// Description says in one sentence what a run does.
	Description string
	// Items is the plural noun for the items, such as "instances".
	Items string
	// Every is the interval between two background runs.
	Every time.Duration
	// Daily, if set, is the time of the daily background run, as the time since midnight in UTC. Every is then ignored.
	Daily *time.Duration
	// Limit is the number of items that a run may change without confirmation. Zero means no limit.
	Limit int
	// Reason is the reason for changes by background runs, in timelines and in the audit log.
	Reason string
	// Protection describes, in one sentence for operators, the effect of a run on instances that are protected from deletion.
	Protection string
	// Due returns the items that are due now. It changes nothing. With an error, it can return the items that it has found so far. They
	// are changed only if the job has no limit.
	Due func(ctx context.Context) (Due, error)
}

// Due is the work of one run.
type Due struct {
	Items []Item
	// Complete, if set, is called after a run that has processed all items without an error.
	Complete func(ctx context.Context) error
}

// Item is one item that a run changes. Even if several replicas process it concurrently, it is changed only once.
type Item struct {
	ID string
	// InstanceID is the instance that the change affects, or empty.
	InstanceID string
	// Do changes the item. changed is false if there was nothing to change, for example because a concurrent request was faster.
	Do func(ctx context.Context, reason string) (changed bool, err error)
}

// Status is a job with the result of its newest run.
type Status struct {
	Job Job
	// Last is nil before the first run.
	Last *Result
}

// Result is the result of a run. It is stored as JSON, so the names of its fields never change.
type Result struct {
	StartedAt  time.Time `json:"startedAt"`
	FinishedAt time.Time `json:"finishedAt"`
	// By is the user who started the run, or empty for a background run.
	By string `json:"by,omitempty"`
	// Due is the number of items that were due. Changed, Unchanged and Failed count the processed ones; the rest is left for the
	// next run.
	Due       int `json:"due"`
	Changed   int `json:"changed"`
	Unchanged int `json:"unchanged"`
	Failed    int `json:"failed"`
	// Held reports that the run changed nothing, because more items were due than the limit allows.
	Held bool `json:"held,omitempty"`
	// Errors are the first distinct errors of the run, for operators. The text of an item's error begins with the ID of the item. If
	// further items had the same error, their number follows.
	Errors []string `json:"errors,omitempty"`
	// IDs are the first items that were due. They are not stored.
	IDs []string `json:"-"`
	// Protected is the number of due items whose instances are protected from deletion, and ProtectedIDs are the first of them.
	// Protection is Job.Protection. These three fields are set only by dry runs, and are not stored.
	Protected    int      `json:"-"`
	ProtectedIDs []string `json:"-"`
	Protection   string   `json:"-"`
}

// Left is the number of due items that the run has not processed.
func (r Result) Left() int { return r.Due - r.Changed - r.Unchanged - r.Failed }
