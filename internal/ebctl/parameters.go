package ebctl

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/environment-broker/environment-broker/internal/ebctl/output"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/httpserver/bounds"
)

// parameterFlags contains the --parameters and --set flags. Together they define the parameters of a create or update request.
type parameterFlags struct {
	// object is a JSON or YAML object, @FILE, or @- for standard input.
	object string
	// assignments have the form path=value, in the order of the command line. They override values in object.
	assignments []string
}

// add adds the flags to the command. purpose is the beginning of the flags' help texts.
func (p *parameterFlags) add(command *cobra.Command, purpose string) {
	command.Flags().StringVar(&p.object, "parameters", "", purpose+": a JSON or YAML object, @FILE, or @- for standard input")
	command.Flags().StringArrayVar(&p.assignments, "set", nil,
		purpose+" one by one, as NAME=VALUE or OBJECT.NAME=VALUE with a YAML value; repeatable, and overrides --parameters")
}

// isSet reports whether at least one of the flags is set.
func (p *parameterFlags) isSet() bool { return p.object != "" || len(p.assignments) > 0 }

// read returns the parameters, including the region from --region, as a JSON object. If there are none, it returns nil, so that
// the request contains no parameters. Malformed parameters are usage errors.
func (p *parameterFlags) read(stdin io.Reader, region string) (json.RawMessage, error) {
	if !p.isSet() && region == "" {
		return nil, nil
	}

	text, err := readArgument(stdin, p.object)
	if err != nil {
		return nil, err
	}

	parameters, err := decodeObject(text)
	if err != nil {
		return nil, usage("--parameters is not a JSON or YAML object: %w", err)
	}

	for _, assignment := range p.assignments {
		if err := assign(parameters, assignment); err != nil {
			return nil, err
		}
	}

	if region != "" {
		if _, twice := parameters["region"]; twice {
			return nil, usage("the region is set twice: by --region and in the parameters")
		}

		parameters["region"] = region
	}

	encoded, err := json.Marshal(parameters)

	return encoded, failure.While(err, "encoding the parameters")
}

// decodeObject decodes a JSON or YAML object. Empty text is an empty object. Numbers keep their exact digits.
func decodeObject(text []byte) (map[string]any, error) {
	if len(bytes.TrimSpace(text)) == 0 {
		return map[string]any{}, nil
	}

	if !json.Valid(text) {
		converted, err := yaml.YAMLToJSONStrict(text)
		if err != nil {
			return nil, errors.New(output.Line(err.Error())) // the text of the error has several lines
		}

		text = converted
	}

	if err := bounds.JSON("the object", text); err != nil {
		return nil, err
	}

	var object map[string]any

	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()

	if err := decoder.Decode(&object); err != nil {
		return nil, err
	}

	if object == nil { // null
		object = map[string]any{}
	}

	return object, nil
}

// assign sets the value of an assignment such as networking.nodes=10.250.0.0/20. It creates missing objects on the path.
func assign(parameters map[string]any, assignment string) error {
	path, text, found := strings.Cut(assignment, "=")
	names := strings.Split(path, ".")

	for _, name := range names {
		if !found || name == "" {
			return usage("--set %q does not have the form NAME=VALUE or OBJECT.NAME=VALUE", assignment)
		}
	}

	value, err := valueIn(text)
	if err != nil {
		return usage("--set %s: %w", path, err)
	}

	object, last := parameters, len(names)-1

	for _, name := range names[:last] {
		inner, isObject := object[name].(map[string]any)
		if _, exists := object[name]; exists && !isObject {
			return usage("--set %s: the %s parameter is not an object", path, name)
		}

		if inner == nil {
			inner = map[string]any{}
			object[name] = inner
		}

		object = inner
	}

	object[names[last]] = value

	return nil
}

// valueIn decodes the value of an assignment. It accepts a YAML number, boolean, null or quoted string, a list in brackets, or an
// object in braces. Everything else is a string, even text such as "- a", which would be a list in YAML.
func valueIn(text string) (any, error) {
	var value any

	err := yaml.Unmarshal([]byte(text), &value)
	if strings.HasPrefix(text, "[") || strings.HasPrefix(text, "{") {
		return value, failure.While(err, "the value is neither a list nor an object; quote a string that starts with a bracket")
	}

	switch value.(type) {
	case bool, float64, string:
		return value, nil
	case nil:
		if err == nil && text != "" {
			return nil, nil
		}
	}

	return text, nil
}

// maxParameters is the maximum size of parameters from a file or from standard input, in bytes. The broker rejects longer
// requests.
const maxParameters = 1 << 20

// readArgument returns the value of a flag. If the value starts with @, it returns the content of the named file or of standard
// input, which must not be longer than maxParameters.
func readArgument(stdin io.Reader, flag string) ([]byte, error) {
	path, named := strings.CutPrefix(flag, "@")

	switch {
	case !named:
		return []byte(flag), nil
	case path != "-":
		file, err := os.Open(path)
		if err != nil {
			return nil, usage("--parameters: %w", err)
		}
		defer file.Close()

		stdin = file
	}

	text, err := io.ReadAll(io.LimitReader(stdin, maxParameters+1))
	if err != nil {
		return nil, fmt.Errorf("reading the parameters: %w", err)
	}

	if len(text) > maxParameters {
		return nil, usage("--parameters: more than %d bytes", maxParameters)
	}

	return text, nil
}
