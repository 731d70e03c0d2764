// Command reference writes the generated pages of docs/: the environment variables, those of the Kyma Provisioner, the plans and the error
// codes. It reads them from the configuration structs, the files of the catalog and the error tables, so a page cannot differ from the code.
//
// Its tests hold the generated pages, the page of the metrics and the alert rules against both services. It sits on top of everything else
// and may import any package; nothing imports it. A new page is a function that returns its text, listed in pages.
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

// write writes all pages below the folder docs.
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

// row writes a row of a Markdown table.
func row(text *strings.Builder, cells ...string) {
	fmt.Fprintf(text, "| %s |\n", strings.Join(cells, " | "))
}

// code formats a value as code; an empty one stays empty.
func code(value string) string {
	if value == "" {
		return ""
	}

	return "`" + value + "`"
}
