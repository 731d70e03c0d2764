package failure

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
