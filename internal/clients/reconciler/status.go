package reconciler

import (
	"regexp"
	"strings"

	"github.com/environment-broker/environment-broker/internal/failure"
)

// Status is the status of a cluster in the Reconciler.
type Status string

// The statuses of clusters. The Reconciler may add others.
const (
	Pending         Status = "reconcile_pending"
	Reconciling     Status = "reconciling"
	Ready           Status = "ready"
	Error           Status = "error"
	ErrorRetryable  Status = "reconcile_error_retryable"
	Disabled        Status = "reconcile_disabled"
	DeletePending   Status = "delete_pending"
	Deleting        Status = "deleting"
	Deleted         Status = "deleted"
	DeleteError     Status = "delete_error"
	DeleteRetryable Status = "delete_error_retryable"
)

// State is the state of a cluster configuration, in its wire format.
type State struct {
	Cluster string `json:"cluster"`
	// The Reconciler assigns ClusterVersion and ConfigurationVersion.
	ClusterVersion       int64     `json:"clusterVersion"`
	ConfigurationVersion int64     `json:"configurationVersion"`
	Status               Status    `json:"status"`
	StatusURL            string    `json:"statusURL"`
	Failures             []Failure `json:"failures"`
}

// Failure is a component that the Reconciler could not install or remove. Reason is the Reconciler's text, for operators.
type Failure struct {
	Component string `json:"component"`
	Reason    string `json:"reason"`
}

// maxFailures is the maximum number of failed components in the results of Failed and Report.
const maxFailures = 20

// componentName matches valid component names. Only valid names are shown to users, because the text comes from the Reconciler.
var componentName = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]{0,62}$`)

// Failed returns the names of the failed components, comma-separated, or an empty string if there are none.
func (s State) Failed() string {
	var names []string

	for _, each := range s.Failures[:min(len(s.Failures), maxFailures)] {
		if componentName.MatchString(each.Component) {
			names = append(names, each.Component)
		}
	}

	return strings.Join(names, ", ")
}

// Report returns the status and the reasons of the failed components, for operators.
func (s State) Report() string {
	texts := []string{string(s.Status)}
	for _, each := range s.Failures[:min(len(s.Failures), maxFailures)] {
		texts = append(texts, each.Component+": "+each.Reason)
	}

	const maxReport = 1000

	return failure.Printable(strings.Join(texts, "; "), maxReport)
}
