package engines

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"helm.sh/helm/v3/pkg/chart"
)

const schemaName = "values.schema.json"

// validate checks the values against the schemas of the chart and of its enabled dependencies. A reference to another schema is an error.
func validate(loaded *chart.Chart, values map[string]any) error {
	if loaded.Schema != nil {
		if err := validateOne(loaded.Schema, values); err != nil {
			return fmt.Errorf("the values do not match the schema of the chart %s: %w", loaded.Name(), err)
		}
	}

	for _, dependency := range loaded.Dependencies() {
		of, isMap := values[dependency.Name()].(map[string]any)
		if !isMap {
			continue
		}

		if err := validate(dependency, of); err != nil {
			return err
		}
	}

	return nil
}

func validateOne(schema []byte, values map[string]any) error {
	content, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema))
	if err != nil {
		return fmt.Errorf("%s is not valid JSON: %w", schemaName, err)
	}

	compiler := jsonschema.NewCompiler()
	compiler.UseLoader(nothing{})

	if err := compiler.AddResource(schemaName, content); err != nil {
		return fmt.Errorf("%s: %w", schemaName, err)
	}

	compiled, err := compiler.Compile(schemaName)
	if err != nil {
		return fmt.Errorf("%s: %w", schemaName, err)
	}

	plain, err := normalized(values)
	if err != nil {
		return err
	}

	if err := compiled.Validate(plain); err != nil {
		_, causes, _ := strings.Cut(err.Error(), "\n")

		return errors.New(strings.TrimSpace(causes))
	}

	return nil
}

// nothing is a schema loader that rejects all references to other schemas.
type nothing struct{}

// Load implements jsonschema.URLLoader.
func (nothing) Load(string) (any, error) {
	return nil, errors.New("references to other schema files are not followed: copy these schemas into $defs")
}
