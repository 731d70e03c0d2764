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

// Platforms show the texts of last_operation to users. The texts therefore describe clusters and credentials, and not
// stages and steps, which operators see in the operator API.

// stepConnecting is the step that connects to the cluster. It also exists for clusters that the tenant brings.
const stepConnecting = "Get_Kubeconfig"

// activityText describes the work of an operation, as the start of a sentence.
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
	case environment.KindUpgradeKyma:
		return "Upgrading Kyma"
	case environment.KindUpgradeCluster:
		return "Upgrading the cluster"
	case environment.KindBind:
		return "Creating the credentials"
	case environment.KindUnbind:
		return "Removing the credentials"
	default:
		return "In progress"
	}
}

// OperationText describes an operation for users, as last_operation does. The parameter left is the time until the
// expected end of the operation; it is zero or negative if the end is unknown.
func OperationText(record process.Record, left time.Duration) string {
	if record.State.Terminal() {
		return resultText(record)
	}

	return progressText(record, left)
}

// resultText describes a finished operation for users. The message of a problem is written for users; its cause
// appears only in the log.
func resultText(record process.Record) string {
	switch record.State {
	case process.Succeeded:
		return httpserver.Shorten(cmp.Or(record.Description, "The operation succeeded."))
	case process.Canceled:
		return "The operation was canceled."
	default:
		return httpserver.Shorten(activityText(record) + " failed: " + cmp.Or(record.Problem.Message, "the reason is unknown"))
	}
}

// progressText describes an unfinished operation for users. A delayed operation shows the error that delays it; any
// other operation shows the percentage and the remaining time, if they are known.
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
		details = append(details, summary) // no estimate: it would ignore the delay
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

// leftText describes the remaining time of an operation. It returns an empty string if the time is unknown, or if
// the operation already takes longer than usual: past operations are then no basis for an estimate.
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
