package auditlog

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// The limits of an entry. Entries are kept for a long time and cannot be removed early, so they must stay small regardless of what
// clients send. Callers also limit their input, but the store does not rely on that.
const (
	// maxText is the maximum length of a string in bytes. IDs and names of valid requests are shorter.
	maxText = 1024
	// maxReason is the maximum length of the reason that an operator states, in bytes.
	maxReason = 2048
	// maxValue is the maximum size of the value of a changed field, as JSON, in bytes. maxFields is the maximum total size of the
	// values in Before, and separately of those in After. A list of a hundred administrators fits, unless their names are unusually
	// long.
	maxValue  = 32 << 10
	maxFields = 48 << 10
	// ellipsis marks the end of a truncated string.
	ellipsis = "…"
	// omitted replaces a value that is too large. encodedOmitted is the same string encoded as JSON.
	omitted        = "(too large for the audit log)"
	encodedOmitted = `"` + omitted + `"`
)

// bounded returns the entry with long strings truncated and large values replaced. Calling bounded on the result returns the same
// entry.
func (e Entry) bounded() Entry {
	for _, text := range []*string{
		&e.ID, &e.Action, &e.InstanceID, &e.OperationID, &e.Account, &e.BindingID, &e.Code,
		&e.By.User, &e.By.Means, &e.By.Platform, &e.By.Originator, &e.By.Address, &e.By.RequestID,
	} {
		*text = cut(*text, maxText)
	}

	e.Reason = cut(e.Reason, maxReason)

	e.Before, e.After = boundedFields(e.Before), boundedFields(e.After)

	return e
}

// boundedFields replaces each value that exceeds maxValue. It then replaces further values, in the order of the field names, if
// they would make the total size exceed maxFields.
func boundedFields(fields Fields) Fields {
	if len(fields) == 0 {
		return fields
	}

	bounded, size := Fields{}, 0

	for _, name := range slices.Sorted(maps.Keys(fields)) {
		value := fields[name]

		encoded, err := json.Marshal(value)
		if err == nil && len(encoded) > maxValue {
			value, encoded = omitted, []byte(encodedOmitted)
		}

		if size+len(name)+len(encoded) > maxFields {
			value, encoded = omitted, []byte(encodedOmitted)
		}

		if size += len(name) + len(encoded); size > 2*maxFields || len(name) > maxText {
			break // not reached: callers choose few, short names
		}

		bounded[name] = value // Encode returns the error of a value that cannot be encoded
	}

	return bounded
}

// cut truncates a string to at most limit bytes. A truncated string ends with an ellipsis.
func cut(text string, limit int) string {
	if len(text) <= limit {
		return text
	}

	return strings.ToValidUTF8(text[:limit-len(ellipsis)], "") + ellipsis
}
