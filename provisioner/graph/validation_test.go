package graph_test

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"net/http"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/provisioner/operation"
	"github.com/environment-broker/environment-broker/provisioner/orders"
	"github.com/environment-broker/environment-broker/provisioner/spec"
	"github.com/environment-broker/environment-broker/provisioner/validation"
)

// TestRulesOverHTTP breaks each rule once. The response must have HTTP status 200, error_code 400, a message, and the paths of
// the invalid fields.
func TestRulesOverHTTP(t *testing.T) {
	t.Parallel()

	present := orderOf(t, provisionOf(pools(poolFields()), nil))
	server := startServer(t, runtimes{
		upgradeShoot: func(_ orders.Caller, _ string, upgrade spec.Upgrade) (operation.Status, error) {
			_, err := validation.UpgradeShoot(*present.ClusterConfig, upgrade)

			return operation.Status{}, err
		},
	})

	var told []string

	for mutation, rules := range map[string]map[string]rule{
		`mutation ($config: ProvisionRuntimeInput!) { result: provisionRuntime(config: $config) { id } }`:     provisionRules(),
		`mutation ($config: UpgradeShootInput!) { result: upgradeShoot(id: "rt-1", config: $config) { id } }`: upgradeRules(),
	} {
		for name, tc := range rules {
			status, body := post(t, server, exchange{
				query: mutation, variables: map[string]any{"config": tc.config}, headers: map[string]string{"tenant": "acme"},
			})

			var answer struct {
				Errors []struct {
					Message    string
					Extensions map[string]any
				}
			}
			if err := json.Unmarshal([]byte(body), &answer); err != nil || len(answer.Errors) != 1 || status != http.StatusOK {
				t.Fatalf("%s: %d %s, %v", name, status, body, err)
			}

			got := answer.Errors[0]
			if !strings.Contains(got.Message, tc.want) || strings.Contains(got.Message, "%!") {
				t.Errorf("%s: %s: want %q in the text, got %q", name, tc.reason, tc.want, got.Message)
			}

			want := map[string]any{
				"error_code": 400.0, "error_reason": "err_provisioner_bad_request", "error_component": "provisioner",
				"error_fields": anys(tc.fields),
			}
			if diff := cmp.Diff(want, got.Extensions); diff != "" {
				t.Errorf("%s: %s: -want +got\n%s", name, tc.reason, diff)
			}

			told = append(told, got.Message)
		}
	}

	for _, text := range rulesInSource(t) {
		form := regexp.MustCompile(regexp.MustCompile(`%[a-z]`).ReplaceAllString(regexp.QuoteMeta(text), ".+"))
		if !slices.ContainsFunc(told, form.MatchString) {
			t.Errorf("no case breaks the rule %q", text)
		}
	}
}

// TestMissingVariableField omits a field that the schema requires. The request is then invalid GraphQL, and the response must
// name the field.
func TestMissingVariableField(t *testing.T) {
	t.Parallel()

	status, got := post(t, startServer(t, runtimes{}), exchange{
		query:     `mutation ($config: ProvisionRuntimeInput!) { result: provisionRuntime(config: $config) { id } }`,
		variables: map[string]any{"config": provisionOf(fields{"region": nil}, nil)}, headers: map[string]string{"tenant": "acme"},
	})

	want := `"error_fields":["config.clusterConfig.gardenerConfig.region"]`
	if status != http.StatusUnprocessableEntity || !strings.Contains(got, want) || !strings.Contains(got, `"error_code":400`) {
		t.Errorf("want 422 with %s, got %d %s", want, status, got)
	}
}

// orderOf decodes the JSON of an order as the server does.
func orderOf(t *testing.T, config fields) spec.Runtime {
	t.Helper()

	text, err := json.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}

	var read spec.Runtime
	if err := json.Unmarshal(text, &read); err != nil {
		t.Fatal(err)
	}

	return read
}

func anys(texts []string) []any {
	all := make([]any, len(texts))
	for i, text := range texts {
		all[i] = text
	}

	return all
}

// rulesInSource returns the message formats of all rules in package validation, except "is missing", because the schema already
// requires those fields.
func rulesInSource(t *testing.T) []string {
	t.Helper()

	files, err := filepath.Glob(filepath.Join("..", "validation", "*.go"))
	if err != nil {
		t.Fatal(err)
	}

	var texts []string

	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}

		source, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}

		ast.Inspect(source, func(node ast.Node) bool {
			call, isCall := node.(*ast.CallExpr)
			if !isCall || len(call.Args) < 2 {
				return true
			}

			method, isMethod := call.Fun.(*ast.SelectorExpr)
			literal, isText := call.Args[1].(*ast.BasicLit)

			if isMethod && isText && method.Sel.Name == "add" && literal.Value != `"is missing"` {
				text, err := strconv.Unquote(literal.Value)
				if err != nil {
					t.Fatal(err)
				}

				texts = append(texts, text)
			}

			return true
		})
	}

	if len(texts) == 0 {
		t.Fatal("no rule was found")
	}

	return texts
}
