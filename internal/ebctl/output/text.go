package output

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"
	"unicode/utf8"
)

// Rows is a table with a header.
type Rows struct {
	Head []string
	Rows [][]string
	// More is the number of columns at the right that only the format Wide shows.
	More int
	// Cut limits the characters of a cell, except in the format Wide; 0 is unlimited.
	Cut int
	// None is the sentence to print in place of a table without rows.
	None string
	// NoHead omits the header, and None.
	NoHead bool
	// IDs has the ID of each row, for the format Name. Nil means that rows have none.
	IDs []string

	// Widths aligns several tables that are printed one after the other: columns are at least as wide as in the tables before. Nil aligns
	// the rows of this table only.
	Widths *[]int

	wide bool
}

// Wide implements Widened: all columns, with cells of any length.
func (r Rows) Wide() Text {
	r.wide = true

	return r
}

// Names implements Named.
func (r Rows) Names() []string { return r.IDs }

// WriteText implements Text.
func (r Rows) WriteText(w io.Writer) error {
	rows := r.Rows

	switch {
	case r.NoHead:
	case len(rows) == 0:
		return write(w, r.None+"\n")
	default:
		rows = append([][]string{r.Head}, rows...)
	}

	if r.wide {
		return write(w, columns(rows, r.Widths))
	}

	shown := make([][]string, 0, len(rows))

	for _, row := range rows {
		cells := make([]string, 0, len(row))
		for _, cell := range row[:len(r.Head)-r.More] {
			cells = append(cells, Cut(Line(cell), r.Cut))
		}

		shown = append(shown, cells)
	}

	return write(w, columns(shown, r.Widths))
}

// Cut returns the text with at most limit characters, and marks a cut with an ellipsis. A limit of 0 or less is unlimited.
func Cut(text string, limit int) string {
	if characters := []rune(text); limit > 0 && len(characters) > limit {
		return string(characters[:limit-1]) + "…"
	}

	return text
}

// Fields is a list of names and values with a line per field. A field without a value is not printed.
type Fields []Field

// WithID is a Text with the ID of what it shows, for the format Name.
type WithID struct {
	Text

	ID string
}

// Names implements Named.
func (t WithID) Names() []string { return []string{t.ID} }

// Field is a line of Fields.
type Field struct{ Name, Value string }

// WriteText implements Text.
func (f Fields) WriteText(w io.Writer) error {
	rows := make([][]string, 0, len(f))

	for _, field := range f {
		if field.Value != "" {
			rows = append(rows, []string{field.Name, field.Value})
		}
	}

	return write(w, columns(rows, nil))
}

// Plain is a text that is printed without alignment or filtering, such as a kubeconfig.
type Plain string

// WriteText writes the text with exactly one line break at its end.
func (p Plain) WriteText(w io.Writer) error {
	return write(w, strings.TrimSuffix(string(p), "\n")+"\n")
}

// columns aligns the cells of all rows with spaces. Line makes each cell fit on one line. Columns are at least as wide as widths, which gets
// the widths of this table; nil means no minimum.
func columns(rows [][]string, widths *[]int) string {
	const gap = 2

	var text bytes.Buffer

	aligned := tabwriter.NewWriter(&text, 0, 0, gap, ' ', 0)

	for _, row := range rows {
		cells := make([]string, 0, len(row))

		for column, cell := range row {
			cells = append(cells, atLeast(Line(cell), column, widths))
		}

		fmt.Fprintln(aligned, strings.Join(cells, "\t"))
	}

	aligned.Flush() //nolint:errcheck // into memory

	return trimLines(text.String())
}

// atLeast pads the cell to the width of its column, and widens the column if the cell is wider.
func atLeast(cell string, column int, widths *[]int) string {
	if widths == nil {
		return cell
	}

	if column == len(*widths) {
		*widths = append(*widths, 0)
	}

	width := utf8.RuneCountInString(cell)
	if known := (*widths)[column]; width < known {
		return cell + strings.Repeat(" ", known-width)
	}

	(*widths)[column] = width

	return cell
}

// trimLines removes spaces at the ends of lines: tabwriter pads empty cells at the end of a row.
func trimLines(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = strings.TrimRight(line, " ")
	}

	return strings.Join(lines, "\n")
}

// Line returns the text on one line, safe to print: line breaks become spaces, and characters that are not printable, such as the escape
// character of terminal sequences, are removed.
func Line(text string) string {
	printable := strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case unicode.IsPrint(r):
			return r
		default:
			return -1
		}
	}, text)

	return strings.TrimSpace(printable)
}

// Duration returns a duration in its two largest units: 42s, 3m05s, 2h10m, 4d6h. Negative durations, which clock skew causes, are 0s.
func Duration(d time.Duration) string {
	const day = 24 * time.Hour

	d = max(d, 0).Round(time.Second)

	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", d/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", d/time.Minute, d%time.Minute/time.Second)
	case d < day:
		return fmt.Sprintf("%dh%02dm", d/time.Hour, d%time.Hour/time.Minute)
	default:
		return fmt.Sprintf("%dd%dh", d/day, d%day/time.Hour)
	}
}

// Time returns a time in UTC to the second, or nothing for the zero time.
func Time(moment time.Time) string {
	if moment.IsZero() {
		return ""
	}

	return moment.UTC().Format("2006-01-02 15:04:05Z")
}
