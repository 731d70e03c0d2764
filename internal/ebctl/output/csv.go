package output

import (
	"encoding/csv"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"unicode"

	"github.com/environment-broker/environment-broker/internal/failure"
)

// ErrNoRows reports that a result cannot be printed in the CSV format.
var ErrNoRows = errors.New("the result is not a list: use an output format other than csv")

// zeroTime is the JSON form of an unset time. CSV output contains an empty cell instead.
const zeroTime = "0001-01-01T00:00:00Z"

// csvRows returns the rows of a result, with the header, or nil if it has no form in CSV. Fields are one row, and a text is one cell.
func csvRows(text Text) [][]string {
	switch result := text.(type) {
	case Rows:
		if result.NoHead {
			return append([][]string{}, result.Rows...)
		}

		return append([][]string{result.Head}, result.Rows...)
	case Widened:
		return csvRows(result.Wide())
	case WithID:
		return csvRows(result.Text)
	case Fields:
		return fieldColumns(result)
	case Plain:
		return [][]string{{string(result)}}
	default:
		return nil
	}
}

// HasRows reports whether a result can be printed in the CSV format.
func HasRows(text Text) bool { return csvRows(text) != nil }

// fieldColumns returns the names of the fields and a row with their values. A field that has no name, or that of the field before it, adds
// a line to the value of that field, so that each column has a name.
func fieldColumns(fields Fields) [][]string {
	var head, row []string

	for _, field := range fields {
		if last := len(head) - 1; last >= 0 && (field.Name == "" || field.Name == head[last]) {
			row[last] = strings.Trim(row[last]+"\n"+field.Value, "\n")

			continue
		}

		head, row = append(head, field.Name), append(row, field.Value)
	}

	return [][]string{head, row}
}

// writeCSV writes a result with its header and all columns.
func writeCSV(w io.Writer, text Text) error {
	rows := csvRows(text)
	if rows == nil {
		return ErrNoRows
	}

	writer := csv.NewWriter(w)

	for _, row := range rows {
		if err := writeRow(writer, row); err != nil {
			return err
		}
	}

	return flush(writer)
}

func writeRow(writer *csv.Writer, cells []string) error {
	safe := make([]string, 0, len(cells))
	for _, cell := range cells {
		safe = append(safe, safeCell(cell))
	}

	return failure.While(writer.Write(safe), "printing the result")
}

func flush(writer *csv.Writer) error {
	writer.Flush()

	return failure.While(writer.Error(), "printing the result")
}

// safeCell prevents spreadsheets from executing the text of a cell as a formula. It puts an apostrophe before text that starts like
// a formula. Cells can contain such text, because users choose the names of instances. It also removes control characters, such as
// those of terminal sequences, but keeps tabs and line breaks.
func safeCell(text string) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && !strings.ContainsRune("\t\r\n", r) {
			return -1
		}

		return r
	}, text)

	if text != "" && strings.ContainsRune("=+-@\t\r\n", rune(text[0])) {
		return "'" + text
	}

	return text
}

// cellOf returns the value at a path in decoded JSON, such as status.state, as text. It returns objects and lists as JSON.
func cellOf(decoded any, path string) string {
	for name := range strings.SplitSeq(path, ".") {
		fields, _ := decoded.(map[string]any)
		decoded = fields[name]
	}

	switch value := decoded.(type) {
	case nil:
		return ""
	case string:
		if value == zeroTime {
			return ""
		}

		return value
	default:
		encoded, _ := json.Marshal(value) //nolint:errchkjson // decoded from JSON

		return string(encoded)
	}
}
