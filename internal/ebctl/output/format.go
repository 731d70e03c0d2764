package output

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/template"

	"k8s.io/client-go/util/jsonpath"
	"sigs.k8s.io/yaml"
)

// Format is an output format. *Format implements pflag.Value, so it can be the target of a flag. JSONPath and GoTemplate are
// followed by an expression.
type Format string

// Output formats. Table and Wide are for people and their layout may change; scripts should use the others.
const (
	Table Format = "table"
	// Wide is a table with additional columns and unshortened cells.
	Wide Format = "wide"
	JSON Format = "json"
	YAML Format = "yaml"
	// CSV prints the rows of lists, with a header, as in RFC 4180. A result that is not a list is one row.
	CSV Format = "csv"
	// Name prints one ID per line, as input for other commands.
	Name Format = "name"
	// JSONPath prints the fields that a kubectl JSONPath expression selects, such as jsonpath={.data[*].name}.
	JSONPath Format = "jsonpath="
	// GoTemplate executes a text/template on the JSON form of the result.
	GoTemplate Format = "go-template="
)

// Formats returns the names of the formats.
func Formats() []string {
	return []string{
		string(Table), string(Wide), string(Name), string(JSON), string(YAML), string(CSV), string(JSONPath), string(GoTemplate),
	}
}

// Set selects a format by its name and, for JSONPath and GoTemplate, its expression. It rejects expressions with syntax errors.
func (f *Format) Set(name string) error {
	format := Format(name)
	kind, expression := format.split()

	switch {
	case !slices.Contains(Formats(), string(kind)):
		return fmt.Errorf("output format %q is not one of %s", name, strings.Join(Formats(), ", "))
	case kind == JSONPath || kind == GoTemplate:
		if expression == "" {
			return fmt.Errorf("output format %q needs an expression", name)
		}

		if _, err := compile(kind, expression); err != nil {
			return err
		}
	}

	*f = format

	return nil
}

// String returns the name of the format.
func (f *Format) String() string { return string(*f) }

// Type returns the name of the type in help texts.
func (*Format) Type() string { return "format" }

// Text is a result that can be printed for users.
type Text interface {
	WriteText(w io.Writer) error
}

// Widened is a Text that shows more in the Wide format. Its CSV form has the same rows.
type Widened interface {
	Wide() Rows
}

// Named is a Text with IDs, which the Name format prints. If Names returns nil, printing in the Name format fails.
type Named interface {
	Names() []string
}

// ErrNoNames reports that a result has no IDs and cannot be printed in the Name format.
var ErrNoNames = errors.New("the result has no names: use an output format other than name")

// Print writes text in the formats for people, the IDs of text in the Name format, and value in all other formats.
func (f Format) Print(w io.Writer, value any, text Text) error {
	kind, expression := f.split()

	switch kind {
	case Table:
		return text.WriteText(w)
	case Wide:
		if widened, has := text.(Widened); has {
			text = widened.Wide()
		}

		return text.WriteText(w)
	case Name:
		named, has := text.(Named)
		if !has || named.Names() == nil {
			return ErrNoNames
		}

		return write(w, lines(named.Names()))
	case CSV:
		return writeCSV(w, text)
	case JSONPath, GoTemplate:
		return evaluate(w, kind, expression, value)
	case JSON, YAML:
	}

	encoded, err := f.encode(value)
	if err != nil {
		return fmt.Errorf("encoding the result as %s: %w", f, err)
	}

	return write(w, string(encoded))
}

// ForPeople reports whether the format is a table.
func (f Format) ForPeople() bool { return f == Table || f == Wide }

// split returns the kind of the format and, for JSONPath and GoTemplate, the expression.
func (f Format) split() (kind Format, expression string) {
	if name, expression, has := strings.Cut(string(f), "="); has {
		return Format(name + "="), expression
	}

	return f, ""
}

// lines joins the texts into one string, with one line for each text and a line break after each line.
func lines(texts []string) string {
	var all strings.Builder

	for _, text := range texts {
		all.WriteString(Line(text) + "\n")
	}

	return all.String()
}

// executor writes the result of an expression that is applied to decoded JSON.
type executor func(w io.Writer, decoded any) error

// compile parses an expression. The JSON form of a result omits optional fields without a value. A JSONPath expression treats such
// a field as empty, and a template prints "<no value>".
func compile(kind Format, expression string) (executor, error) {
	if kind == GoTemplate {
		parsed, err := template.New("output").Parse(expression)
		if err != nil {
			return nil, fmt.Errorf("the template is invalid: %w", err)
		}

		return parsed.Execute, nil
	}

	path, err := Path(expression)
	if err != nil {
		return nil, err
	}

	return path.Execute, nil
}

// Path parses a JSONPath expression. As in kubectl, the braces and the leading dot are optional.
func Path(expression string) (*jsonpath.JSONPath, error) {
	if !strings.Contains(expression, "{") {
		expression = "{." + strings.TrimPrefix(expression, ".") + "}"
	}

	path := jsonpath.New("output").AllowMissingKeys(true)
	if err := path.Parse(expression); err != nil {
		return nil, fmt.Errorf("the JSONPath expression %q is invalid: %w", expression, err)
	}

	return path, nil
}

// evaluate applies an expression to the JSON form of the value. Like kubectl, it adds no line break at the end.
func evaluate(w io.Writer, kind Format, expression string, value any) error {
	execute, err := compile(kind, expression)
	if err != nil {
		return err
	}

	decoded, err := Decoded(value)
	if err != nil {
		return err
	}

	var text strings.Builder
	if err := execute(&text, decoded); err != nil {
		return fmt.Errorf("evaluating the expression of --output: %w", err)
	}

	return write(w, text.String())
}

// Decoded returns the value as maps, slices and scalars, with its JSON names.
func Decoded(value any) (any, error) {
	encoded, err := json.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("encoding the result: %w", err)
	}

	var decoded any
	if err := json.Unmarshal(encoded, &decoded); err != nil {
		return nil, fmt.Errorf("decoding the result: %w", err)
	}

	return decoded, nil
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
