package bundle_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestRegressions verifies that each known defect of other bundle provisioners has a test. Most of the tests need the API server of the local
// garden.
func TestRegressions(t *testing.T) {
	for i, row := range []struct {
		reason string
		// tests are the names of tests, preceded by their folders.
		tests []string
	}{
		{"a source whose type does not fit its block is rejected, and safe if it is not", []string{"bundle/api/v1alpha1 TestRulesOfSources", "bundle/source TestInvalidSources"}},
		{"the folder of a Git source: short names, ., .., absolute names, links out of the repository", []string{"bundle/source TestGitDirectories", "bundle/api/v1alpha1 TestRulesOfSources"}},
		{"hashes of templates and names of Bundles", []string{"bundle/controller/deployments TestTemplateHash", "bundle/controller/deployments TestHashesWithLeadingZeros", "bundle/controller/deployments TestNamesOfBundles"}},
		{"a good template after six bad ones", []string{"bundle/controller/deployments TestSixBadTemplates"}},
		{"Bundles and BundleDeployments that are deleted during a pivot", []string{"bundle/controller/deployments TestDeletedBundles"}},
		{"a tag or branch that moves after it was unpacked", []string{"bundle/requirements TestRequirement09Pins", "bundle/source TestGit", "bundle/source TestImage", "bundle/service TestMovedSources"}},
		{"an empty store, a full volume, an interrupted write", []string{"bundle/requirements TestRequirement09Pins", "bundle/requirements TestRegression07FullStore", "bundle/store TestFullVolume", "bundle/store TestCrashes", "bundle/store TestDamagedArchive"}},
		{"hostile archives, slow and truncated downloads", []string{"bundle/archive TestHostileArchives", "bundle/archive TestHostileLayers", "bundle/source TestHTTPErrors", "bundle/source TestGitLimits", "bundle/source TestInvalidImages", "bundle/source TestDamagedImages", "bundle/source TestPackBombs"}},
		{"a definition with an object of its kind, dependencies, guarded removal of definitions", []string{"bundle/controller/deployments TestDefinitionAndItsObject", "bundle/controller/deployments TestDependencies"}},
		{"two BundleDeployments with the same object", []string{"bundle/controller/deployments TestCollision"}},
		{"an upgrade that fails half-way", []string{"bundle/controller/deployments TestUpgradeThatFails", "bundle/controller/deployments TestUnsafeDefinition"}},
		{"objects that are edited, deleted or lose labels; replicas of an autoscaler", []string{"bundle/controller/deployments TestRepair", "bundle/controller/deployments TestRegression12WatchedObjects", "internal/clients/applier TestScaledReplicas"}},
		{"a workload that fails later", []string{"bundle/controller/deployments TestHealth", "bundle/controller/deployments TestRegression13HealthByWatch"}},
		{"a target cluster that is down, rejects the credentials, or is gone", []string{"bundle/controller/deployments TestTarget", "bundle/controller/deployments TestRegression14Outage", "bundle/controller/deployments TestRegression14Rejected", "bundle/controller/deployments TestDeletionTimeout"}},
		{"access to content and uploads", []string{"bundle/requirements TestRequirement07Content", "bundle/requirements TestRequirement07Uploads"}},
		{"large bundles, and a bounded history after many upgrades", []string{"bundle/controller/deployments TestManyLargeUpgrades"}},
		{"objects of other classes, and a class that changes", []string{"bundle/controller/deployments TestClasses", "bundle/requirements TestRequirement02OwnClass"}},
	} {
		for _, test := range row.tests {
			folder, name, _ := strings.Cut(test, " ")
			if !hasTest(t, folder, name) {
				t.Errorf("row %d (%s): there is no test %s in %s", i+1, row.reason, name, folder)
			}
		}
	}
}

// hasTest reports whether a folder has a test.
func hasTest(t *testing.T, folder, name string) bool {
	t.Helper()

	files, err := filepath.Glob(filepath.Join("..", filepath.FromSlash(folder), "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}

	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}

		if strings.Contains(string(text), "\nfunc "+name+"(t *testing.T)") {
			return true
		}
	}

	return false
}
