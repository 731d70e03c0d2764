package hostile_test

import (
	"fmt"
	"strings"

	"github.com/environment-broker/environment-broker/test/harness"
)

// list returns format count times, separated by commas. It replaces %d in format with the index of the repetition.
func list(count int, format string) string {
	var all strings.Builder

	for i := range count {
		if i > 0 {
			all.WriteByte(',')
		}

		if strings.Contains(format, "%d") {
			fmt.Fprintf(&all, format, i)
		} else {
			all.WriteString(format)
		}
	}

	return all.String()
}

// values returns JSON values that are expensive to decode, compare, validate or repeat, by name.
func values() map[string]string {
	return map[string]string{
		"huge exponents":   "[" + list(400, "1e999000") + "]",
		"panic exponents":  "[" + list(30, "1e1000001") + "]",
		"tiny exponents":   "[" + list(400, "1e-999000") + "]",
		"long number":      strings.Repeat("9", 500_000),
		"a million zeros":  "[" + strings.Repeat("0,", 500_000) + "0]", // a million bytes; the body has at most 1 MiB
		"9,000 zeros":      "[" + list(9000, "0") + "]",
		"deep lists":       strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000),
		"deep objects":     strings.Repeat(`{"a":`, 50_000) + "1" + strings.Repeat("}", 50_000),
		"unfinished lists": strings.Repeat("[", 500_000),
		"many fields":      "{" + list(40_000, `"f%d":0`) + "}",
		"4,000 fields":     "{" + list(4000, `"f%d":0`) + "}",
		"duplicate fields": "{" + list(1000, `"a":0`) + "}",
		"long text":        `"` + strings.Repeat("x", 900_000) + `"`,
		"escaped text":     `"` + strings.Repeat(`\u0000`, 100_000) + `"`,
		"invisible text":   `"` + strings.Repeat("\u200b", 100_000) + `"`,
		"long field":       `{"` + strings.Repeat("x", 500_000) + `":1}`,
		"lone surrogates":  `"` + strings.Repeat(`\ud800`, 100_000) + `"`,
	}
}

// bodies returns hostile request bodies, by name: each value on its own, and as the value of each field of an otherwise valid order.
func bodies() map[string]string {
	all := map[string]string{"empty": "", "not JSON": strings.Repeat("\xff", 1000), "trailing": `{}` + strings.Repeat("{}", 1000)}

	for name, value := range values() {
		all[name] = value

		for _, field := range []string{"service_id", "plan_id", "context", "parameters", "maintenance_info", "bind_resource", "predecessor_binding_id", "reason", "step"} {
			order := `"service_id":"` + harness.ServiceID + `","plan_id":"` + harness.PlanAWS + `","organization_guid":"o","space_guid":"s",`
			order = strings.Replace(order, `"`+field+`":`, `"replaced":`, 1)
			all[name+" as "+field] = "{" + order + `"` + field + `":` + value + "}"
		}

		all[name+" as administrators"] = `{"service_id":"` + harness.ServiceID + `","plan_id":"` + harness.PlanAWS +
			`","organization_guid":"o","space_guid":"s","parameters":{"administrators":` + value + "}}"
	}

	return all
}

// segments returns hostile IDs, percent-encoded, by name.
func segments() map[string]string {
	return map[string]string{
		"long":          strings.Repeat("i", 300),
		"very long":     strings.Repeat("i", 50_000),
		"long encoded":  strings.Repeat("%69", 15_000),
		"NUL":           "a%00b",
		"line break":    "a%0D%0AX-Header:b",
		"zero width":    "a%E2%80%8Bb",
		"right to left": "a%E2%80%AEb",
		"not UTF-8":     "%ff",
	}
}

// literals returns hostile values for GraphQL arguments, by name.
func literals() map[string]string {
	return map[string]string{
		"long text":          `"` + strings.Repeat("x", 200_000) + `"`,
		"quotes":             `"` + strings.Repeat(`\"`, 50_000) + `"`,
		"invisible text":     `"a\u200bb"`,
		"NUL":                `"a\u0000b"`,
		"huge exponent":      "1e999000",
		"long number":        strings.Repeat("9", 100_000),
		"zeros":              "[" + strings.Repeat("0 ", 4000) + "]",
		"deep list":          strings.Repeat("[", 4000) + strings.Repeat("]", 4000),
		"deep object":        strings.Repeat("{a:", 3000) + "1" + strings.Repeat("}", 3000),
		"many fields":        "{" + list(3000, "f%d:1") + "}",
		"duplicate fields":   "{" + list(3000, "a:1") + "}",
		"long enum":          strings.Repeat("E", 100_000),
		"undefined variable": "$" + strings.Repeat("v", 60),
		"null":               "null",
	}
}

// selections returns hostile selections of a GraphQL field, by name.
func selections() map[string]string {
	return map[string]string{
		"none":               "",
		"same field":         "{" + strings.Repeat("__typename ", 9000) + "}",
		"1,000 same fields":  "{" + strings.Repeat("__typename ", 990) + "}",
		"unknown fields":     "{" + strings.ReplaceAll(list(900, "f%d"), ",", " ") + "}",
		"thousands of names": "{" + strings.ReplaceAll(list(3000, "a%d:__typename"), ",", " ") + "}",
		"unknown directives": "{ __typename " + strings.Repeat("@a ", 4000) + "}",
		"200 directives":     "{ __typename " + strings.Repeat("@a ", 200) + "}",
		"depth":              strings.Repeat("{ a ", 3000) + strings.Repeat("}", 3000),
		"long alias":         "{ " + strings.Repeat("a", 100_000) + ": __typename }",
		"unknown fragments":  "{" + strings.ReplaceAll(list(900, "...f%d"), ",", " ") + "}",
	}
}
