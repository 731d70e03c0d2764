package output

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// Format is how results are printed.
type Format string

// The formats. Table is the default and may change; programs should read one of the others.
const (
	Table Format = "table"
	JSON  Format = "json"
	YAML  Format = "yaml"
)

// Formats lists the formats by name.
func Formats() []string { return []string{string(Table), string(JSON), string(YAML)} }

// Set makes it the format of that name. With String and Type it makes a Format the value of a flag.
func (f *Format) Set(name string) error {
	if !slices.Contains(Formats(), name) {
		return fmt.Errorf("output format %q is none of %s", name, strings.Join(Formats(), ", "))
	}

	*f = Format(name)

	return nil
}

// String returns the format's name.
func (f *Format) String() string { return string(*f) }

// Type returns what help calls the value of a flag.
func (*Format) Type() string { return "format" }

// Text is a result in the form for people.
type Text interface {
	WriteText(w io.Writer) error
}

// Print writes a result: the text for people in the Table format, the value in the others.
func (f Format) Print(w io.Writer, value any, text Text) error {
	if f == Table {
		return text.WriteText(w)
	}

	encoded, err := f.encode(value)
	if err != nil {
		return fmt.Errorf("encoding the result as %s: %w", f, err)
	}

	return write(w, string(encoded))
}

func (f Format) encode(value any) ([]byte, error) {
	if f == YAML {
		return yaml.Marshal(value)
	}

	encoded, err := json.MarshalIndent(value, "", "  ")

	return append(encoded, '\n'), err
}

func write(w io.Writer, text string) error {
	if _, err := io.WriteString(w, text); err != nil {
		return fmt.Errorf("printing the result: %w", err)
	}

	return nil
}
