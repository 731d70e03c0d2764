package output

import (
	"fmt"
	"strings"
	"time"
	"unicode"
)

// Line makes one line of a text from elsewhere: line breaks become spaces, and nothing in it can steer a terminal.
func Line(text string) string {
	printable := strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case unicode.IsPrint(r):
			return r
		default:
			return -1
		}
	}, text)

	return strings.TrimSpace(printable)
}

// Duration is a duration in its two largest units: 42s, 3m05s, 2h10m, 4d6h. Less than nothing, which clocks that differ can
// make, is 0s.
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

// Time is a moment in UTC to the second, or nothing for none.
func Time(moment time.Time) string {
	if moment.IsZero() {
		return ""
	}

	return moment.UTC().Format("2006-01-02 15:04:05Z")
}

// TimeOf is Time for a moment that may be missing.
func TimeOf(moment *time.Time) string {
	if moment == nil {
		return ""
	}

	return Time(*moment)
}
