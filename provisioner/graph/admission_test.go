package graph_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/99designs/gqlgen/graphql/introspection"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/parser"
	"github.com/vektah/gqlparser/v2/validator"
	"github.com/vektah/gqlparser/v2/validator/rules"

	"github.com/environment-broker/environment-broker/provisioner/graph"
)

// conflicts maps requests to the number of errors about fields that have the same name in the response.
func conflicts() map[string]int {
	return map[string]int{
		`{ a: __typename a: __typename }`: 0,
		`{ runtimeStatus(id: "a") { lastOperationStatus { id } } runtimeStatus(id: "a") { lastOperationStatus { state } } }`:                                                 0,
		`{ runtimeStatus(id: "a") { __typename } runtimeStatus(id: "b") { __typename } }`:                                                                                    1,
		`{ runtimeStatus(id: "a") { lastOperationStatus { a: id } } runtimeStatus(id: "a") { lastOperationStatus { a: state } } }`:                                           1,
		`query($v: String!) { a: runtimeStatus(id: $v) { __typename } a: runtimeStatus(id: "v") { __typename } }`:                                                            1,
		`{ ...f ...g } fragment f on Query { a: runtimeStatus(id: "a") { __typename } } fragment g on Query { a: __typename }`:                                               1,
		`{ ...f } fragment f on Query { runtimeStatus(id: "a") { ...g } } fragment g on RuntimeStatus { a: lastOperationStatus { id } a: hibernationStatus { hibernated } }`: 1,
		`{ ... on Query { a: __typename } ... on Query { ... { a: runtimes { totalCount } } } }`:                                                                             1,
		config("... on GCPProviderConfig { z: zones } ... on OpenStackProviderConfig { z: zones }"):                                                                          0,
		config("... on GCPProviderConfig { z: zones z: __typename }"):                                                                                                        1,
		config("z: __typename ... on GCPProviderConfig { z: zones }"):                                                                                                        1,
		config("... on GCPProviderConfig { z: zones } z: __typename"):                                                                                                        1,
		`{ runtimes(first: 1, after: "a") { totalCount } runtimes(after: "a", first: 1) { totalCount } }`:                                                                    0,
		`{ runtimes(first: 1) { totalCount } runtimes(first: 1, after: "a") { totalCount } }`:                                                                                1,
		`{ runtimes(filter: {id: "a"}) { totalCount } runtimes(filter: {id: "b"}) { totalCount } }`:                                                                          1,
	}
}

// config returns a request for fields of the union ProviderSpecificConfig.
func config(fields string) string {
	return `{ runtimeStatus(id: "a") { runtimeConfiguration { clusterConfig { providerSpecificConfig { ` + fields + ` } } } } }`
}

func TestConflictingFields(t *testing.T) {
	t.Parallel()

	admit := graph.Admit()

	for query, want := range conflicts() {
		_, problems := admit(t.Context(), query)
		if len(problems) != want || want > 0 && !strings.Contains(problems[0].Message, `conflict because`) {
			t.Errorf("%s: want %d conflicts, got %v", query, want, problems)
		}
	}
}

// FuzzAdmission compares the validation with the rules of the GraphQL specification. Each valid request within the limits must be
// admitted; each invalid one must be rejected, with at most 21 errors and short names.
func FuzzAdmission(f *testing.F) {
	for query := range conflicts() {
		f.Add(query)
	}

	for _, query := range hostileQueries() {
		if len(query) < 2000 {
			f.Add(query)
		}
	}

	f.Add(introspection.Query)
	f.Add(provision)
	f.Add(askOperation)
	f.Add(`query q($v: String = "x", $w: [Int!]) @skip(if: true) { a: runtimeStatus(id: $v) @include(if: false) { __typename } }`)
	f.Add(`{ ...f } fragment f on Query { ...f }`)

	schema, admit := graph.Schema(), graph.Admit()

	f.Fuzz(func(t *testing.T, query string) {
		if len(query) > 20_000 {
			return
		}

		_, problems := admit(context.Background(), query)
		if len(problems) > 21 {
			t.Errorf("%d errors", len(problems))
		}

		// The rules of the library take quadratic time, so they check short requests only.
		document, err := parser.ParseQueryWithTokenLimit(&ast.Source{Input: query}, 500)
		if err != nil || len(document.Operations) == 0 {
			if len(problems) == 0 && err != nil && !strings.Contains(err.Error(), "token limit") {
				t.Errorf("a request that cannot be parsed was admitted: %v", err)
			}

			return
		}

		valid := len(validator.ValidateWithRules(schema, document, rules.NewDefaultRules())) == 0

		switch {
		case !valid && len(problems) == 0:
			t.Error("an invalid request was admitted")
		case valid && len(problems) > 0 && !limitExceeded(problems[0].Message):
			t.Errorf("a valid request was rejected: %v", problems)
		}
	})
}

// limitExceeded reports whether the error is about a limit, or about a conflict that the library overlooks: it considers all lists
// and all objects as equal.
func limitExceeded(message string) bool {
	for _, text := range []string{"the request selects more than", "the request nests", "the request has", "they have differing arguments"} {
		if strings.Contains(message, text) {
			return true
		}
	}

	return false
}

// TestWork counts allocations, which are proportional to the work for a request. Each hostile request costs at most as many as a valid one
// at the same limits.
func TestWork(t *testing.T) {
	admit := graph.Admit()
	allocations := func(query string) float64 {
		count := 0

		return testing.AllocsPerRun(2, func() {
			count++

			_, _ = admit(context.Background(), fmt.Sprintf("%s #%d", query, count)) // a comment, so that the request is not cached
		})
	}

	largest := allocations("{" + many(900, `a%d: runtimeStatus(id: "rt") @include(if: true) { __typename }`) + "}")

	for name, query := range hostileQueries() {
		if got := allocations(query); got > 5*largest {
			t.Errorf("%s: %v allocations, the largest valid request has %v", name, got, largest)
		}
	}
}
