package provisionerwait

import "regexp"

// Patterns in the messages of our Provisioner, about a Shoot from package provisioner/gardener. The API has no field for the
// percentage, because Kyma Provisioner rejects queries for unknown fields.
var (
	percentage = regexp.MustCompile(`Gardener is at (\d{1,3})%`)
	// installedComponent matches the message of package provisioner/installation about the component that is being installed.
	installedComponent = regexp.MustCompile(`component (\d{1,3} of \d{1,3}) \(([a-z0-9-]{1,63})\)`)
	// retriedError matches an infrastructure error after which Gardener continues.
	retriedError = regexp.MustCompile(`(?:and retries|earlier problems|is asked to retry|makes it retry|` + delayed + `): (.+)`)
)

const (
	working = "the Provisioner is working on it"
	delayed = "delayed by an error"
)

// Summary returns the part of Record.Progress that a user of a marketplace understands: the percentage, the component of Kyma that is
// being installed, and infrastructure errors. It returns "" if the text contains none of them, as with Kyma Provisioner.
func Summary(progress string) string {
	var summary string

	if found := percentage.FindStringSubmatch(progress); found != nil {
		summary = found[1] + " %"
	}

	if found := installedComponent.FindStringSubmatch(progress); found != nil {
		summary = "installing component " + found[1] + " (" + found[2] + ")"
	}

	if found := retriedError.FindStringSubmatch(progress); found != nil {
		if summary != "" {
			summary += ", "
		}

		summary += "delayed: " + found[1]
	}

	return summary
}
