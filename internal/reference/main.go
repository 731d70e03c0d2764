// Command reference generates pages of docs/: the environment variables, those of the Kyma Provisioner, the plans, and the error codes. Its
// sources are the configuration structs, the files of the catalog and the error tables, so a page cannot differ from the code.
//
// The tests compare the generated pages, the page of the metrics and the alert rules with both services. The command may import any package,
// and no package imports the command. A new page is a function that returns the text of the page, with a row in pages.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

//go:generate go run . ../../docs

// page is a generated page of the documentation.
type page struct {
	// path is relative to the folder docs.
	path string
	text func() (string, error)
}

func pages() []page {
	return []page{
		{"operator/configuration.md", configurationPage},
		{"operator/kyma-provisioner-variables.md", kymaProvisionerPage},
		{"user/plans.md", plansPage},
		{"user/errors.md", errorsPage},
	}
}

func main() {
	if err := write(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// write writes all pages to the folder docs.
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

// row writes a row of a Markdown table. Cells must not contain line breaks or unescaped separators.
func row(text *strings.Builder, cells ...string) {
	fmt.Fprintf(text, "| %s |\n", strings.Join(cells, " | "))
}

// code formats a value as inline code. An empty value stays empty.
func code(value string) string {
	if value == "" {
		return ""
	}

	return "`" + value + "`"
}
