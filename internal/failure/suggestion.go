package failure

import (
	"fmt"
	"slices"
	"strings"

	"github.com/agnivade/levenshtein"
)

// errorsIn returns how many letters of given are missing, superfluous or wrong, compared with word. Two swapped letters count as
// one error if nothing else differs.
func errorsIn(given, word string) int {
	const exchanged = 2

	distance := levenshtein.ComputeDistance(given, word)
	if distance == exchanged && letters(given) == letters(word) {
		return 1
	}

	return distance
}

// letters returns the letters of the word, sorted. Two words have the same result if they differ only in the order of their
// letters.
func letters(word string) string { return string(slices.Sorted(slices.Values([]rune(word)))) }

// Suggestion returns "; did you mean …?" with the known word that is most similar to the given word. Callers append the result to
// an error message. Suggestion returns an empty string if no known word is similar. A given word of up to four characters is similar
// to a known word if it has at most one typo, and a longer one if it has at most two. Case is ignored.
func Suggestion(given string, known []string) string {
	const shortWord, most, longest = 4, 2, 100

	if len(given) > longest { // no known word is that long, and the comparison takes quadratic time
		return ""
	}

	nearest, best := "", most+1

	for _, word := range known {
		limit := most
		if len(word) <= shortWord {
			limit = 1
		}

		distance := errorsIn(strings.ToLower(given), strings.ToLower(word))
		if distance <= limit && distance < best {
			nearest, best = word, distance
		}
	}

	if nearest == "" {
		return ""
	}

	return fmt.Sprintf("; did you mean %q?", nearest)
}
