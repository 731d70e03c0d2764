package provisionerwait

import (
	"regexp"

	"github.com/environment-broker/environment-broker/internal/failure"
)

// These patterns match messages of our Provisioner; those about a Shoot come from package provisioner/gardener. The API has no
// field for the percentage, because Kyma Provisioner rejects queries with unknown fields.
var (
	percentage = regexp.MustCompile(`Gardener is at (\d{1,3})%`)
	// installedComponent matches the message of package provisioner/installation about the component that is being installed.
	installedComponent = regexp.MustCompile(`component (\d{1,3} of \d{1,3}) \(([a-z0-9-]{1,63})\)`)
	// retriedError matches the start of an infrastructure error after which Gardener continues.
	retriedError = regexp.MustCompile(`(?:and retries|earlier problems|is asked to retry|makes it retry|` + delayed + `): `)
)

const (
	working = "the Provisioner is working on it"
	delayed = "delayed by an error"
)

// Summary returns the parts of Record.Progress that users may read: the percentage, the component of Kyma that is being
// installed, and the explanation of an infrastructure error. It quotes nothing else, because the Provisioner and Gardener
// determine the text. It returns "" if the text contains none of these parts, as with Kyma Provisioner.
func Summary(progress string) string {
	var summary string

	if found := percentage.FindStringSubmatch(progress); found != nil {
		summary = found[1] + " %"
	}

	if found := installedComponent.FindStringSubmatch(progress); found != nil {
		summary = "installing component " + found[1] + " (" + found[2] + ")"
	}

	if found := retriedError.FindStringIndex(progress); found != nil {
		if summary != "" {
			summary += ", "
		}

		summary += "delayed: " + failure.Explanation(failure.ComponentProvisioner, "", progress[found[1]:])
	}

	return summary
}
