package broker

import (
	"cmp"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/httpserver"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/process/provisionerwait"
)

// The texts of last_operation are for users of a marketplace, who know clusters and credentials. Stages and steps are
// for operators, who see them in the operator API.

// stepConnecting is the step that connects to a cluster, whether the Provisioner has created it or the tenant brought it.
const stepConnecting = "Get_Kubeconfig"

// activityText returns what an operation does, as the start of a sentence.
func activityText(record process.Record) string {
	if record.Step == stepConnecting {
		return "Connecting to the cluster"
	}

	switch record.Kind {
	case environment.KindProvision:
		return "Creating the cluster"
	case environment.KindUpdate:
		return "Changing the cluster"
	case environment.KindDeprovision:
		return "Deleting the cluster"
	case environment.KindSuspend:
		return "Suspending the instance"
	case environment.KindResume:
		return "Resuming the instance"
	case environment.KindBind:
		return "Creating the credentials"
	case environment.KindUnbind:
		return "Removing the credentials"
	default:
		return "In progress"
	}
}

// resultText describes a finished operation for people. The problem of an operation is a text for users; its
// cause is only in the log.
func resultText(record process.Record) string {
	switch record.State {
	case process.Succeeded:
		return httpserver.Shorten(cmp.Or(record.Description, "The operation succeeded."))
	case process.Canceled:
		return "The operation was canceled."
	default:
		return httpserver.Shorten(activityText(record) + " failed: " + cmp.Or(record.Problem.Message, "no reason is known"))
	}
}

// progressText describes an unfinished operation for people: the percentage and the expected time to its end, as
// far as they are known, and the error that delays it.
func progressText(record process.Record, left time.Duration) string {
	switch record.State {
	case process.Pending:
		return "Waiting to start."
	case process.Canceling:
		return activityText(record) + ": being canceled"
	default:
	}

	var details []string

	summary := provisionerwait.Summary(record.Progress)

	switch {
	case record.Problem.Message != "":
		details = append(details, "delayed, retrying: "+record.Problem.Message)
	case strings.Contains(summary, "delayed"):
		details = append(details, summary) // an estimate would ignore the delay
	default:
		if summary != "" {
			details = append(details, summary)
		}

		if left := leftText(left); left != "" {
			details = append(details, left)
		}
	}

	text := activityText(record)
	if len(details) > 0 {
		text += ": " + strings.Join(details, ", ")
	}

	return httpserver.Shorten(text)
}

// leftText describes the expected time to the end of an operation. It returns "" for an unknown one, and for an
// operation that takes longer than usual, about which the past says nothing.
func leftText(left time.Duration) string {
	minutes := int(math.Round(left.Minutes()))

	switch {
	case left <= 0:
		return ""
	case left < time.Minute:
		return "less than a minute left"
	case minutes == 1:
		return "about a minute left"
	default:
		return fmt.Sprintf("about %d minutes left", minutes)
	}
}
