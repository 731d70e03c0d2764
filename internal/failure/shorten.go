package failure

import (
	"strings"
	"unicode"
)

// maxDetail is the maximum length of Error.Detail, in characters. It leaves room for Gardener errors about several resources.
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

// Printable returns an untrusted string as one printable line of at most limit characters. It omits the middle of a longer string.
func Printable(text string, limit int) string {
	// Drop the middle of a long string first, because the code below processes each character. Keep more than limit bytes, because
	// a character can have four bytes, and because each run of white space shrinks to one character.
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
