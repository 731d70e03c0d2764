package bounds

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// ID limits the length of the IDs that clients choose, in bytes. PostgreSQL limits the size of an index entry, and the key of a
// binding contains two IDs.
const ID = 255

// Visible reports whether the text is valid UTF-8 and contains only visible characters and plain spaces. Two different strings that
// look equal, such as an ID and the same ID with a zero-width space, would mislead operators.
func Visible(text string) bool {
	return utf8.ValidString(text) && !strings.ContainsFunc(text, invisible)
}

// invisible reports whether a character has no visible form of its own: control and format characters, unusual spaces, fillers,
// and variation selectors.
func invisible(char rune) bool {
	const blankBraillePattern = '\u2800'

	return !unicode.IsPrint(char) || char == unicode.ReplacementChar || char == blankBraillePattern ||
		unicode.In(char, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}
