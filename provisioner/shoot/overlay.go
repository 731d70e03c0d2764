package shoot

import (
	"encoding/json"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
)

// gatewayField is the one part of the providers' configurations that an order takes away by not naming it.
const gatewayField = "natGateway"

// keepConfig lays what an order decides of a provider's configuration over the present one, which others may have extended: the API
// server sees such a configuration as one value and knows no owners of its parts.
func keepConfig(wanted, had *runtime.RawExtension) {
	if wanted == nil || had == nil {
		return
	}

	var ours, theirs any
	if json.Unmarshal(wanted.Raw, &ours) != nil || json.Unmarshal(had.Raw, &theirs) != nil {
		return // what cannot be read is replaced
	}

	if text, err := json.Marshal(overlay(theirs, ours)); err == nil {
		wanted.Raw = text
	}
}

// overlay merges objects key by key, and lists of objects by the names of these. Of anything else the wanted one counts.
func overlay(had, wanted any) any {
	switch wanted := wanted.(type) {
	case map[string]any:
		before, _ := had.(map[string]any)

		merged := map[string]any{}
		maps.Copy(merged, before)
		delete(merged, gatewayField)

		for key, value := range wanted {
			merged[key] = overlay(before[key], value)
		}

		return merged
	case []any:
		before, _ := had.([]any)
		merged := make([]any, 0, len(wanted))

		for _, item := range wanted {
			merged = append(merged, overlay(sameName(before, item), item))
		}

		return merged
	default:
		return wanted
	}
}

// sameName returns the object of the list that has the name of the item, or nil.
func sameName(list []any, item any) any {
	nameOf := func(value any) any {
		object, _ := value.(map[string]any)

		return object["name"]
	}

	at := slices.IndexFunc(list, func(other any) bool { return nameOf(item) != nil && nameOf(other) == nameOf(item) })
	if at < 0 {
		return nil
	}

	return list[at]
}
