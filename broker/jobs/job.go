package jobs

import (
	"context"
	"time"
)

// Job is periodic work on things that are due. All fields except Limit and Daily are required.
type Job struct {
	// Name identifies the job in the operator API, in metrics and in the database. It never changes.
	Name string
	// Description says in one sentence what a run does.
	Description string
	// Items names what the IDs of the items identify, in the plural, such as "instances".
	Items string
	// Every is the interval between two runs in the background.
	Every time.Duration
	// Daily, if set, is the time since midnight in UTC at which the background runs the job, once a day instead of at the interval.
	Daily *time.Duration
	// Limit is the number of items that a run may change without confirmation. Zero means no limit.
	Limit int
	// Reason is the reason that timelines and the audit log have for changes in the background.
	Reason string
	// Due returns what a run has to do now. It changes nothing.
	Due func(ctx context.Context) (Due, error)
}

// Due is the work of one run.
type Due struct {
	Items []Item
	// Complete, if set, is called after a run that has done all items without an error.
	Complete func(ctx context.Context) error
}

// Item is one thing that a run changes. Several replicas may do the same item concurrently: it changes once.
type Item struct {
	ID string
	// Do changes the item. It reports whether it has changed something: a concurrent request may have been faster.
	Do func(ctx context.Context, reason string) (changed bool, err error)
}

// Status is a job with the result of its newest run.
type Status struct {
	Job Job
	// Last is nil before the first run.
	Last *Result
}

// Result is what a run has found and done. It is stored as JSON, so the names of its fields never change.
type Result struct {
	StartedAt  time.Time `json:"startedAt"`
	FinishedAt time.Time `json:"finishedAt"`
	// By is the user who has started the run. It is empty in the background.
	By string `json:"by,omitempty"`
	// Due is the number of items that were due. Changed, Unchanged and Failed count those that the run has done; the others are left
	// for the next run.
	Due       int `json:"due"`
	Changed   int `json:"changed"`
	Unchanged int `json:"unchanged"`
	Failed    int `json:"failed"`
	// Held reports that more items than the limit were due, so the run has changed nothing.
	Held bool `json:"held,omitempty"`
	// Errors are the first errors of the run, in words for operators.
	Errors []string `json:"errors,omitempty"`
	// IDs are the first items that were due. They are not stored.
	IDs []string `json:"-"`
}

// Left is the number of due items that the run has not done.
func (r Result) Left() int { return r.Due - r.Changed - r.Unchanged - r.Failed }
