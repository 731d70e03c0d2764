package service_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"

	"github.com/environment-broker/environment-broker/provisioner/service"
)

// example is a request on the API page with its expected response.
type example struct {
	query     string
	variables string
	answer    string
}

// TestPageOfTheAPI sends the examples on the API page in order and compares the responses with those on the page. The IDs on the
// page are placeholders for the IDs of this run. A text on the page that ends with … matches any text with the same beginning.
func TestPageOfTheAPI(t *testing.T) {
	f := start(t, 100*time.Millisecond, func(config *service.Config) {
		config.Kyma.ReleasesPath = filepath.Join("..", "..", "resources", "releases")
	})
	reader := pageReader{fixture: f, ids: map[string]string{}}

	examples := examplesOf(t, filepath.Join("..", "..", "docs", "user", "provisioner-api.md"))
	for _, example := range examples {
		reader.try(example)
	}

	for _, field := range fieldsOfTheSchema(t) {
		if !slices.ContainsFunc(examples, func(e example) bool { return strings.Contains(e.query, "  "+field) }) {
			t.Errorf("the page has no example of %s", field)
		}
	}
}

// examplesOf returns the examples of a page, which are in fenced code blocks.
func examplesOf(t *testing.T, path string) []example {
	t.Helper()

	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}

	var examples []example

	for _, block := range regexp.MustCompile("(?s)\n```([a-z ]+)\n(.*?)\n```\n").FindAllStringSubmatch(string(page), -1) {
		if block[1] == "graphql" {
			examples = append(examples, example{query: block[2], variables: "{}"})

			continue
		}

		last := &examples[len(examples)-1]

		switch block[1] {
		case "json variables":
			last.variables = block[2]
		case "json answer":
			last.answer = block[2]
		default:
			t.Fatalf("unknown language %q of a block", block[1])
		}
	}

	return examples
}

// pageReader sends the examples of a page in sequence.
type pageReader struct {
	fixture

	// ids maps the IDs on the page to the IDs of this run.
	ids map[string]string
}

func (r pageReader) try(example example) {
	r.Helper()

	variables := example.variables
	for page, here := range r.ids {
		variables = strings.ReplaceAll(variables, page, here)
	}

	got := r.ask(example.query, variables)

	var want any
	if err := json.Unmarshal([]byte(example.answer), &want); err != nil {
		r.Fatalf("decoding the page's response to %s: %v", example.query, err)
	}

	if difference := r.compare("", want, got); difference != "" {
		r.Fatalf("%s\nthe response differs from the page: %s", example.query, difference)
	}

	for _, id := range r.started(got) {
		r.succeeded(id)
	}
}

func (r pageReader) ask(query, variables string) any {
	r.Helper()

	body, err := json.Marshal(map[string]any{"query": query, "variables": json.RawMessage(variables)})
	if err != nil {
		r.Fatal(err)
	}

	request, err := http.NewRequestWithContext(r.Context(), http.MethodPost, r.url, bytes.NewReader(body))
	if err != nil {
		r.Fatal(err)
	}

	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("tenant", tenant)

	response, err := http.DefaultClient.Do(request)
	if err != nil {
		r.Fatal(err)
	}
	defer response.Body.Close()

	text, err := io.ReadAll(response.Body)
	if err != nil {
		r.Fatal(err)
	}

	var answer any
	if err := json.Unmarshal(text, &answer); err != nil {
		r.Fatalf("%s: %v", text, err)
	}

	return answer
}

// started returns the IDs of the operations in the response to a mutation.
func (pageReader) started(answer any) []string {
	body, _ := answer.(map[string]any)
	data, _ := body["data"].(map[string]any)

	var ids []string

	for _, result := range data {
		switch result := result.(type) {
		case string:
			ids = append(ids, result)
		case map[string]any:
			if id, isText := result["id"].(string); isText {
				ids = append(ids, id)
			}
		}
	}

	return ids
}

// compare returns the first difference between the response and the page, or "". It records the IDs of this run.
func (r pageReader) compare(at string, want, got any) string {
	switch want := want.(type) {
	case map[string]any:
		object, isObject := got.(map[string]any)
		if !isObject || len(object) != len(want) {
			return fmt.Sprintf("%s: want %v, got %v", at, want, got)
		}

		for name, value := range want {
			if difference := r.compare(at+"."+name, value, object[name]); difference != "" {
				return difference
			}
		}
	case []any:
		list, isList := got.([]any)
		if !isList || len(list) != len(want) {
			return fmt.Sprintf("%s: want %v, got %v", at, want, got)
		}

		for i, value := range want {
			if difference := r.compare(fmt.Sprintf("%s[%d]", at, i), value, list[i]); difference != "" {
				return difference
			}
		}
	case string:
		if text, isText := got.(string); !isText || !r.same(want, text) {
			return fmt.Sprintf("%s: want %q, got %q", at, want, got)
		}
	default:
		if want != got {
			return fmt.Sprintf("%s: want %v, got %v", at, want, got)
		}
	}

	return ""
}

func (r pageReader) same(want, got string) bool {
	if begin, shortened := strings.CutSuffix(want, "…"); shortened {
		return got != "" && strings.HasPrefix(got, begin)
	}

	id := regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)
	if !id.MatchString(want) || !id.MatchString(got) {
		return want == got
	}

	if known, met := r.ids[want]; met {
		return known == got
	}

	r.ids[want] = got

	return true
}

// fieldsOfTheSchema returns the names of all mutations and queries.
func fieldsOfTheSchema(t *testing.T) []string {
	t.Helper()

	text, err := os.ReadFile(filepath.Join("..", "schema.graphql"))
	if err != nil {
		t.Fatal(err)
	}

	schema, err := gqlparser.LoadSchema(&ast.Source{Name: "schema.graphql", Input: string(text)})
	if err != nil {
		t.Fatal(err)
	}

	var fields []string

	for _, field := range slices.Concat(schema.Mutation.Fields, schema.Query.Fields) {
		if !strings.HasPrefix(field.Name, "__") {
			fields = append(fields, field.Name)
		}
	}

	return fields
}
