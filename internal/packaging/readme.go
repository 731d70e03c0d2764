package main

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"text/template"

	"go.yaml.in/yaml/v3"
)

//go:embed readme.md.tmpl
var readmeTemplate string

// value is a chart value that the README describes.
type value struct {
	// path consists of the keys from the root, separated by dots.
	path    string
	meaning string
	// node is the YAML node of the default.
	node *yaml.Node
}

// servicePrefixes returns the top-level keys of the services in values.yaml. A key that is set for several services has the same
// meaning for each of them.
func servicePrefixes() []string { return []string{"broker", "provisioner", "bundler"} }

// chartReadme returns the README of the chart. Its tables contain the comments and defaults from values.yaml.
func chartReadme(resources fs.FS) ([]byte, error) {
	content, err := fs.ReadFile(resources, chartFolder+"/values.yaml")
	if err != nil {
		return nil, fmt.Errorf("reading the values: %w", err)
	}

	var document yaml.Node
	if err := yaml.Unmarshal(content, &document); err != nil {
		return nil, fmt.Errorf("reading the values: %w", err)
	}

	values, err := documented(document.Content[0])
	if err != nil {
		return nil, err
	}

	parsed, err := template.New("readme").Parse(readmeTemplate)
	if err != nil {
		return nil, fmt.Errorf("parsing the template: %w", err)
	}

	var page bytes.Buffer
	if err := parsed.Execute(&page, map[string]string{"Services": serviceTable(values), "Others": otherTable(values)}); err != nil {
		return nil, fmt.Errorf("executing the template: %w", err)
	}

	return page.Bytes(), nil
}

// documented returns the values that have a comment, in the order of the file. It fails if neither a leaf nor any of its parents
// has a comment. The values of the Provisioner and the bundle provisioner get the comments of the broker's values with the same
// keys.
func documented(root *yaml.Node) ([]value, error) {
	var (
		found   []value
		visit   func(prefix string, node *yaml.Node) error
		meaning = map[string]string{}
	)

	visit = func(prefix string, node *yaml.Node) error {
		for i := 0; i < len(node.Content); i += 2 {
			key, content := node.Content[i], node.Content[i+1]
			path := strings.TrimPrefix(prefix+"."+key.Value, ".")

			comment := uncommented(key.HeadComment)
			if service, rest := splitService(path); service != "" && service != servicePrefixes()[0] {
				comment = meaning[servicePrefixes()[0]+"."+rest]
			}

			switch {
			case comment != "":
				meaning[path] = comment
				found = append(found, value{path, comment, content})
			case content.Kind == yaml.MappingNode && len(content.Content) > 0:
				if err := visit(path, content); err != nil {
					return err
				}
			default:
				return fmt.Errorf("values.yaml: %s has no comment", path)
			}
		}

		return nil
	}

	return found, visit("", root)
}

// uncommented returns the text of a comment without the number signs and line breaks. It omits the file's first comment, which
// ends with an empty line and does not describe a value.
func uncommented(comment string) string {
	if _, after, found := strings.Cut(comment, "\n\n"); found {
		comment = after
	}

	var words []string
	for line := range strings.Lines(comment) {
		words = append(words, strings.TrimSpace(strings.TrimPrefix(line, "#")))
	}

	return strings.Join(words, " ")
}

// splitService splits a path into the service and the path below it. If the value does not belong to a service, service is empty.
func splitService(path string) (service, rest string) {
	service, rest, _ = strings.Cut(path, ".")
	if !slices.Contains(servicePrefixes(), service) || rest == "" {
		return "", path
	}

	return service, rest
}

// serviceTable returns a Markdown table of the values that belong to a service, with one column per service for its defaults.
func serviceTable(values []value) string {
	var (
		paths    []string
		meanings = map[string]string{}
		defaults = map[string]map[string]string{}
	)

	for _, each := range values {
		service, path := splitService(each.path)
		if service == "" {
			continue
		}

		if defaults[path] == nil {
			paths = append(paths, path)
			meanings[path], defaults[path] = each.meaning, map[string]string{}
		}

		defaults[path][service] = inline(each.node)
	}

	var table strings.Builder
	table.WriteString("| value | broker | provisioner | bundler | meaning |\n| --- | --- | --- | --- | --- |\n")

	for _, path := range paths {
		fmt.Fprintf(&table, "| `%s` |", path)

		for _, service := range servicePrefixes() {
			fmt.Fprintf(&table, " %s |", defaults[path][service])
		}

		fmt.Fprintf(&table, " %s |\n", escaped(meanings[path]))
	}

	return table.String()
}

// otherTable returns a Markdown table of the values that do not belong to a service.
func otherTable(values []value) string {
	var table strings.Builder
	table.WriteString("| value | default | meaning |\n| --- | --- | --- |\n")

	for _, each := range values {
		if service, path := splitService(each.path); service == "" {
			fmt.Fprintf(&table, "| `%s` | %s | %s |\n", path, inline(each.node), escaped(each.meaning))
		}
	}

	return table.String()
}

// inline returns a default value in JSON, formatted as inline code, or an empty string for an empty value.
func inline(node *yaml.Node) string {
	var content any
	if err := node.Decode(&content); err != nil {
		return ""
	}

	text, err := json.Marshal(content)
	if err != nil || slices.Contains([]string{`""`, "{}", "[]", "null"}, string(text)) {
		return ""
	}

	return "`" + strings.ReplaceAll(strings.Trim(string(text), `"`), `"`, "") + "`"
}

// escaped escapes text for use in a table cell.
func escaped(text string) string { return strings.ReplaceAll(text, "|", `\|`) }
