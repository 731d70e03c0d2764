package catalog

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"

	"github.com/environment-broker/environment-broker/internal/environment"
)

// merge returns the sent parameters as an update stores them, so that the stored parameters describe the cluster: without parameters that
// count as absent, and with the fields of oidc that the update omits. given are the decoded sent parameters.
func (given parameters) merge(stored, sent json.RawMessage) json.RawMessage {
	var fields, present map[string]json.RawMessage

	if json.Unmarshal(sent, &fields) != nil || len(fields) == 0 {
		return sent
	}

	// The stored parameters are an object or empty. If they cannot be decoded, the order is treated as having no parameters.
	_ = json.Unmarshal(stored, &present)

	if len(given.Administrators) == 0 {
		delete(fields, paramAdministrators)
	}

	if given.Modules.absent() {
		delete(fields, paramModules)
	}

	if oidc, changes := mergeOIDC(present[paramOIDC], fields[paramOIDC]); changes {
		fields[paramOIDC] = oidc
	} else {
		delete(fields, paramOIDC)
	}

	if encoded, err := json.Marshal(fields); err == nil {
		return encoded
	}

	return sent // cannot happen: the fields were decoded before
}

// withMovedNodes adds to the parameters that an update stores the limits of the autoscaler that clampNodes has moved, so that the stored
// parameters describe the cluster. before is the request before the update, and after the cluster after it. withMovedNodes adds neither limits that
// the stored parameters lack nor limits that updates of the plan cannot contain: platforms may repeat the ordered values of the latter.
func (p *Plan) withMovedNodes(parameters json.RawMessage, before environment.Request, after environment.Cluster) json.RawMessage {
	limits := map[string]struct{ before, after int }{
		paramAutoScalerMin: {before.Cluster.AutoScalerMin, after.AutoScalerMin},
		paramAutoScalerMax: {before.Cluster.AutoScalerMax, after.AutoScalerMax},
	}

	var stored, sent map[string]json.RawMessage
	_, _ = json.Unmarshal(before.Parameters, &stored), json.Unmarshal(parameters, &sent) // both are objects, null or empty

	fields := map[string]json.RawMessage{}

	for name, limit := range limits {
		if stored[name] != nil && sent[name] == nil && limit.before != limit.after && slices.Contains(p.Updates, name) {
			fields[name] = json.RawMessage(strconv.Itoa(limit.after))
		}
	}

	if len(fields) == 0 {
		return parameters
	}

	maps.Copy(fields, sent)

	if encoded, err := json.Marshal(fields); err == nil {
		return encoded
	}

	return parameters // cannot happen: the fields were decoded before
}

// mergeOIDC returns the oidc parameter with the stored fields that the update omits, in the form in which it was sent: an object or a list.
// It returns false if the update changes nothing.
func mergeOIDC(stored, sent json.RawMessage) (json.RawMessage, bool) {
	changes, list := oidcFields(sent)
	if len(changes) == 0 {
		return nil, false
	}

	fields, _ := oidcFields(stored)
	maps.Copy(fields, changes)

	var merged any = fields
	if list {
		merged = map[string]any{"list": []any{fields}}
	}

	encoded, err := json.Marshal(merged)

	return encoded, err == nil
}

// oidcFields returns the fields of the value of an oidc parameter that are not empty, and whether the value is a list. The result is empty,
// but not nil, if there is no value.
func oidcFields(value json.RawMessage) (fields map[string]any, list bool) {
	var object struct {
		List []map[string]any `json:"list"`
	}

	if json.Unmarshal(value, &object) == nil && len(object.List) > 0 {
		fields, list = object.List[0], true
	} else {
		_ = json.Unmarshal(value, &fields)
	}

	kept := map[string]any{}

	for name, field := range fields {
		entries, isList := field.([]any)
		if field != "" && name != "list" && (!isList || len(entries) > 0) {
			kept[name] = field
		}
	}

	return kept, list
}
