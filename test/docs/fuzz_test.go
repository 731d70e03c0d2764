package docs_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/environment-broker/environment-broker/test/docs/markdown"
)

var (
	// decoderCall matches calls that decode a text. JSON and YAML packages are imported under many names, such as kubernetesjson.
	decoderCall = regexp.MustCompile(`\b(?:\w*(?:json|yaml)\.(?:Unmarshal|UnmarshalStrict|NewDecoder|NewYAMLOrJSONDecoder|NewYAMLToJSONDecoder|YAMLToJSON\w*)|` +
		`gzip\.NewReader|tar\.NewReader|clientcmd\.(?:Load|RESTConfigFromKubeConfig)|parser\.ParseQueryWithTokenLimit|url\.ParseQuery|expfmt\.\w+|` +
		`base64\.\w+(?:\.Strict\(\))?\.DecodeString|pem\.Decode|bufio\.NewScanner|env\.ParseWithOptions|time\.LoadLocation)\(`)
	fuzzTarget = regexp.MustCompile(`(?m)^func (Fuzz\w*)\(`)
	// madeTarget is the expression with which `make fuzz` finds fuzz targets.
	madeTarget = regexp.MustCompile(`(?m)^func Fuzz[A-Za-z]*`)
)

// decoders maps each file that decodes a text to its fuzz target, as folder.FuzzName, or to the reason why it needs none.
func decoders() map[string]string {
	return map[string]string{
		"bundle/renderer/renderer.go":                         "reads what its own process has encoded",
		"bundle/source/signature.go":                          "bundle/source.FuzzSignature",
		"bundle/source/signature_keys.go":                     "bundle/source.FuzzSignature",
		"storage/cursor.go":                                   "storage.FuzzCursor",
		"storage/auditlog/chain_read.go":                      "storage/auditlog.FuzzChainCursor",
		"provisioner/orders/changes.go":                       "provisioner/orders.FuzzChangesCursor",
		"provisioner/clusteraccess/access.go":                 "decodes a kubeconfig that the configured Gardener has issued",
		"internal/packaging/render.go":                        "reads files of the repository, at the build only",
		"internal/secret/keyring.go":                          "internal/secret.FuzzOpen",
		"internal/program/config.go":                          "internal/program.FuzzVariable",
		"internal/clients/applier/apply.go":                   "decodes a text with two functions of libraries, and uses only their errors",
		"storage/takeover/cipher.go":                          "storage/takeover.FuzzDecrypt",
		"internal/clients/webhook/sign.go":                    "reads what the service has sealed",
		"internal/environment/fleet/window.go":                "internal/environment/fleet.FuzzWindow",
		"internal/environment/fleet/selector.go":              "internal/environment/fleet.FuzzTarget",
		"broker/adopt/parameters.go":                          "broker/adopt.FuzzParameters",
		"provisioner/adopt/mapping.go":                        "provisioner/adopt.FuzzProviderConfig",
		"internal/objectdiff/changes.go":                      "reads what it has encoded",
		"internal/packaging/readme.go":                        "reads a file of the repository, at its generation only",
		"broker/reconcile/provisioner.go":                     "decodes into generated types of the configured Provisioner",
		"bundle/archive/extract.go":                           "bundle/archive.FuzzExtract",
		"bundle/format/masked.go":                             "bundle/format.FuzzMasked",
		"internal/manifest/manifest.go":                       "internal/manifest.FuzzDecode",
		"bundle/format/registry.go":                           "bundle/format.FuzzRegistry",
		"internal/audit/chain/file.go":                        "internal/audit/chain.FuzzVerifyFile",
		"internal/audit/chain/verify.go":                      "internal/audit/chain.FuzzVerifyFile",
		"internal/clients/provisionerclient/client_data.go":   "internal/clients/provisionerclient.FuzzClientData",
		"provisioner/reconcile/registrations.go":              "provisioner/spec.FuzzDecode",
		"storage/orchestrations/store.go":                     "reads what the service has stored",
		"storage/reports/store.go":                            "reads what the service has stored",
		"storage/runtimes/record.go":                          "reads what it has sealed",
		"bundle/source/signature_payload.go":                  "bundle/source.FuzzSignature",
		"bundle/source/image.go":                              "bundle/source.FuzzManifest",
		"broker/console/session/cookie.go":                    "broker/console/session.FuzzCookie",
		"broker/catalog/binding.go":                           "test/osb.FuzzBody",
		"broker/catalog/create_only.go":                       "broker/catalog.FuzzParameters",
		"broker/catalog/merge.go":                             "broker/catalog.FuzzParameters",
		"broker/catalog/load.go":                              "broker/catalog.FuzzCatalogFile",
		"broker/catalog/own_cluster.go":                       "test/osb.FuzzBody",
		"broker/catalog/schema.go":                            "broker/catalog.FuzzParameters",
		"broker/kyma/controlplane.go":                         "broker/kyma.FuzzDecode",
		"broker/kyma/plan.go":                                 "broker/kyma.FuzzParseComponents",
		"broker/kyma/lifecycle_manager.go":                    "broker/kyma.FuzzParseComponents",
		"internal/clients/clusterclient/validity.go":          "internal/clients/clusterclient.FuzzValidity",
		"internal/clients/lifecyclemanager/resource.go":       "internal/clients/lifecyclemanager.FuzzTemplate",
		"internal/clients/lifecyclemanager/status.go":         "internal/clients/lifecyclemanager.FuzzStatus",
		"broker/error_catalog.go":                             "reads a file that is part of the binary",
		"broker/operator/kubeconfig.go":                       "internal/clients/clusterclient.FuzzKubeconfig",
		"broker/operator/protection.go":                       "reads parameters that the service has stored",
		"broker/operator/subjects.go":                         "internal/environment.FuzzData",
		"broker/expiry/expiry.go":                             "internal/environment.FuzzData",
		"broker/quota/quota.go":                               "broker/quota.FuzzParse",
		"broker/request.go":                                   "test/osb.FuzzBody",
		"broker/service/rows.go":                              "internal/environment.FuzzData",
		"broker/update_decision.go":                           "internal/environment.FuzzData",
		"broker/upgrade/rollback.go":                          "internal/environment.FuzzData",
		"broker/upgrade_time.go":                              "reads parameters that the service has stored",
		"internal/audit/actor.go":                             "internal/audit.FuzzOriginator",
		"internal/audit/recorder.go":                          "reads responses of the same service",
		"internal/auth/keys.go":                               "internal/auth.FuzzKeys",
		"internal/auth/platforms.go":                          "internal/auth.FuzzUsers",
		"internal/httpserver/bounds/json.go":                  "internal/httpserver/bounds.FuzzJSON",
		"internal/clients/clusterclient/access.go":            "internal/clients/clusterclient.FuzzKubeconfig",
		"internal/ebctl/bundle_change.go":                     "reads what it has encoded",
		"internal/ebctl/bundle_diff.go":                       "internal/ebctl.FuzzChange",
		"internal/ebctl/bundle_target.go":                     "internal/ebctl.FuzzTargetKubeconfig",
		"internal/ebctl/brokerclient/client.go":               "decodes into generated types of a broker that the user chose",
		"internal/ebctl/brokerclient/errors.go":               "internal/ebctl/brokerclient.FuzzAnswerError",
		"internal/ebctl/brokerclient/events.go":               "internal/ebctl/brokerclient.FuzzEvents",
		"internal/ebctl/configuration.go":                     "internal/ebctl.FuzzConfiguration",
		"internal/ebctl/orchestration_start.go":               "decodes a file that the user chose into a type of the operator API",
		"storage/webhooks/store.go":                           "decodes what it has sealed",
		"internal/ebctl/output/format.go":                     "reads what it has encoded",
		"internal/ebctl/supportbundle/bundle.go":              "reads what it has encoded",
		"internal/ebctl/parameters.go":                        "internal/ebctl.FuzzParameters",
		"internal/environment/data.go":                        "internal/environment.FuzzData",
		"internal/environment/operation.go":                   "internal/environment.FuzzData",
		"internal/clients/clusterclient/service_instances.go": "internal/clients/clusterclient.FuzzServiceInstances",
		"internal/environment/update.go":                      "test/osb.FuzzBody",
		"internal/operatorapi/operatorserver/intervene.go":    "internal/operatorapi/operatorserver.FuzzIntervention",
		"internal/operatorapi/operatorserver/query.go":        "internal/operatorapi/operatorserver.FuzzQuery",
		"internal/clients/reconciler/cluster.go":              "reads what the broker has sealed",
		"internal/clients/provisionerclient/call.go":          "reads what it has encoded",
		"internal/clients/provisionerclient/graphql_error.go": "internal/clients/provisionerclient.FuzzGraphQLError",
		"internal/clients/provisionerclient/order.go":         "test/osb.FuzzBody",
		"internal/upstream/graphqlclient/graphqlclient.go":    "internal/clients/provisionerclient.FuzzGraphQLError",
		"internal/upstream/restclient/restclient.go":          "internal/upstream/restclient.FuzzResponse",
		"internal/upstream/restclient/list.go":                "internal/upstream/restclient.FuzzResponse",
		"internal/upstream/restclient/tokens.go":              "internal/upstream/restclient.FuzzResponse",
		"process/crashtest/expected.go":                       "reads what it has encoded, in tests only",
		"process/run.go":                                      "internal/environment.FuzzData",
		"provisioner/director/credentials.go":                 "provisioner/director.FuzzCredentials",
		"internal/environment/accountpool/rules.go":           "internal/environment/accountpool.FuzzRules",
		"internal/clients/gardenclient/accounts.go":           "internal/clients/gardenclient.FuzzObjects",
		"provisioner/director/problem.go":                     "provisioner/director.FuzzProblem",
		"provisioner/graph/admission.go":                      "provisioner/graph.FuzzAdmission",
		"bundle/controller/deployments/clusters.go":           "bundle/controller/deployments.FuzzKubeconfig",
		"bundle/controller/deployments/template.go":           "reads what it has encoded",
		"bundle/controller/deployments/chart.go":              "bundle/controller/deployments.FuzzConfig",
		"bundle/renderer/engines/main.go":                     "reads a request of its parent process",
		"bundle/renderer/engines/release.go":                  "reads what it has encoded",
		"internal/clients/applier/cluster.go":                 "decodes the version of a cluster into a type of Kubernetes",
		"internal/clients/applier/stored.go":                  "internal/clients/applier.FuzzInventory",
		"bundle/crdsafety/schema.go":                          "bundle/crdsafety.FuzzDefinition",
		"bundle/crdsafety/objects.go":                         "reads what it has encoded",
		"provisioner/installation/releases/registry.go":       "provisioner/installation/releases.FuzzUnpack",
		"provisioner/installation/releases/release.go":        "provisioner/installation/releases.FuzzRelease",
		"provisioner/orders/provision.go":                     "provisioner/spec.FuzzDecode",
		"provisioner/service/shoots.go":                       "reads files of the operator into types of Gardener, at start only",
		"provisioner/shoot/order.go":                          "provisioner/shoot.FuzzOrderOf",
		"provisioner/shoot/keep.go":                           "reads a configuration that Gardener has validated",
		"provisioner/spec/stored.go":                          "provisioner/spec.FuzzDecode",
		"storage/auditlog/entry.go":                           "storage/auditlog.FuzzEntry",
		"storage/bindings/store.go":                           "storage.FuzzSealedColumns",
		"storage/columns.go":                                  "storage.FuzzSealedColumns",
		"storage/endpoints/store.go":                          "reads what it has sealed",
		"storage/instances/store.go":                          "internal/environment.FuzzData",
		"storage/operations/row.go":                           "reads a list that the store has encoded",
	}
}

