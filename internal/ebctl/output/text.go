package output

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// Rows is a result of many: a line each, below a head.
type Rows struct {
	Head []string
	Rows [][]string
	// None is printed in place of a table without rows.
	None string
}

// WriteText writes the rows in columns.
func (r Rows) WriteText(w io.Writer) error {
	if len(r.Rows) == 0 {
		return write(w, r.None+"\n")
	}

	return write(w, columns(append([][]string{r.Head}, r.Rows...)))
}

// Fields is a result of one: a name and a value a line. Fields without a value are left out.
type Fields []Field

// Field is a line of Fields.
type Field struct{ Name, Value string }

// WriteText writes the fields below each other.
func (f Fields) WriteText(w io.Writer) error {
	rows := make([][]string, 0, len(f))

	for _, field := range f {
		if field.Value != "" {
			rows = append(rows, []string{field.Name, field.Value})
		}
	}

	return write(w, columns(rows))
}

// Plain is a result that is printed as it is.
type Plain string

// WriteText writes the text, and a line break unless it ends with one.
func (p Plain) WriteText(w io.Writer) error {
	return write(w, strings.TrimSuffix(string(p), "\n")+"\n")
}

// columns aligns cells by spaces. No cell breaks its line.
func columns(rows [][]string) string {
	const gap = 2

	var text bytes.Buffer

	aligned := tabwriter.NewWriter(&text, 0, 0, gap, ' ', 0)

	for _, row := range rows {
		cells := make([]string, 0, len(row))
		for _, cell := range row {
			cells = append(cells, Line(cell))
		}

		fmt.Fprintln(aligned, strings.Join(cells, "\t"))
	}

	aligned.Flush() //nolint:errcheck // into memory

	return trimLines(text.String())
}

// trimLines removes the spaces that fill up a line's last cell.
func trimLines(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = strings.TrimRight(line, " ")
	}

	return strings.Join(lines, "\n")
}
