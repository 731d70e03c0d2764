package views_test

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/a-h/templ"

	"github.com/environment-broker/environment-broker/broker/console/views"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
)

// script is a text that would add an element or an attribute to a page that does not escape it.
const script = `"'><xss-probe></xss-probe><img src=x onerror=alert(1)> data-xss="1" javascript:alert(1)`

// filled returns a value whose texts are all script, and whose lists and maps have entries.
func filled[T any]() T {
	var value T

	fill(reflect.ValueOf(&value).Elem(), 0)

	return value
}

// fill fills a value recursively. The maximum depth ends the recursion of types that contain themselves.
func fill(value reflect.Value, depth int) {
	const maxDepth = 8

	if depth > maxDepth || !value.CanSet() {
		return
	}

	switch value.Kind() {
	case reflect.String:
		value.SetString(script)
	case reflect.Bool:
		value.SetBool(true)
	case reflect.Int, reflect.Int64:
		value.SetInt(3)
	case reflect.Float64:
		value.SetFloat(3)
	case reflect.Pointer:
		value.Set(reflect.New(value.Type().Elem()))
		fill(value.Elem(), depth+1)
	case reflect.Slice:
		value.Set(reflect.MakeSlice(value.Type(), 2, 2))

		for i := range 2 {
			fill(value.Index(i), depth+1)
		}
	case reflect.Map:
		key, element := reflect.New(value.Type().Key()).Elem(), reflect.New(value.Type().Elem()).Elem()
		fill(key, depth+1)
		fill(element, depth+1)
		value.Set(reflect.MakeMap(value.Type()))
		value.SetMapIndex(key, element)
	case reflect.Interface:
		if value.NumMethod() == 0 {
			value.Set(reflect.ValueOf(script))
		}
	case reflect.Struct:
		if value.Type() == reflect.TypeFor[time.Time]() {
			value.Set(reflect.ValueOf(time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)))

			return
		}

		for _, field := range value.Fields() {
			fill(field, depth+1)
		}
	}
}

// pages returns all pages by the names of their templates, with scripts as texts.
func pages() map[string]templ.Component {
	return map[string]templ.Component{
		"AuditPage":          views.AuditPage(filled[views.Audit]()),
		"VerificationPage":   views.VerificationPage(filled[views.Verification]()),
		"OrchestrationsPage": views.OrchestrationsPage(filled[views.Orchestrations]()),
		"OrchestrationPage":  views.OrchestrationPage(filled[views.Orchestration]()),
		"SystemsPage":        views.SystemsPage(filled[operatorapi.Status](), time.Now()),
		"CatalogPage":        views.CatalogPage(filled[views.Catalog]()),
		"OrderPage":          views.OrderPage(filled[views.Order]()),
		"BundlesPage":        views.BundlesPage(filled[views.Bundles]()),
		"BundlePage":         views.BundlePage(filled[views.Bundle]()),
		"LoginPage":          views.LoginPage(filled[views.Login]()),
		"TenantInstancePage": views.TenantInstancePage(filled[views.TenantInstance]()),
		"TenantHomePage":     views.TenantHomePage(filled[views.TenantHome]()),
		"InstancePage":       views.InstancePage(filled[views.Instance]()),
		"InstancesPage":      views.InstancesPage(filled[views.Instances]()),
		"OperationPage":      views.OperationPage(filled[views.Operation]()),
		"OperationsPage":     views.OperationsPage(filled[views.Operations]()),
		"OverviewPage":       views.OverviewPage(filled[views.Overview]()),
		"Message":            views.Message(script, script, script, script),
	}
}

// TestEveryTextIsEscaped renders each page with a script in every text of its data, including texts that come from other systems and
// are not stored.
func TestEveryTextIsEscaped(t *testing.T) {
	shown := pages()

	for _, name := range pageNames(t) {
		if shown[name] == nil {
			t.Errorf("the test does not render %s", name)
		}
	}

	for name, body := range shown {
		page := views.Page{Title: script, Section: script, Live: script, Shell: filled[views.Shell](), Body: body}

		var html strings.Builder
		if err := views.Layout(page).Render(t.Context(), &html); err != nil {
			t.Fatal(err)
		}

		for _, pattern := range []string{`<xss-probe`, `<img src=x`, `(?s)<[^>"]*("[^"]*"[^>"]*)*\sdata-xss=`, `(href|action|src)="\s*javascript:`} {
			if found := regexp.MustCompile(pattern).FindString(html.String()); found != "" {
				t.Errorf("%s contains %q", name, found[max(0, len(found)-200):])
			}
		}

		if count := strings.Count(html.String(), "&lt;xss-probe&gt;"); count < 3 {
			t.Errorf("%s shows %d of the texts", name, count)
		}
	}
}

// pageNames returns the names of all templates of pages.
func pageNames(t *testing.T) []string {
	t.Helper()

	files, err := filepath.Glob("*.templ")
	if err != nil || len(files) == 0 {
		t.Fatalf("found %d templates: %v", len(files), err)
	}

	names := []string{}

	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}

		for _, match := range regexp.MustCompile(`(?m)^templ ([A-Z]\w*Page)\(`).FindAllStringSubmatch(string(content), -1) {
			names = append(names, match[1])
		}
	}

	slices.Sort(names)

	return names
}
