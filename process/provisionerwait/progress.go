package provisionerwait

import "regexp"

// Patterns in the messages of our Provisioner about a Shoot, see package provisioner/gardener. The API has no field for the
// percentage, because Kyma Provisioner rejects queries for unknown fields.
var (
	percentage = regexp.MustCompile(`Gardener is at (\d{1,3})%`)
	// retriedError matches an infrastructure error after which Gardener continues.
	retriedError = regexp.MustCompile(`(?:and retries|earlier problems|is asked to retry|makes it retry|` + delayed + `): (.+)`)
)

const (
	working = "the Provisioner is working on it"
	delayed = "delayed by an error"
)

// Summary returns the part of Record.Progress that a user of a marketplace understands: the percentage and infrastructure errors.
// It returns "" if the text contains neither, as with Kyma Provisioner.
func Summary(progress string) string {
	var summary string

	if found := percentage.FindStringSubmatch(progress); found != nil {
		summary = found[1] + " %"
	}

	if found := retriedError.FindStringSubmatch(progress); found != nil {
		if summary != "" {
			summary += ", "
		}

		summary += "delayed: " + found[1]
	}

	return summary
}
