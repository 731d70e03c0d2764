package output

import (
	"regexp"
	"strings"
)

// Control sequences for the colors of words. Terminals choose the shades, so the colors fit dark and light backgrounds.
const (
	green  = "\x1b[32m"
	yellow = "\x1b[33m"
	red    = "\x1b[31m"
	plain  = "\x1b[0m"
)

// colorOf returns the color of a state or of the result of a check, or an empty string for words without color.
func colorOf(word string) string {
	switch word {
	case "succeeded", "ok":
		return green
	case "failed":
		return red
	case "pending", "in progress", "canceling", "canceled", "warning", "provisioning", "updating", "suspending", "resuming",
		"deprovisioning", "suspended":
		return yellow
	default:
		return ""
	}
}

// cells matches the texts between the gaps of a table, which are at least two spaces wide, and between commas.
var cells = regexp.MustCompile(`[^\s,]+( [^\s,]+)*`)

// Colored returns the text of a table, of fields or of an explanation with colored states. A word that is only a part of a cell has no
// color. The text must already be aligned, because control sequences have no width.
func Colored(text string) string {
	var colored strings.Builder

	end := 0

	for _, place := range cells.FindAllStringIndex(text, -1) {
		word := text[place[0]:place[1]]
		if color := colorOf(word); color != "" {
			colored.WriteString(text[end:place[0]] + color + word + plain)

			end = place[1]
		}
	}

	return colored.String() + text[end:]
}
