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

// Platforms show the descriptions of last_operation to users. The descriptions therefore describe clusters and credentials, and not
// stages and steps, which operators see in the operator API.

// stepConnecting is the step that connects to the cluster. It also runs for clusters that the tenant brings.
const stepConnecting = "Get_Kubeconfig"

// activityText returns the beginning of a progress message for users, such as "Creating the cluster".
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

// OperationText describes an operation for users, as last_operation does.
func OperationText(record process.Record, forecast process.Forecast, now time.Time) string {
	if record.State.Terminal() {
		return resultText(record)
	}

	return progressText(record, forecast, now)
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
// other operation shows the percentage and the remaining time, if they are known. The percentage of the forecast covers
// all steps, so it replaces Gardener's percentage, which starts again at 0 for each change of a Shoot.
func progressText(record process.Record, forecast process.Forecast, now time.Time) string {
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
		details = append(details, forecastTexts(summary, forecast, now)...)
	}

	text := activityText(record)
	if len(details) > 0 {
		text += ": " + strings.Join(details, ", ")
	}

	return httpserver.Shorten(text)
}

// forecastTexts returns the percentage, the summary of the progress and the remaining time, as far as they are known. It
// omits a summary that would repeat the percentage.
func forecastTexts(summary string, forecast process.Forecast, now time.Time) []string {
	var texts []string

	if forecast.Percent > 0 {
		texts = append(texts, fmt.Sprintf("%d %%", forecast.Percent))
	}

	if summary != "" && (forecast.Percent == 0 || !strings.HasSuffix(summary, "%")) {
		texts = append(texts, summary)
	}

	if left := leftText(forecast, now); left != "" {
		texts = append(texts, left)
	}

	return texts
}

// leftText describes the remaining time of an operation: a range, if past operations differ by minutes. It returns an
// empty string if the time is unknown, or if the operation already takes longer than past ones.
func leftText(forecast process.Forecast, now time.Time) string {
	if forecast.Latest.IsZero() {
		return ""
	}

	likely, latest := minutes(forecast.Likely.Sub(now)), minutes(forecast.Latest.Sub(now))

	switch {
	case latest == 0:
		return "less than a minute left"
	case likely == 0 && latest == 1:
		return "about a minute left"
	case likely == 0:
		return fmt.Sprintf("up to %d minutes left", latest)
	case likely < latest:
		return fmt.Sprintf("%d to %d minutes left", likely, latest)
	case likely == 1:
		return "about a minute left"
	default:
		return fmt.Sprintf("about %d minutes left", likely)
	}
}

// minutes rounds a duration to minutes. It returns 0 for less than a minute.
func minutes(left time.Duration) int {
	if left < time.Minute {
		return 0
	}

	return int(math.Round(left.Minutes()))
}
