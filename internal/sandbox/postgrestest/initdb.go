package postgrestest

import (
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// initializer creates the data folder of a server in a folder. owner is the ID of the user that owns PostgreSQL's files, or -1 if
// this is the current user.
type initializer func(folder string, attributes *syscall.SysProcAttr, owner int) error

// arguments are the arguments of initdb, except for the folder.
var arguments = []string{"-U", "postgres", "--auth=trust", "-E", "UTF8", "--no-sync"}

// initialize creates the data folder with initdb, which takes more than a second of CPU time.
func initialize(folder string, attributes *syscall.SysProcAttr, _ int) error {
	initdb, err := Binary("initdb")
	if err != nil {
		return err
	}

	create := exec.Command(initdb, slices.Concat(arguments, []string{"-D", filepath.Join(folder, "data")})...)
	create.SysProcAttr, create.Dir = attributes, folder

	if output, err := create.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w: %s", err, output)
	}

	return nil
}

// copyInitialized is like initialize, but the first call keeps the result in the user's cache folder, and later calls copy it. All
// copies have the same system identifier, so they are not for tests that distinguish servers.
func copyInitialized(folder string, attributes *syscall.SysProcAttr, owner int) error {
	data := filepath.Join(folder, "data")

	cached, err := cacheOf(owner)
	if err != nil {
		return err
	}

	if exists(cached) {
		return copyFolder(cached, data)
	}

	if err := initialize(folder, attributes, owner); err != nil {
		return err
	}

	if cached != "" {
		// Tests work without the cache, for example if the user's folder is read-only.
		_ = keep(data, cached)
	}

	return nil
}

// cacheOf returns the path for the result of initdb, or "" if the user has no cache folder. The path depends on everything that
// determines the result: the version, the arguments, the locale and the owner of the files.
func cacheOf(owner int) (string, error) {
	initdb, err := Binary("initdb")
	if err != nil {
		return "", err
	}

	version, err := exec.Command(initdb, "--version").Output()
	if err != nil {
		return "", fmt.Errorf("reading the version of initdb: %w", err)
	}

	caches, err := os.UserCacheDir()
	if err != nil {
		return "", nil //nolint:nilerr // Tests work without the cache.
	}

	inputs := append([]string{string(version), strconv.Itoa(owner)}, arguments...)

	for _, variable := range os.Environ() {
		if strings.HasPrefix(variable, "LC_") || strings.HasPrefix(variable, "LANG") {
			inputs = append(inputs, variable)
		}
	}

	return filepath.Join(caches, "environment-broker", fmt.Sprintf("initdb-%x", sha256.Sum256([]byte(strings.Join(inputs, "\n"))))), nil
}

// keep copies a data folder to the cache. Concurrent calls are safe: the first one wins, and readers never see a partial copy.
func keep(data, cached string) error {
	if err := os.MkdirAll(filepath.Dir(cached), 0o700); err != nil {
		return fmt.Errorf("creating the cache folder: %w", err)
	}

	folder, err := os.MkdirTemp(filepath.Dir(cached), "new-")
	if err != nil {
		return fmt.Errorf("creating a folder in the cache: %w", err)
	}

	defer func() { _ = os.RemoveAll(folder) }()

	complete := filepath.Join(folder, "data")
	if err := copyFolder(data, complete); err != nil {
		return err
	}

	if err := os.Rename(complete, cached); err != nil && !os.IsExist(err) {
		return fmt.Errorf("adding a folder to the cache: %w", err)
	}

	return nil
}

func exists(path string) bool {
	_, err := os.Stat(path)

	return err == nil
}

// copyFolder copies a folder with the owners and permissions of its files.
func copyFolder(from, to string) error {
	if output, err := exec.Command("cp", "-a", from, to).CombinedOutput(); err != nil {
		return fmt.Errorf("copying the data of PostgreSQL: %w: %s", err, output)
	}

	return nil
}
