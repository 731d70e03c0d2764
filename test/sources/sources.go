// Package sources makes tests depend on the sources that their nested go commands read.
package sources

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// Open opens the folders of packages, and of the packages of this module that they and their tests import. The packages are arguments of
// the go command in folder.
//
// go test shows a cached result as long as the test program and the files that the test opened have not changed. It does not see the files
// that a nested `go build`, `go list` or `go test` reads, so without Open the test would not run again after a change of them.
func Open(folder string, packages ...string) error {
	const folders = "{{if .Module}}{{if .Module.Main}}{{.Dir}}{{end}}{{end}}"

	list := exec.Command("go", append([]string{"list", "-buildvcs=false", "-deps", "-test", "-f", folders}, packages...)...)
	list.Dir, list.Stderr = folder, os.Stderr

	output, err := list.Output()
	if err != nil {
		return fmt.Errorf("listing the sources of %v: %w", packages, err)
	}

	opened := strings.Fields(string(output))
	if len(opened) == 0 {
		return fmt.Errorf("%v have no sources in %s", packages, folder)
	}

	for _, source := range opened {
		if _, err := os.ReadDir(source); err != nil {
			return fmt.Errorf("opening the sources of %v: %w", packages, err)
		}
	}

	return nil
}
