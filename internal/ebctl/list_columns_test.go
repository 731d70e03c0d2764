package ebctl

import (
	"reflect"
	"strings"
	"testing"

	"github.com/environment-broker/environment-broker/internal/operatorapi"
)

// TestColumnsExist checks that each column of the CSV format is a field of the operator API. Any other column would always be
// empty.
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

// TestEveryColumnOfInstancesHasAFilter checks that 'ebctl instance list' can select instances by each column of its output.
func TestEveryColumnOfInstancesHasAFilter(t *testing.T) {
	t.Parallel()

	filters := map[string][]string{
		"name": {"name", "search"}, "servicePlanName": {"plan"}, "servicePlanID": {"plan"}, "provider": {"provider"}, "region": {"region"},
		"subAccountRegion": {"region"}, "platform": {"platform"}, "globalAccountID": {"account"}, "subAccountID": {"subaccount"},
		"subscriptionAccountID": {"subscription-account"}, "runtimeID": {"runtime"}, "shootName": {"shoot"}, "instanceID": {"search"},
		"maintenanceVersion": {"maintenance-version"}, "kubernetesVersion": {"kubernetes-version"}, "kymaVersion": {"kyma-version"},
		"deletionProtection": {"protected"}, "labels": {"label"}, "dashboardURL": {"dashboard-url"},
		"status.state": {"state"}, "status.suspended": {"suspended"}, "status.createdAt": {"since", "until"},
		"status.modifiedAt": {"updated-since", "updated-before"}, "status.expiresAt": {"expires-before"}, "status.expiredAt": {"expired"},
		"status.lastOperation.operationID": {"operation"}, "status.lastOperation.kind": {"kind"}, "status.lastOperation.state": {"operation-state"},
		"status.lastOperation.problem.message": {"problem"}, "status.deletedAt": {"leftovers"}, "leftover.id": {"leftovers"},
	}
	flags := newInstanceListCommand(&session{}).Flags()

	for _, column := range runtimeColumns() {
		if len(filters[column]) == 0 {
			t.Errorf("the column %s has no filter", column)
		}

		for _, name := range filters[column] {
			if flags.Lookup(name) == nil {
				t.Errorf("the column %s needs the flag --%s", column, name)
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
