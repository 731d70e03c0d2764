package failure

import (
	"strings"
	"unicode"
)

// maxDetail is the maximum length of Error.Detail, in characters. Gardener errors about several resources can be this long.
const maxDetail = 1000

// Shorten returns the text unchanged if it has at most limit characters. Otherwise it returns the start and the end of the text
// with an ellipsis between them, limit characters in total. The end matters as much as the start: errors of other systems start
// with the action that failed and end with its cause. The limit must be positive.
func Shorten(text string, limit int) string {
	characters := []rune(text)
	if len(characters) <= limit {
		return text
	}

	head := limit / 2 //nolint:mnd // both halves are equally important
	tail := limit - head - 1

	return string(characters[:head]) + "…" + string(characters[len(characters)-tail:])
}

// Printable returns an untrusted text as one printable line of at most limit characters. It omits the middle of a longer text.
func Printable(text string, limit int) string {
	// The middle of a long text is dropped first, because the code below processes each character. The cut is generous: a
	// character has at most four bytes, and runs of white space shrink to one character.
	if half := 8 * limit; len(text) > 2*half {
		text = text[:half] + " … " + text[len(text)-half:]
	}

	printable := strings.Map(func(char rune) rune {
		if !unicode.IsPrint(char) {
			return ' '
		}

		return char
	}, strings.ToValidUTF8(text, " "))

	return Shorten(strings.Join(strings.Fields(printable), " "), limit)
}
