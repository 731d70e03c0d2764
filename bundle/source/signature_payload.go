package source

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/opencontainers/go-digest"
	"github.com/sigstore/sigstore/pkg/signature/payload"
)

const (
	// inToto is the payload type of signatures in Sigstore bundles. predicateSign is the predicate type of signatures. Other
	// predicates make statements about an image without approving it, for example a list of its defects.
	inToto        = "application/vnd.in-toto+json"
	predicateSign = "https://sigstore.dev/cosign/sign/v1"
)

// parsePayload returns the digest of the image that a cosign payload refers to, or an empty digest if the payload is invalid.
func parsePayload(text []byte) digest.Digest {
	var parsed payload.Cosign
	if json.Unmarshal(text, &parsed) != nil || string(bytes.TrimSpace(text)) == "null" {
		return ""
	}

	return digest.Digest(parsed.Image.DigestStr())
}

// envelope is a signed statement in a Sigstore bundle.
type envelope struct {
	PayloadType string `json:"payloadType"`
	Payload     []byte `json:"payload"`
	Signatures  []struct {
		Signature []byte `json:"sig"`
	} `json:"signatures"`
}

// parseSigstoreBundle returns the signature in a Sigstore bundle.
func parseSigstoreBundle(text []byte) signed {
	var bundle struct {
		Envelope envelope `json:"dsseEnvelope"`
	}

	if json.Unmarshal(text, &bundle) != nil || len(bundle.Envelope.Signatures) > maxSignatures {
		return invalidSigned{}
	}

	return bundle.Envelope
}

// by implements signed. The signature covers the payload type and the payload, in the DSSE pre-authentication encoding.
func (e envelope) by(key publicKey) bool {
	encoded := append(fmt.Appendf(nil, "DSSEv1 %d %s %d ", len(e.PayloadType), e.PayloadType, len(e.Payload)), e.Payload...)

	for _, one := range e.Signatures {
		if key.bundle.VerifySignature(bytes.NewReader(one.Signature), bytes.NewReader(encoded)) == nil {
			return true
		}
	}

	return false
}

// about implements signed.
func (e envelope) about(image digest.Digest) bool {
	var statement struct {
		PredicateType string `json:"predicateType"`
		Subject       []struct {
			Digest map[digest.Algorithm]string `json:"digest"`
		} `json:"subject"`
	}

	if e.PayloadType != inToto || json.Unmarshal(e.Payload, &statement) != nil || statement.PredicateType != predicateSign {
		return false
	}

	for _, subject := range statement.Subject {
		if subject.Digest[image.Algorithm()] == image.Encoded() {
			return true
		}
	}

	return false
}
