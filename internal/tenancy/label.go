package tenancy

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/url"

	"k8s.io/apimachinery/pkg/util/validation"
)

const (
	// hashPrefix starts the form of an ID that cannot be a label, so that people recognize it and can compute it.
	hashPrefix = "sha256-"
	// hashBytes is the length of the shortened hash: with 128 bits two IDs do not meet by accident.
	hashBytes = 16
)

// The headers that carry the original ID of a tenant or subaccount beside its label, percent-encoded. Kyma Provisioner ignores
// them.
const (
	HeaderOriginalTenant     = "Original-Tenant"
	HeaderOriginalSubAccount = "Original-Sub-Account"
)

// Label returns the ID itself if it can be the value of a Kubernetes label, and else "sha256-" with the first 32 hexadecimal
// digits of its SHA-256. The result is always the same for one ID, valid as the value of a label and of an HTTP header, and at
// most 63 characters long. Label of a label is the label.
//
// An ID that looks like a hash is not hashed again: the platform assigns the IDs and is trusted not to choose such an ID.
func Label(id string) string {
	if len(validation.IsValidLabelValue(id)) == 0 {
		return id
	}

	hash := sha256.Sum256([]byte(id))

	return hashPrefix + hex.EncodeToString(hash[:hashBytes])
}

// Original returns the ID if its label differs, else "". Both services store and send this value next to the label.
func Original(id string) string {
	if Label(id) == id {
		return ""
	}

	return id
}

// EncodeOriginal returns the value of a header for Original(id), or "".
func EncodeOriginal(id string) string {
	return url.QueryEscape(Original(id))
}

// Read returns the label of the ID in a header, and the original ID or "". A sender passes either the ID itself or, as Label and
// EncodeOriginal do, its label with the original in a second header. An original with another label is ignored: only the label
// decides what the sender may see.
func Read(headers http.Header, name, originalName string) (label, original string) {
	id := headers.Get(name)

	sent, err := url.QueryUnescape(headers.Get(originalName))
	if err == nil && sent != "" && Label(sent) == id {
		id = sent
	}

	return Label(id), Original(id)
}
