package output

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// Format is an output format. *Format implements pflag.Value, so it can be the target of a flag.
type Format string

// The formats. Table is for people, and its layout may change; programs should read JSON or YAML.
const (
	Table Format = "table"
	JSON  Format = "json"
	YAML  Format = "yaml"
)

// Formats returns the names of the formats.
func Formats() []string { return []string{string(Table), string(JSON), string(YAML)} }

// Set selects the format by its name.
func (f *Format) Set(name string) error {
	if !slices.Contains(Formats(), name) {
		return fmt.Errorf("output format %q is not one of %s", name, strings.Join(Formats(), ", "))
	}

	*f = Format(name)

	return nil
}

// String returns the format's name.
func (f *Format) String() string { return string(*f) }

// Type returns the name of the type in help texts.
func (*Format) Type() string { return "format" }

// Text is a result that can be printed for people.
type Text interface {
	WriteText(w io.Writer) error
}

// Print writes the text if the format is Table, and the encoded value otherwise.
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