// TestEveryDecoderHasAFuzzTarget compares decoders with the code, and checks that `make fuzz` runs each fuzz target.
func TestEveryDecoderHasAFuzzTarget(t *testing.T) {
	found, targets := map[string]bool{}, map[string]bool{}

	eachGoFile(t, func(path, content string) {
		if strings.HasSuffix(path, "_test.go") {
			for _, target := range fuzzTarget.FindAllStringSubmatch(content, -1) {
				targets[filepath.Dir(path)+"."+target[1]] = true

				if made := madeTarget.FindString("func " + target[1] + "("); made != "func "+target[1] {
					t.Errorf("%s: make fuzz takes the target %s for %q", path, target[1], made)
				}
			}

			return
		}

		found[path] = found[path] || decoderCall.MatchString(content)
	})

	table := decoders()

	for path, decodes := range found {
		if decodes && table[path] == "" {
			t.Errorf("%s decodes a text: add a row to decoders with its fuzz target, or with the reason why it needs none", path)
		}
	}

	for path, target := range table {
		if !found[path] {
			t.Errorf("%s decodes nothing: remove its row from decoders", path)
		}

		if strings.Contains(target, ".Fuzz") && !targets[target] {
			t.Errorf("%s: there is no fuzz target %s", path, target)
		}
	}

	if makefile := markdown.Read(t, root, "Makefile"); !strings.Contains(makefile, "'^"+strings.TrimPrefix(madeTarget.String(), "(?m)^")+"'") {
		t.Errorf("make fuzz does not look for %s", madeTarget)
	}
}

// eachGoFile calls visit with the hand-written Go files of the services and of ebctl, and with all test files.
func eachGoFile(t *testing.T, visit func(path, content string)) {
	t.Helper()

	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}

		name, _ := filepath.Rel(root, path)
		tests := strings.HasSuffix(name, "_test.go")

		if entry.IsDir() {
			switch {
			case name != "." && strings.HasPrefix(name, "."), entry.Name() == "generated", entry.Name() == "wire", entry.Name() == "testdata":
				return filepath.SkipDir
			case name == "internal/sandbox", name == "internal/reference", name == "cmd", name == "test/garden", name == "internal/operatorapi/operatorapitest":
				return filepath.SkipDir // they run on a developer's machine only, or only parse flags
			}

			return nil
		}

		if !strings.HasSuffix(name, ".go") || strings.HasPrefix(name, "test/") && !tests {
			return nil
		}

		content, err := os.ReadFile(path)
		if err == nil {
			visit(filepath.ToSlash(name), string(content))
		}

		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
