package ebctl

import (
	"reflect"
	"strings"
	"testing"

	"github.com/environment-broker/environment-broker/internal/operatorapi"
)

// TestColumnsExist checks that each column of the format csv is a field of the operator API: others would be empty for ever.
func TestColumnsExist(t *testing.T) {
	t.Parallel()

	for of, columns := range map[reflect.Type][]string{
		reflect.TypeFor[operatorapi.Runtime]():                runtimeColumns(),
		reflect.TypeFor[operatorapi.Operation]():              operationColumns(),
		reflect.TypeFor[operatorapi.Orchestration]():          orchestrationColumns(),
		reflect.TypeFor[operatorapi.OrchestrationOperation](): targetColumns(),
		reflect.TypeFor[operatorapi.AuditEntry]():             auditColumns(),
		reflect.TypeFor[operatorapi.Credential]():             credentialColumns(),
	} {
		for _, column := range columns {
			if !hasField(of, strings.Split(column, ".")) {
				t.Errorf("%s has no field %s", of, column)
			}
		}
	}
}

// hasField reports whether the JSON form of a type has the field at the path.
func hasField(of reflect.Type, path []string) bool {
	if len(path) == 0 {
		return true
	}

	for of.Kind() == reflect.Pointer {
		of = of.Elem()
	}

	if of.Kind() != reflect.Struct {
		return false
	}

	for field := range of.Fields() {
		if name, _, _ := strings.Cut(field.Tag.Get("json"), ","); name == path[0] {
			return hasField(field.Type, path[1:])
		}
	}

	return false
}
