// Package timetext formats durations, times and progress for people. ebctl and the console both use it.
package timetext

import (
	"fmt"
	"strings"
	"time"
)

// Duration formats a duration with its two largest units: 42s, 3m05s, 2h10m, 4d6h. Negative durations, which clock skew can
// cause, are formatted as 0s.
func Duration(d time.Duration) string {
	const day = 24 * time.Hour

	d = max(d, 0).Round(time.Second)

	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", d/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", d/time.Minute, d%time.Minute/time.Second)
	case d < day:
		return fmt.Sprintf("%dh%02dm", d/time.Hour, d%time.Hour/time.Minute)
	default:
		return fmt.Sprintf("%dd%dh", d/day, d%day/time.Hour)
	}
}

// Time formats a time in UTC, to the second. It returns an empty string for the zero time.
func Time(moment time.Time) string {
	if moment.IsZero() {
		return ""
	}

	return moment.UTC().Format("2006-01-02 15:04:05Z")
}

// Progress returns a percentage and the remaining time as a range, such as "40 %, 3m00s to 9m00s left". It omits the percentage
// if it is 0, and the range if latest is not positive: both values mean "unknown".
func Progress(percent int, likely, latest time.Duration) string {
	var parts []string

	if percent > 0 {
		parts = append(parts, fmt.Sprintf("%d %%", percent))
	}

	if left := Left(likely, latest); left != "" {
		parts = append(parts, left)
	}

	return strings.Join(parts, ", ")
}

// Left returns the remaining time as a range, or an empty string if latest is not positive, which means "unknown".
func Left(likely, latest time.Duration) string {
	switch {
	case latest <= 0:
		return ""
	case likely <= 0:
		return "at most " + Duration(latest) + " left"
	case Duration(likely) == Duration(latest):
		return "about " + Duration(likely) + " left"
	default:
		return Duration(likely) + " to " + Duration(latest) + " left"
	}
}
