package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"

	brokerservice "github.com/environment-broker/environment-broker/broker/service"
	bundleservice "github.com/environment-broker/environment-broker/bundle/service"
	"github.com/environment-broker/environment-broker/internal/program"
	provisionerservice "github.com/environment-broker/environment-broker/provisioner/service"
)

const (
	chartFolder    = "chart"
	copiesFolder   = chartFolder + "/files"
	variablesFile  = copiesFolder + "/variables.json"
	secretVariable = "secret"
	plainVariable  = "plain"
)

// copies lists the files and folders in resources/ that are copied into the chart, because Helm cannot read files outside the
// chart's folder.
func copies() []string { return []string{"alerts.yaml", "crds", "dashboards", "rbac"} }

func main() {
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run writes all generated files below the resources folder, and removes files that are no longer generated.
func run(resources string) error {
	root, err := os.OpenRoot(resources)
	if err != nil {
		return fmt.Errorf("opening the resources folder: %w", err)
	}
	defer func() { _ = root.Close() }()

	files, err := generated(root.FS())
	if err != nil {
		return err
	}

	for _, folder := range []string{copiesFolder, kustomizeFolder + "/base", kustomizeFolder + "/bundler"} {
		if err := root.RemoveAll(folder); err != nil {
			return fmt.Errorf("removing the previous files: %w", err)
		}
	}

	for _, name := range slices.Sorted(maps.Keys(files)) {
		if err := root.MkdirAll(path.Dir(name), 0o755); err != nil {
			return fmt.Errorf("creating a folder: %w", err)
		}

		if err := root.WriteFile(name, files[name], 0o644); err != nil {
			return fmt.Errorf("writing a file: %w", err)
		}
	}

	return nil
}

// generated returns the contents of the generated files, keyed by their paths below the resources folder.
func generated(resources fs.FS) (map[string][]byte, error) {
	files := map[string][]byte{}

	for _, name := range copies() {
		if err := addCopies(files, resources, name); err != nil {
			return nil, err
		}
	}

	var err error
	if files[variablesFile], err = variablesOfServices(); err != nil {
		return nil, err
	}

	if files[chartFolder+"/README.md"], err = chartReadme(resources); err != nil {
		return nil, err
	}

	inChart, err := chartFiles(resources)
	if err != nil {
		return nil, err
	}

	for name, content := range files {
		if inside, found := strings.CutPrefix(name, chartFolder+"/"); found {
			inChart[inside] = content
		}
	}

	rendered, err := kustomizations(resources, inChart)
	maps.Copy(files, rendered)

	return files, err
}

// addCopies copies a file, or all files in a folder, into the chart: it adds them to files, below copiesFolder.
func addCopies(files map[string][]byte, resources fs.FS, name string) error {
	err := fs.WalkDir(resources, name, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}

		files[copiesFolder+"/"+path], err = fs.ReadFile(resources, path)

		return err
	})
	if err != nil {
		return fmt.Errorf("copying %s: %w", name, err)
	}

	return nil
}

// configurations returns the environment variables of each service, keyed by program name.
func configurations() map[string][]program.Variable {
	return map[string][]program.Variable{
		"broker":      program.Variables(program.Prefix, brokerservice.DefaultConfig()),
		"provisioner": program.Variables(program.Prefix, provisionerservice.DefaultConfig()),
		"bundler":     program.Variables(program.Prefix, bundleservice.DefaultConfig()),
	}
}

// variablesOfServices returns a JSON document that lists the plain and the secret variables of each service.
func variablesOfServices() ([]byte, error) {
	kinds := map[string]map[string]string{}

	for service, variables := range configurations() {
		kinds[service] = map[string]string{}

		for _, each := range variables {
			kinds[service][each.Name] = plainVariable
			if each.Secret {
				kinds[service][each.Name] = secretVariable
			}
		}
	}

	var document bytes.Buffer

	encoder := json.NewEncoder(&document)
	encoder.SetIndent("", "  ")

	if err := encoder.Encode(kinds); err != nil {
		return nil, fmt.Errorf("encoding the variables: %w", err)
	}

	return document.Bytes(), nil
}
