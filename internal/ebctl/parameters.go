package ebctl

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
)

// readParameters returns the JSON object that the flag holds or names (@FILE, @- for the standard input), with the region in it.
// Without either there are no parameters.
func readParameters(stdin io.Reader, flag, region string) (json.RawMessage, error) {
	if flag == "" && region == "" {
		return nil, nil
	}

	text, err := readArgument(stdin, flag)
	if err != nil {
		return nil, err
	}

	parameters := map[string]json.RawMessage{}

	if len(text) > 0 {
		if err := json.Unmarshal(text, &parameters); err != nil {
			return nil, usage("--parameters is no JSON object: %w", err)
		}
	}

	if region != "" {
		if _, twice := parameters["region"]; twice {
			return nil, usage("the region is given twice, by --region and in --parameters")
		}

		// A string always has a JSON form.
		parameters["region"], _ = json.Marshal(region) //nolint:errchkjson // see above
	}

	encoded, err := json.Marshal(parameters)
	if err != nil {
		return nil, fmt.Errorf("encoding the parameters: %w", err)
	}

	return encoded, nil
}

// readArgument returns the text of a flag, or of the file that it names.
func readArgument(stdin io.Reader, flag string) ([]byte, error) {
	path, named := strings.CutPrefix(flag, "@")

	switch {
	case !named:
		return []byte(flag), nil
	case path == "-":
		text, err := io.ReadAll(stdin)
		if err != nil {
			return nil, fmt.Errorf("reading the parameters from standard input: %w", err)
		}

		return text, nil
	}

	text, err := os.ReadFile(path)
	if err != nil {
		return nil, usage("--parameters: %w", err)
	}

	return text, nil
}
