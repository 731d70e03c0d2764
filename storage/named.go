package storage

import (
	"fmt"
	"reflect"
	"regexp"

	"github.com/jmoiron/sqlx/reflectx"
)

// Named is a statement that changes rows, whose parameters are named like the `db` tags of Argument. It is read once and not at each use.
type Named[Argument any] struct {
	text string
	// fields are where the values of the parameters are in Argument, in the order of the text.
	fields [][]int
}

// NewNamed reads a statement with names such as `:state`. It fails when Argument has no field of a name.
func NewNamed[Argument any](text string) (Named[Argument], error) {
	var names []string

	text = regexp.MustCompile(`:\w+`).ReplaceAllStringFunc(text, func(name string) string {
		names = append(names, name[1:])

		return "?"
	})

	fields := reflectx.NewMapper("db").TraversalsByName(reflect.TypeFor[Argument](), names)

	for i, field := range fields {
		if len(field) == 0 {
			return Named[Argument]{}, fmt.Errorf("a statement names :%s, of which %s has no value", names[i], reflect.TypeFor[Argument]())
		}
	}

	return Named[Argument]{text: text, fields: fields}, nil
}

// Statement is the statement with the values of the argument.
func (n Named[Argument]) Change(argument Argument) Statement {
	value, args := reflect.ValueOf(argument), make([]any, 0, len(n.fields))

	for _, field := range n.fields {
		args = append(args, reflectx.FieldByIndexesReadOnly(value, field).Interface())
	}

	return Statement{Text: n.text, Args: args}
}
