package deployments

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/environment-broker/environment-broker/bundle/format"
	"github.com/environment-broker/environment-broker/bundle/renderer"
)

// Chart implements Content for the helm+v3 format. It renders the chart with the values in spec.config.
type Chart struct {
	Fetcher  Fetcher
	Renderer *renderer.Renderer
	// Folder is the folder for temporary files. If it is empty, the system's folder is used.
	Folder string
}

// Load implements Content.
func (c Chart) Load(ctx context.Context, release Release) (loaded Loaded, err error) {
	settings, err := chartRelease(release)
	if err != nil {
		return Loaded{}, fmt.Errorf("spec.config: %w", err)
	}

	if settings.KubeVersion, err = release.Version(ctx); err != nil {
		return Loaded{}, err
	}

	err = fetch(ctx, c.Fetcher, c.Folder, release.Bundle, func(content fs.FS) error {
		if loaded.Objects, err = c.Renderer.Chart(ctx, content, settings); err != nil {
			return err
		}

		loaded.Masked, err = format.Masked(content, loaded.Objects)

		return err
	})

	return loaded, err
}

// skip is the only value that the hooks and crds settings may have.
const skip = "skip"

// chartRelease converts the release's config, whose settings are strings. Only the values setting may also be an object instead of
// a string with YAML.
func chartRelease(release Release) (renderer.Release, error) {
	result := renderer.Release{Name: release.Name, Namespace: release.Namespace}
	settings := map[string]json.RawMessage{}

	if len(release.Config) > 0 {
		if err := json.Unmarshal(release.Config, &settings); err != nil {
			return result, fmt.Errorf("it must be an object: %w", err)
		}
	}

	for _, name := range slices.Sorted(maps.Keys(settings)) {
		var text string

		err := json.Unmarshal(settings[name], &text)

		switch {
		case name == "values" && err != nil:
			var object map[string]any

			text, err = string(settings[name]), json.Unmarshal(settings[name], &object)
		case name == "values":
		case err != nil:
			return result, fmt.Errorf("%s must be a string", name)
		}

		if err != nil {
			return result, fmt.Errorf("%s must be an object, or a string with YAML", name)
		}

		if err := setting(&result, name, text); err != nil {
			return result, err
		}
	}

	return result, nil
}

// setting applies one setting. It fails if the setting or its value is unknown.
func setting(to *renderer.Release, name, value string) error {
	switch name {
	case "values":
		to.Values = value
	case "apiVersions":
		to.APIVersions = strings.FieldsFunc(value, func(letter rune) bool { return letter == ',' || letter == ' ' || letter == '\n' })
	case "hooks", "crds":
		if value != skip {
			return fmt.Errorf("%s: the only valid value is %s", name, skip)
		}

		to.SkipHooks, to.SkipCRDs = to.SkipHooks || name == "hooks", to.SkipCRDs || name == "crds"
	default:
		return fmt.Errorf("the setting %q is unknown: use values, apiVersions, hooks and crds", name)
	}

	return nil
}
