package auditlog

import (
	"encoding/base64"
	"testing"

	"github.com/environment-broker/environment-broker/internal/audit/chain"
)

// FuzzChainCursor decodes arbitrary cursors from clients. A valid cursor must keep its meaning when it is encoded again.
func FuzzChainCursor(f *testing.F) {
	encoded := func(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }

	for _, seed := range []string{
		"", "?", encoded(""), encoded("\n\n7"), encoded("\n\n-7"), encoded("\n\n99999999999999999999"), encoded("entry\n2030-01-02T03:04:05Z\ne1"),
		encoded("entry\n0000-01-01T00:00:00Z\ne1"), encoded("operation\n\n"), encoded("other\n\n"), encoded("entry\n\n\x00"),
	} {
		f.Add(seed)
	}

	f.Fuzz(func(t *testing.T, cursor string) {
		source, after, err := parseChainCursor(cursor)
		if err != nil {
			return
		}

		if source != "" && source != chain.SourceEntry && source != chain.SourceOperation {
			t.Errorf("%q has the source %q", cursor, source)
		}

		if again, same, err := parseChainCursor(chainCursor(source, after)); again != source || same != after || err != nil {
			t.Errorf("%q is %q, %+v, and then %q, %+v, %v", cursor, source, after, again, same, err)
		}
	})
}
