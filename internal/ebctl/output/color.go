package output

import (
	"regexp"
	"strings"
)

// Control sequences for colors. The colors are from the terminal's palette, so they are readable on its background.
const (
	green  = "\x1b[32m"
	yellow = "\x1b[33m"
	red    = "\x1b[31m"
	plain  = "\x1b[0m"
)

// colorOf returns the color for a state or the result of a check, or an empty string for any other word.
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

// cells matches the cells of an aligned table, which are separated by at least two spaces. In a cell with commas, it matches the
// parts between them.
var cells = regexp.MustCompile(`[^\s,]+( [^\s,]+)*`)

// Colored adds colors to the states in the text. It recognizes a state only if it is a whole cell or, in a cell with commas, a
// whole part between commas. The text must already be aligned, because alignment counts control sequences as characters.
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
