package auditlog_test

import (
	"encoding/base64"
	"errors"
	"testing"

	"github.com/environment-broker/environment-broker/storage/auditlog"
)

// TestHostileChainCursors reads pages with cursors that clients invented. Such a cursor must select rows or be invalid, but must not cause
// a database error.
func TestHostileChainCursors(t *testing.T) {
	onEach(t, 0, func(b fixture) {
		b.fillChain()

		for _, text := range []string{
			"\n\n-9223372036854775808", "\n\n9223372036854775807", "entry\n0000-01-01T00:00:00Z\ne", "entry\n9999-12-31T23:59:59.999999999Z\ne",
			"operation\n2030-01-02T03:04:05+23:59\no", "entry\n0001-01-01T00:00:00+23:59\n", "entry\n9999-12-31T23:59:59-23:59\n", "operation\nx\n", "entry\n\n",
		} {
			_, err := b.entries.ChainPage(b.Context(), base64.RawURLEncoding.EncodeToString([]byte(text)), 10)
			if err != nil && !errors.Is(err, auditlog.ErrChainCursor) {
				b.Errorf("%q: want a page or an invalid cursor, got %v", text, err)
			}
		}
	})
}
