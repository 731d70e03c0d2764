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

	"github.com/environment-broker/environment-broker/internal/operatorapi/timetext"
)

// Rows is a table with a header.
type Rows struct {
	Head []string
	Rows [][]string
	// WideColumns is the number of columns on the right that only the Wide format shows.
	WideColumns int
	// Cut is the maximum number of characters in a cell, except in the Wide format. 0 means no limit.
	Cut int
	// None is the sentence that is printed if the table has no rows.
	None string
	// NoHead omits the header and the sentence None.
	NoHead bool
	// IDs contains the ID of each row, for the Name format. If it is nil, rows have no IDs, and printing in the Name format
	// fails.
	IDs []string

	// Widths aligns several tables that are printed one after the other: each column is at least as wide as in the earlier tables.
	// If it is nil, only the rows of this table are aligned.
	Widths *[]int

	wide bool
}

// Add appends a row with an ID.
func (r *Rows) Add(id string, cells ...string) {
	r.IDs, r.Rows = append(r.IDs, id), append(r.Rows, cells)
}

// Wide implements Widened. It shows all columns and does not cut cells.
func (r Rows) Wide() Rows {
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
		for _, cell := range row[:len(r.Head)-r.WideColumns] {
			cells = append(cells, Cut(Line(cell), r.Cut))
		}

		shown = append(shown, cells)
	}

	return write(w, columns(shown, r.Widths))
}

// Cut shortens the text to at most limit characters and marks the cut with an ellipsis. If limit is 0 or less, it returns the
// text unchanged.
func Cut(text string, limit int) string {
	if characters := []rune(text); limit > 0 && len(characters) > limit {
		return string(characters[:limit-1]) + "…"
	}

	return text
}

// Fields is a list of names and values, each printed on a separate line. Fields without a value are not printed.
type Fields []Field

// WithID is a Text with an ID for the Name format.
type WithID struct {
	Text

	ID string
}

// Names implements Named.
func (t WithID) Names() []string { return []string{t.ID} }

// Field is one line of Fields.
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

// Plain is text that is printed without alignment or filtering, such as a kubeconfig.
type Plain string

// WriteText writes the text so that it ends with exactly one line break.
func (p Plain) WriteText(w io.Writer) error {
	return write(w, strings.TrimSuffix(string(p), "\n")+"\n")
}

// columns aligns the cells of all rows with spaces and uses Line to fit each cell on one line. Columns are at least as wide as
// widths, which is updated with the widths of this table. If widths is nil, there is no minimum.
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

// atLeast pads the cell to the width of its column. If the cell is wider, it updates the width of the column.
func atLeast(cell string, column int, widths *[]int) string {
	if widths == nil {
		return cell
	}

	if column == len(*widths) {
		*widths = append(*widths, 0)
	}

	width := utf8.RuneCountInString(cell)
	if current := (*widths)[column]; width < current {
		return cell + strings.Repeat(" ", current-width)
	}

	(*widths)[column] = width

	return cell
}

// trimLines removes trailing spaces from lines. tabwriter adds them if the last cells of a row are empty.
func trimLines(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = strings.TrimRight(line, " ")
	}

	return strings.Join(lines, "\n")
}

// Line returns the text as a single line that is safe to print on a terminal. It replaces line breaks with spaces and removes
// characters that are not printable, such as the escape character of terminal sequences.
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

// Duration formats a duration; see timetext.Duration.
func Duration(d time.Duration) string { return timetext.Duration(d) }

// Time formats a time; see timetext.Time.
func Time(moment time.Time) string { return timetext.Time(moment) }
