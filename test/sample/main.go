// Command sample selects tests for `make test`, which runs only some of the system tests. It prints a regular expression for the flag
// -skip of go test, which matches the names of all other tests in the given folders:
//
//	go run ./test/sample -percent 15 -seed 4711 test/e2e test/crash
//
// The same seed selects the same tests, as long as no test is added or removed. Every folder keeps at least one test.
package main

import (
	"cmp"
	"flag"
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// declaration matches the declaration of a test, in files with any build tag.
var declaration = regexp.MustCompile(`(?m)^func (Test\w+)\(\w+ \*testing\.T\)`)

func main() {
	percent := flag.Int("percent", 100, "share of the tests that run")
	seed := flag.String("seed", "", "any text, which selects the tests")
	flag.Parse()

	skip, summary, err := skipped(flag.Args(), *percent, *seed)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}

	fmt.Fprintln(os.Stderr, summary)
	fmt.Println(skip)
}

// skipped returns the expression that matches the tests outside the sample, and a sentence that describes the sample. The expression matches
// no test if all tests run.
func skipped(folders []string, percent int, seed string) (skip, summary string, err error) {
	if percent < 0 || percent > 100 {
		return "", "", fmt.Errorf("the percentage is %d: choose one from 0 to 100", percent)
	}

	var all, chosen []string

	for _, folder := range folders {
		names, err := testsIn(folder)
		if err != nil {
			return "", "", err
		}

		slices.SortFunc(names, func(one, other string) int { return cmp.Compare(rank(seed, folder, one), rank(seed, folder, other)) })

		all = append(all, names...)
		chosen = append(chosen, names[:max(1, (len(names)*percent+50)/100)]...)
	}

	left := slices.DeleteFunc(slices.Clone(all), func(name string) bool { return slices.Contains(chosen, name) })
	summary = fmt.Sprintf("%d of %d system tests in %s run, selected by the seed %s. SAMPLE=100 runs all of them.",
		len(all)-len(left), len(all), strings.Join(folders, ", "), seed)

	return "^(" + strings.Join(left, "|") + ")$", summary, nil
}

// testsIn returns the names of the tests in a folder.
func testsIn(folder string) ([]string, error) {
	files, err := filepath.Glob(filepath.Join(folder, "*_test.go"))
	if err != nil {
		return nil, fmt.Errorf("listing the tests: %w", err)
	}

	var names []string

	for _, file := range files {
		source, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("listing the tests: %w", err)
		}

		for _, match := range declaration.FindAllSubmatch(source, -1) {
			names = append(names, string(match[1]))
		}
	}

	if len(names) == 0 {
		return nil, fmt.Errorf("the folder %s has no tests", folder)
	}

	return names, nil
}

// rank returns the position of a test in the random order that the seed determines.
func rank(seed, folder, name string) uint64 {
	hash := fnv.New64a()
	fmt.Fprintf(hash, "%s\n%s\n%s", seed, folder, name)

	return hash.Sum64()
}
