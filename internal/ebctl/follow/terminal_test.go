package follow_test

import (
	"fmt"
	"strings"
	"testing"
)

// terminal simulates the screen of a terminal. It interprets only the control sequences that Live sends, and wraps long lines.
type terminal struct {
	t     *testing.T
	width int
	lines []string
	row   int
	col   int
}

func (s *terminal) Write(sent []byte) (int, error) {
	for rest := string(sent); rest != ""; {
		rest = s.take(rest)
	}

	return len(sent), nil
}

// take processes the first character or control sequence of the text and returns the rest.
func (s *terminal) take(text string) string {
	var up int

	if sequence, rest, found := strings.Cut(text, "A"); found {
		if n, err := fmt.Sscanf(sequence, "\x1b[%d", &up); n == 1 && err == nil {
			s.row -= up
			if s.row < 0 {
				s.t.Fatalf("the cursor moved above the screen")
			}

			return rest
		}
	}

	if rest, found := strings.CutPrefix(text, "\x1b[K"); found {
		s.line(s.row)
		s.lines[s.row] = string([]rune(s.lines[s.row])[:s.col])

		return rest
	}

	if rest, found := strings.CutPrefix(text, "\x1b[J"); found {
		s.lines = s.lines[:min(s.row, len(s.lines))]

		return rest
	}

	letter := []rune(text)[0]

	switch letter {
	case '\r':
		s.col = 0
	case '\n':
		s.line(s.row)
		s.row++
		s.col = 0
	case '\x1b':
		s.t.Fatalf("unexpected sequence: %q", text[:min(len(text), 8)])
	default:
		s.put(letter)
	}

	return text[len(string(letter)):]
}

func (s *terminal) put(letter rune) {
	if s.col == s.width {
		s.row++
		s.col = 0
	}

	s.line(s.row)

	letters := []rune(s.lines[s.row])
	if s.col == len(letters) {
		letters = append(letters, letter)
	} else {
		letters[s.col] = letter
	}

	s.lines[s.row] = string(letters)
	s.col++
}

// line adds empty lines to the screen until it has the given row.
func (s *terminal) line(row int) {
	for len(s.lines) <= row {
		s.lines = append(s.lines, "")
	}
}

func (s *terminal) String() string { return strings.Join(s.lines, "\n") }
