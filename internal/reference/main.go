// Command reference generates pages of docs/: the environment variables, a comparison with the variables of the Kyma Provisioner,
// the processes of the broker and of the Provisioner, the plans, and the error codes. It generates them from the configuration
// structs, the catalog files and the error tables, so they always match the code.
//
// The tests compare the generated pages, the metrics page and the alert rules with the code of both services. The command can
// import any package, because no package imports the command.
//
// The command also generates the Grafana dashboards in resources/dashboards.
//
// To add a page, add a template to the pages folder, a function that returns the data for the template, and an entry in the list
// that the pages function returns.
package main

import (
	"embed"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"strings"
	"text/template"
)

//go:generate go run . ../../docs ../../resources/dashboards

//go:embed pages
var templates embed.FS

// page is a generated page of the documentation.
type page struct {
	// path is relative to docs/. The template of the page has the same file name.
	path string
	// data returns the data for the template.
	data func() (any, error)
}

// pages returns all generated pages.
func pages() []page {
	return []page{
		{"operator/configuration.md", configurationPage},
		{"operator/kyma-provisioner-variables.md", kymaProvisionerPage},
		{"operator/processes.md", processesPage},
		{"operator/provisioner-processes.md", provisionerProcessesPage},
		{"user/plans.md", plansPage},
		{"user/errors.md", errorsPage},
	}
}

func main() {
	if err := errors.Join(write(os.Args[1]), writeDashboards(os.Args[1], os.Args[2])); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// write writes all pages to the docs folder.
func write(docs string) error {
	for _, page := range pages() {
		text, err := page.text()
		if err != nil {
			return fmt.Errorf("writing %s: %w", page.path, err)
		}

		if err := os.WriteFile(filepath.Join(docs, page.path), []byte(text), 0o644); err != nil { //nolint:gosec // documentation is public
			return fmt.Errorf("writing a page: %w", err)
		}
	}

	return nil
}

// text returns the page as Markdown.
func (p page) text() (string, error) {
	data, err := p.data()
	if err != nil {
		return "", err
	}

	name := path.Base(p.path) + ".tmpl"

	parsed, err := template.New(name).Funcs(template.FuncMap{
		"code": code, "cell": cell, "status": http.StatusText,
	}).ParseFS(templates, "pages/"+name)
	if err != nil {
		return "", fmt.Errorf("parsing a template: %w", err)
	}

	var text strings.Builder
	if err := parsed.Execute(&text, data); err != nil {
		return "", fmt.Errorf("executing a template: %w", err)
	}

	return text.String(), nil
}

// cell escapes a string for use in a Markdown table cell.
func cell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }

// code formats a value as inline code. An empty value stays empty.
func code(value string) string {
	if value == "" {
		return ""
	}

	return "`" + value + "`"
}
