package manifest

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// placeholder is what a value is filled in for. A second dollar before it says that it is meant as it stands.
var placeholder = regexp.MustCompile(`\$?\$\{([^{}]*)\}`)

// key is how the name of a value looks.
var key = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$`)

// IsKey tells whether a value can have this name.
func IsKey(name string) bool { return key.MatchString(name) }

// fill puts the values into all texts below the node.
func fill(node *yaml.Node, value func(key string) (string, bool)) error {
	if node.Kind == yaml.ScalarNode {
		return fillText(node, value)
	}
	for i, child := range node.Content {
		if name := node.Kind == yaml.MappingNode && i%2 == 0; name {
			continue
		}
		if err := fill(child, value); err != nil {
			return err
		}
	}
	return nil
}

func fillText(node *yaml.Node, value func(key string) (string, bool)) error {
	var wrong error
	used := false
	filled := placeholder.ReplaceAllStringFunc(node.Value, func(found string) string {
		if strings.HasPrefix(found, "$$") {
			return found[1:]
		}
		name := found[len("${") : len(found)-len("}")]
		if !IsKey(name) {
			wrong = fmt.Errorf("line %d: %q is not the name of a value; write $%s if the text itself is meant", node.Line, name, found)
			return found
		}
		text, known := value(name)
		if !known {
			wrong = fmt.Errorf("line %d: there is no value for %s", node.Line, found)
		}
		used = true
		return text
	})
	if wrong != nil {
		return wrong
	}
	if plain := node.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) == 0; used && plain {
		node.Tag = tagOf(filled)
	}
	node.Value = filled
	return nil
}

// tagOf says what a text without quotes is. It knows fewer forms than YAML does: no value turns into a date or into nothing.
func tagOf(text string) string {
	if _, err := strconv.ParseInt(text, 10, 64); err == nil {
		return "!!int"
	}
	if text == "true" || text == "false" {
		return "!!bool"
	}
	return "!!str"
}
