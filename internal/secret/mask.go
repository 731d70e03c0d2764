package secret

import (
	"encoding/base64"
	"strconv"
	"strings"
)

// MaskIn replaces values in a text with Mask. It also finds values in quoted form, as in Go and JSON, and in base64, as in
// Kubernetes Secrets.
func MaskIn(text string, values ...string) string {
	for _, value := range values {
		// An empty value would match between all characters of the text.
		if value == "" {
			continue
		}

		quoted := strings.Trim(strconv.Quote(value), `"`)
		encoded := base64.StdEncoding.EncodeToString([]byte(value))
		text = strings.NewReplacer(value, Mask, quoted, Mask, encoded, Mask).Replace(text)
	}

	return text
}
