package catalog

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Page describes the catalog for users, in Markdown.
func (c *Catalog) Page() []byte {
	current := c.current.Load()
	page := &bytes.Buffer{}

	for _, plan := range current.plans {
		plan.describe(page)
	}

	fmt.Fprint(page, "\n## Regions and machine types\n")

	providers := current.plans[0].providers
	for _, name := range slices.Sorted(maps.Keys(providers)) {
		providers[name].describe(page)
	}

	current.platforms.describe(page, providers)

	return page.Bytes()
}

// describe writes the section of a plan with a table of its parameters.
func (p *Plan) describe(page *bytes.Buffer) {
	fmt.Fprintf(page, "\n## %s\n\n%s\n\n", p.Name, p.Description)

	for _, bullet := range p.Bullets {
		fmt.Fprintf(page, "- %s\n", bullet)
	}

	fmt.Fprintf(page, "- Id `%s`\n", p.ID)

	if len(p.BecomesPlans) > 0 {
		fmt.Fprintf(page, "- Can be changed to %s\n", strings.Join(p.BecomesPlans, ", "))
	}

	fmt.Fprint(page, "\n| parameter | values | default | update | meaning |\n| --- | --- | --- | --- | --- |\n")

	properties := p.properties(p.Parameters, false)
	for _, name := range p.Parameters {
		row(page, name, properties[name], slices.Contains(p.Updates, name), slices.Contains(p.Required, name))
	}
}

// row describes a parameter, followed by the fields of an object.
func row(page *bytes.Buffer, name string, schema any, later, required bool) {
	property, ok := schema.(map[string]any)
	if !ok {
		return
	}

	standard := code(property["default"])
	if required {
		standard = "required"
	}

	change := ""
	if later {
		change = "allowed"
	}

	fmt.Fprintf(page, "| %s | %s | %s | %s | %s |\n", name, values(property), standard, change, property["description"])

	fields, _ := property["properties"].(map[string]any)
	order, _ := property["_controlsOrder"].([]string)

	for _, field := range order {
		row(page, name+"."+field, fields[field], later, false)
	}
}

// values describes the possible values of a parameter.
func values(property map[string]any) string {
	if options, ok := property["enum"].([]string); ok {
		listed := make([]string, 0, len(options))
		for _, option := range options {
			listed = append(listed, code(option))
		}

		return strings.Join(listed, ", ")
	}

	switch property["type"] {
	case "integer":
		return fmt.Sprintf("%v to %v", property["minimum"], property["maximum"])
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

// code formats a value as JSON. Nil is empty.
func code(value any) string {
	if value == nil {
		return ""
	}

	if text, ok := value.(string); ok {
		return "`" + text + "`"
	}

	encoded, err := json.Marshal(value)
	if err != nil {
		return ""
	}

	return "`" + string(encoded) + "`"
}

// describe writes the tables of the provider's regions and machine types.
func (p providerFile) describe(page *bytes.Buffer) {
	fmt.Fprintf(page, "\n### %s\n\n| region | where | zones |\n| --- | --- | --- |\n", p.DisplayName)

	for _, name := range slices.Sorted(maps.Keys(p.Regions)) {
		fmt.Fprintf(page, "| %s | %s | %s |\n", name, p.Regions[name].DisplayName, strings.Join(p.zones(name, ""), ", "))
	}

	fmt.Fprint(page, "\n| machine type | size |\n| --- | --- |\n")

	for _, name := range slices.Sorted(maps.Keys(p.Machines)) {
		fmt.Fprintf(page, "| %s | %s |\n", name, p.Machines[name])
	}
}

// describe writes the table of platform regions with their defaults and restrictions.
func (p platformsFile) describe(page *bytes.Buffer, providers map[string]providerFile) {
	fmt.Fprint(page, "\n## Regions of the platform\n\nThe region in the path of the request decides the defaults of an order, and which regions are allowed.\n\n"+
		"| platform region | default | allowed | access |\n| --- | --- | --- | --- |\n")

	for _, name := range slices.Sorted(maps.Keys(p.Regions)) {
		platform := p.Regions[name]

		var usual, only []string
		for _, provider := range slices.Sorted(maps.Keys(platform.Defaults)) {
			usual = append(usual, platform.Defaults[provider]+" on "+providers[provider].DisplayName)
		}

		for _, provider := range slices.Sorted(maps.Keys(platform.Only)) {
			only = append(only, strings.Join(platform.Only[provider], ", ")+" on "+providers[provider].DisplayName)
		}

		access := ""
		if platform.EUAccess {
			access = "from the European Union"
		}

		fmt.Fprintf(page, "| %s | %s | %s | %s |\n", name, strings.Join(usual, "; "), strings.Join(only, "; "), access)
	}
}
