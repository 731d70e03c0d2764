package orders

// Recoded decodes a cursor of operationChanges and encodes it again.
func Recoded(text string) (string, error) {
	parsed, err := parseCursor(text)

	return parsed.String(), err
}
