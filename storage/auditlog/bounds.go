package auditlog

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// The limits of an entry. Entries are kept for a long time and cannot be removed early, so they must stay small whatever clients send.
// The callers bound their input, too; the store does not rely on that.
const (
	// maxText is the maximum length of a text in bytes. IDs and names of valid requests are shorter.
	maxText = 1024
	// maxReason is the maximum length of the reason that an operator gives, in bytes.
	maxReason = 2048
	// maxValue is the maximum size of a changed field as JSON, in bytes. maxFields is the maximum total size of the fields in
	// Before, and also of those in After. A list of a hundred administrators fits, unless their names are unusually long.
	maxValue  = 32 << 10
	maxFields = 48 << 10
	// ellipsis marks a text that was cut.
	ellipsis = "…"
	// omitted replaces a value that exceeds the limit. encodedOmitted is the same text in JSON.
	omitted        = "(too large for the audit log)"
	encodedOmitted = `"` + omitted + `"`
)

// bounded returns the entry with long texts truncated and oversized values replaced. Bounding twice gives the same result as bounding once.
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

// boundedFields replaces values that exceed maxValue. It adds the fields in the order of their names, and also replaces each value that
// would make the total size exceed maxFields.
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

// cut truncates a text to at most limit bytes. A truncated text ends with an ellipsis.
func cut(text string, limit int) string {
	if len(text) <= limit {
		return text
	}

	return strings.ToValidUTF8(text[:limit-len(ellipsis)], "") + ellipsis
}
