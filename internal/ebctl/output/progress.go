package output

import "strings"

// barWidth is the number of characters in a bar.
const barWidth = 40

// Bar returns a progress bar that is filled to the given percentage.
func Bar(percent int) string {
	filled := min(max(percent, 0), 100) * barWidth / 100 //nolint:mnd // percent

	return strings.Repeat("█", filled) + strings.Repeat("░", barWidth-filled)
}
