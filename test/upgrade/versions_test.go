package upgrade_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/environment-broker/environment-broker/test/harness"
)

const (
	// previousVersion is the version before this one. Its programs must work beside the current ones, and after them.
	previousVersion = "0.1.0"
	// previousCommit is the commit of previousVersion. It also wrote the databases in testdata.
	previousCommit = "ede58cf59977706c59eee223fcfcf442533dea76"
)

// version is a version of the services.
type version string

const (
	previous version = "previous"
	current  version = "current"
)

func versions() []version { return []version{previous, current} }

// other returns the version that runs beside this one.
func (v version) other() version {
	if v == previous {
		return current
	}

	return previous
}

// program returns the path of the version's binary of a program, which it builds if necessary.
func (v version) program(t *testing.T, command string) string {
	t.Helper()

	if v == current {
		return harness.Build(t, command)
	}

	folder, err := previousPrograms()
	if err != nil {
		t.Fatal(err)
	}

	return filepath.Join(folder, command)
}

// previousPrograms builds the programs of previousVersion, and returns their folder. Later calls and test runs use the same
// folder, because a commit does not change.
var previousPrograms = sync.OnceValues(func() (string, error) {
	folder, err := filepath.Abs(filepath.Join(harness.Root, ".bin", "previous-"+previousCommit))
	if err != nil {
		return "", err
	}

	if _, err := os.Stat(folder); !errors.Is(err, os.ErrNotExist) {
		return folder, err
	}

	sources, err := os.MkdirTemp("", "previous-version-")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(sources) }()

	if err := extractSources(sources); err != nil {
		return "", err
	}

	// An interrupted build must not look complete, so the folder gets its final name only after the build.
	built := folder + ".partial"

	// GOGC=800 saves CPU time: at Go's default of 100, garbage collection takes a fifth of the compiler's CPU time.
	builder := exec.Command("go", "build", "-buildvcs=false", "-ldflags=-s -w", "-o", built+"/", "./cmd/broker", "./cmd/provisioner")
	builder.Dir, builder.Env = sources, append(os.Environ(), "GOGC=800")

	if output, err := builder.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building version %s: %w\n%s", previousVersion, err, output)
	}

	return folder, os.Rename(built, folder)
})

// extractSources writes the files of previousCommit to a folder.
func extractSources(folder string) error {
	archive := filepath.Join(folder, "sources.tar")

	git := exec.Command("git", "archive", "--output", archive, previousCommit)
	git.Dir = harness.Root

	if output, err := git.CombinedOutput(); err != nil {
		return fmt.Errorf("commit %s, version %s, is not in this repository, because the clone is shallow or is no clone. "+
			"These tests build that version: run `git fetch --unshallow`. git archive: %w\n%s",
			previousCommit, previousVersion, err, strings.TrimSpace(string(output)))
	}

	if output, err := exec.Command("tar", "-x", "-f", archive, "-C", folder).CombinedOutput(); err != nil {
		return fmt.Errorf("extracting the sources of version %s: %w\n%s", previousVersion, err, output)
	}

	return nil
}
