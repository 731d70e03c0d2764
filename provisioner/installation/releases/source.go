package releases

import (
	"encoding/hex"
	"errors"
	"net/url"
	"strings"
)

const (
	// sourceScheme is the prefix of every sourceURL. It distinguishes a sourceURL from a release's component in Component.Source.
	sourceScheme = "https://"
	// sourceDigest precedes the digest in the URL fragment of a source.
	sourceDigest = "sha256="
	// digestLength is the number of hexadecimal digits of a digest.
	digestLength = 64
)

// source is the address of a component's manifests outside the release. The digest pins the content, so that it is the same for every
// call and every replica.
type source struct {
	// address is the URL without its fragment.
	address string
	host    string
	// digest is the SHA-256 digest of the file in lower-case hexadecimal.
	digest string
}

// parseSource parses a source such as https://example.com/manifests.tgz#sha256=… . It rejects addresses with credentials or a
// query, because addresses appear in responses and messages. Its error has no subject: the caller writes the name of the field in
// front of it.
func parseSource(text string) (source, error) {
	parsed, err := url.Parse(text)

	switch {
	case err != nil || !strings.HasPrefix(text, sourceScheme) || parsed.Hostname() == "" || parsed.Path == "" || parsed.Path == "/":
		return source{}, errors.New("must have the form https://HOST/FILE#sha256=DIGEST")
	case parsed.User != nil || parsed.RawQuery != "" || parsed.ForceQuery:
		return source{}, errors.New("must contain neither credentials nor a query")
	}

	digest, pinned := strings.CutPrefix(parsed.Fragment, sourceDigest)
	if raw, err := hex.DecodeString(digest); !pinned || err != nil || len(digest) != digestLength || len(raw) == 0 || digest != strings.ToLower(digest) {
		return source{}, errors.New("must end with the digest of the file, as #sha256= and 64 lower-case hexadecimal digits; sha256sum prints them")
	}

	parsed.Fragment, parsed.RawFragment = "", ""

	return source{address: parsed.String(), host: parsed.Host, digest: digest}, nil
}
