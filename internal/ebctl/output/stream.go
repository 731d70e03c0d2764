package output

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"sigs.k8s.io/yaml"
)

// Stream writes the entries of a list one by one, so that a list of any length needs little memory.
type Stream struct {
	format  Format
	columns []string
	w       io.Writer
	csv     *csv.Writer
	count   int
}

// Streams reports whether lists can be written in this format entry by entry. This is impossible for tables, whose columns are as
// wide as their widest cell, and for expressions, which need the whole list.
func (f Format) Streams() bool { return f == JSON || f == YAML || f == CSV || f == Name }

// NewStream starts a list. In the CSV format, columns are the paths of the JSON fields to print, and there is no header if noHead
// is true.
func (f Format) NewStream(w io.Writer, columns []string, noHead bool) (*Stream, error) {
	stream := &Stream{format: f, columns: columns, w: w, csv: csv.NewWriter(w)}

	switch {
	case f == JSON:
		return stream, write(w, "{\n  \"data\": [")
	case f == CSV && !noHead:
		return stream, writeRow(stream.csv, columns)
	default:
		return stream, nil
	}
}

// Write writes an entry. In the Name format, it writes only the ID.
func (s *Stream) Write(entry any, id string) error {
	s.count++

	switch s.format {
	case Name:
		return write(s.w, Line(id)+"\n")
	case CSV:
		decoded, err := Decoded(entry)
		if err != nil {
			return err
		}

		cells := make([]string, 0, len(s.columns))
		for _, column := range s.columns {
			cells = append(cells, cellOf(decoded, column))
		}

		return writeRow(s.csv, cells)
	case YAML:
		encoded, err := yaml.Marshal([]any{entry})
		if err != nil {
			return fmt.Errorf("encoding an entry: %w", err)
		}

		if s.count == 1 {
			encoded = append([]byte("data:\n"), encoded...)
		}

		return write(s.w, string(encoded))
	default:
		encoded, err := json.MarshalIndent(entry, "    ", "  ")
		if err != nil {
			return fmt.Errorf("encoding an entry: %w", err)
		}

		return write(s.w, map[bool]string{true: ",", false: ""}[s.count > 1]+"\n    "+string(encoded))
	}
}

// Close ends the list. JSON and YAML contain the number of entries at the end, so a list without this number is incomplete.
func (s *Stream) Close() error {
	var end strings.Builder

	switch s.format {
	case JSON:
		if s.count > 0 {
			end.WriteString("\n  ")
		}

		fmt.Fprintf(&end, "],\n  \"count\": %d\n}\n", s.count)
	case YAML:
		if s.count == 0 {
			end.WriteString("data: []\n")
		}

		fmt.Fprintf(&end, "count: %d\n", s.count)
	default:
	}

	if err := write(s.w, end.String()); err != nil {
		return err
	}

	return flush(s.csv)
}

// Count returns the number of entries that were written.
func (s *Stream) Count() int { return s.count }
