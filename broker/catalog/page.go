package catalog

import (
	"bytes"
	_ "embed" // page.md.tmpl
	"fmt"
	"slices"
	"strings"
	"text/template"
)

//go:embed page.md.tmpl
var pageTemplate string

// Page renders the catalog as Markdown, for docs/user/plans.md. Templates iterate over maps in the order of the keys, so the same
// files always result in the same page.
func (c *Catalog) Page() ([]byte, error) {
	current := c.current.Load()
	providers := current.plans[0].providers

	parsed, err := template.New("page").Funcs(template.FuncMap{
		"join":     strings.Join,
		"provider": func(name string) string { return providers[name].DisplayName },
		"bullets":  (*Plan).bullets,
		"rows":     (*Plan).rows,
		"zones":    providerFile.zones,
	}).Parse(strings.TrimSuffix(pageTemplate, "\n"))
	if err != nil {
		return nil, fmt.Errorf("parsing the template for the catalog page: %w", err)
	}

	page := &bytes.Buffer{}
	if err := parsed.Execute(page, map[string]any{
		"Plans": current.plans, "Providers": providers, "Platforms": current.platforms.Regions,
	}); err != nil {
		return nil, fmt.Errorf("describing the catalog: %w", err)
	}

	return page.Bytes(), nil
}

// row describes one parameter in the table of a plan's parameters.
type row struct {
	Name, Values, Default, Update string
	Meaning                       any
}

// rows returns a row for each parameter of the plan. The row of an object is followed by rows for its fields.
func (p *Plan) rows() []row {
	var rows []row

	properties := p.properties(append(slices.Clone(p.Parameters), p.Updates...), false)
	for _, name := range p.Parameters {
		first := len(rows)
		rows = appendRows(rows, name, properties[name], slices.Contains(p.Updates, name))

		if slices.Contains(p.Required, name) {
			rows[first].Default = "required"
		}
	}

	for _, name := range p.Updates {
		if !p.takes(name) {
			rows = append(rows, row{Name: name, Values: "time", Update: "only", Meaning: p.schemas[name]["description"]})
		}
	}

	return rows
}

// appendRows appends the row of a parameter and the rows of its fields, in the order of the form.
func appendRows(rows []row, name string, schema any, updatable bool) []row {
	property, ok := schema.(map[string]any)
	if !ok {
		return rows
	}

	update := ""
	if updatable {
		update = "allowed"
	}

	rows = append(rows, row{name, values(property), code(property["default"]), update, property["description"]})

	fields, _ := property["properties"].(map[string]any)
	order, _ := property["_controlsOrder"].([]any)

	for _, field := range order {
		rows = appendRows(rows, fmt.Sprintf("%s.%s", name, field), fields[fmt.Sprint(field)], updatable)
	}

	return rows
}

// values describes the values that a parameter accepts.
func values(property map[string]any) string {
	if options, ok := property["enum"].([]string); ok {
		return "`" + strings.Join(options, "`, `") + "`"
	}

	switch property["type"] {
	case "integer":
		return fmt.Sprintf("%v to %v", property["minimum"], property["maximum"])
	case "boolean":
		return "`true`, `false`"
	case "array":
		return "list"
	case "object":
		return "object"
	}

	if longest, ok := property["maxLength"]; ok {
		return fmt.Sprintf("text of at most %v characters", longest)
	}

	return "text"
}

// code formats a default value as code. It returns an empty string if there is no default.
func code(value any) string {
	if value == nil {
		return ""
	}

	return fmt.Sprintf("`%v`", value)
}
