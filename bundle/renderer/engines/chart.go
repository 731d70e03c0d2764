package engines

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/ignore"
)

const (
	chartFile   = "Chart.yaml"
	libraryType = "library"
)

// loadChart loads the chart at the root of the bundle, or in the only top-level folder that contains a chart. It rejects library
// charts and charts with missing dependencies.
func loadChart(files []file) (*chart.Chart, error) {
	folder, err := chartFolder(files)
	if err != nil {
		return nil, err
	}

	inside := files[:0:0]

	for _, each := range files {
		if name, found := strings.CutPrefix(each.name, folder); found {
			inside = append(inside, file{name, bytes.TrimPrefix(each.content, []byte("\xEF\xBB\xBF"))})
		}
	}

	rules, err := ignoreRules(inside)
	if err != nil {
		return nil, err
	}

	var buffered []*loader.BufferedFile

	for _, each := range inside {
		if len(each.content) > int(loader.MaxDecompressedFileSize) {
			return nil, fmt.Errorf("the file %s of the chart has more than %d bytes", each.name, loader.MaxDecompressedFileSize)
		}

		if !ignored(rules, each.name) {
			buffered = append(buffered, &loader.BufferedFile{Name: each.name, Data: each.content})
		}
	}

	loaded, err := loader.LoadFiles(buffered)
	if err != nil {
		return nil, fmt.Errorf("the chart cannot be loaded: %w", err)
	}

	if loaded.Metadata.Type == libraryType {
		return nil, fmt.Errorf("the chart %s is a library: only charts of type application can be installed", loaded.Name())
	}

	return loaded, checkDependencies(loaded)
}

// chartFolder returns the folder that contains the chart, with a trailing slash, or "" if the chart is at the root of the bundle.
func chartFolder(files []file) (string, error) {
	var folders []string

	for _, each := range files {
		folder, name := path.Split(each.name)
		if name != chartFile || strings.Count(folder, "/") > 1 {
			continue
		}

		if folder == "" {
			return "", nil
		}

		folders = append(folders, folder)
	}

	switch len(folders) {
	case 1:
		return folders[0], nil
	case 0:
		return "", errors.New("the bundle has no chart: Chart.yaml must be at its root or in a top-level folder")
	default:
		return "", fmt.Errorf("the bundle must have exactly one chart, but there are charts in %s", strings.Join(folders, ", "))
	}
}

// checkDependencies returns an error if a dependency has no chart in charts/. Dependencies are never downloaded.
func checkDependencies(loaded *chart.Chart) error {
	for _, dependency := range loaded.Metadata.Dependencies {
		if !slices.ContainsFunc(loaded.Dependencies(), func(found *chart.Chart) bool { return found.Name() == dependency.Name }) {
			return fmt.Errorf("the dependency %s of the chart is missing from charts/: run `helm dependency build` before packing", dependency.Name)
		}
	}

	return nil
}

// ignoreRules returns Helm's default rules and the rules in the chart's .helmignore file, if it has one.
func ignoreRules(files []file) (*ignore.Rules, error) {
	rules := ignore.Empty()

	for _, each := range files {
		if each.name != ignore.HelmIgnore {
			continue
		}

		var err error
		if rules, err = ignore.Parse(bytes.NewReader(each.content)); err != nil {
			return nil, fmt.Errorf("%s: %w", ignore.HelmIgnore, err)
		}
	}

	rules.AddDefaults()

	return rules, nil
}

// ignored reports whether the rules exclude a file or one of its folders.
func ignored(rules *ignore.Rules, name string) bool {
	for position, letter := range name {
		if letter == '/' && rules.Ignore(name[:position], entry{name[:position], fs.ModeDir}) {
			return true
		}
	}

	return rules.Ignore(name, entry{name, 0})
}
