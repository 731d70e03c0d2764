// Package suggestion finds the word that a user probably meant: for error texts about unknown flags, states, plans and parameters.
package suggestion

import (
	"fmt"
	"strings"

	"github.com/agnivade/levenshtein"
)

// For returns "; did you mean …?" with the known word that is most similar to the given one, for the end of an error text. It returns an
// empty text if no word is similar: in words of up to four characters one typing error is accepted, in longer ones two. Case is ignored.
func For(given string, known []string) string {
	const shortWord, most = 4, 2

	nearest, best := "", most+1

	for _, word := range known {
		limit := most
		if len(word) <= shortWord {
			limit = 1
		}

		distance := levenshtein.ComputeDistance(strings.ToLower(given), strings.ToLower(word))
		if distance <= limit && distance < best {
			nearest, best = word, distance
		}
	}

	if nearest == "" {
		return ""
	}

	return fmt.Sprintf("; did you mean %q?", nearest)
}
