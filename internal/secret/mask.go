package secret

import (
	"encoding/base64"
	"strconv"
	"strings"
)

// MaskIn replaces each occurrence of the given values in the text with Mask. It also finds values that are quoted, as in Go and
// JSON, or encoded in base64, as in Kubernetes Secrets.
func MaskIn(text string, values ...string) string {
	for _, value := range values {
		// Skip empty values, because they would match between all characters of the text.
		if value == "" {
			continue
		}

		quoted := strings.Trim(strconv.Quote(value), `"`)
		encoded := base64.StdEncoding.EncodeToString([]byte(value))
		text = strings.NewReplacer(value, Mask, quoted, Mask, encoded, Mask).Replace(text)
	}

	return text
}
