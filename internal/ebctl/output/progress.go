package output

import (
	"fmt"
	"strings"
	"time"
)

// barWidth is the number of characters of a bar.
const barWidth = 40

// Bar returns a bar of which the percentage is filled.
func Bar(percent int) string {
	filled := min(max(percent, 0), 100) * barWidth / 100 //nolint:mnd // percent

	return strings.Repeat("█", filled) + strings.Repeat("░", barWidth-filled)
}

// Progress returns a percentage and the remaining time as a range, such as "40 %, 3m00s to 9m00s left". A percentage of 0 and a latest
// time that is not positive are unknown, and left out.
func Progress(percent int, likely, latest time.Duration) string {
	var parts []string

	if percent > 0 {
		parts = append(parts, fmt.Sprintf("%d %%", percent))
	}

	switch {
	case latest <= 0:
	case likely <= 0:
		parts = append(parts, "at most "+Duration(latest)+" left")
	case Duration(likely) == Duration(latest):
		parts = append(parts, "about "+Duration(likely)+" left")
	default:
		parts = append(parts, Duration(likely)+" to "+Duration(latest)+" left")
	}

	return strings.Join(parts, ", ")
}
