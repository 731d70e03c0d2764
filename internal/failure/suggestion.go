package failure

import (
	"fmt"
	"slices"
	"strings"

	"github.com/agnivade/levenshtein"
)

// errorsIn returns the number of missing, additional and wrong letters in given, compared with word. It returns 1 if two letters
// are swapped and nothing else differs.
func errorsIn(given, word string) int {
	const exchanged = 2

	distance := levenshtein.ComputeDistance(given, word)
	if distance == exchanged && letters(given) == letters(word) {
		return 1
	}

	return distance
}

// letters returns the letters of the word in alphabetical order.
func letters(word string) string { return string(slices.Sorted(slices.Values([]rune(word)))) }

// Suggestion returns "; did you mean …?" with the known word that is most similar to the given word. Callers append the result to
// an error text. Suggestion returns an empty string if no known word is similar. A word of up to four characters is similar if it
// has at most one typo; a longer word, if it has at most two. Case is ignored.
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
