package tenancy

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/url"

	"k8s.io/apimachinery/pkg/util/validation"
)

const (
	// hashPrefix is the prefix of labels that are hashes. It shows how the label was computed from the ID.
	hashPrefix = "sha256-"
	// hashBytes is the length of the truncated hash. With 128 bits, accidental collisions are practically impossible.
	hashBytes = 16
)

// The headers that contain the percent-encoded original IDs of a tenant and a subaccount. The labels of the tenant and subaccount
// are sent in other headers. The Kyma Provisioner ignores the headers with the original IDs.
const (
	HeaderOriginalTenant     = "Original-Tenant"
	HeaderOriginalSubAccount = "Original-Sub-Account"
)

// Label returns the ID unchanged if it is a valid value of a Kubernetes label. Otherwise, it returns "sha256-" followed by the
// first 32 hexadecimal digits of the ID's SHA-256 hash. The result has at most 63 characters and is valid in labels and HTTP
// headers. Label is deterministic and idempotent: the label of a label is the same label.
//
// An ID that looks like a hashed label is not hashed again: the platform assigns the IDs and is trusted not to assign such an
// ID.
func Label(id string) string {
	if len(validation.IsValidLabelValue(id)) == 0 {
		return id
	}

	hash := sha256.Sum256([]byte(id))

	return hashPrefix + hex.EncodeToString(hash[:hashBytes])
}

// Original returns the ID if it differs from its label, and otherwise an empty string. Both services store and send this value
// together with the label.
func Original(id string) string {
	if Label(id) == id {
		return ""
	}

	return id
}

// EncodeOriginal returns Original(id) encoded as a header value.
func EncodeOriginal(id string) string {
	return url.QueryEscape(Original(id))
}

// Read returns the label and the original ID from two headers of a request, in the form of Label and Original. The header called
// name contains the ID or its label; if it contains the label, the header called originalName can contain the original ID. If the
// label of the original ID is not the one in the first header, Read ignores the original ID, because only the label determines
// which objects the sender can access.
func Read(headers http.Header, name, originalName string) (label, original string) {
	id := headers.Get(name)

	sent, err := url.QueryUnescape(headers.Get(originalName))
	if err == nil && sent != "" && Label(sent) == id {
		id = sent
	}

	return Label(id), Original(id)
}
