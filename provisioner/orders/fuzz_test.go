package orders_test

import (
	"testing"

	"github.com/environment-broker/environment-broker/provisioner/orders"
)

// FuzzChangesCursor decodes arbitrary cursors of the feed of changes. A valid one keeps its meaning when it is encoded again.
func FuzzChangesCursor(f *testing.F) {
	for _, seed := range []string{"", "AAAAAAAAAAA", "AAAAAAAAAAAAAAAA", "?", "_____________________w"} {
		f.Add(seed)
	}

	f.Fuzz(func(t *testing.T, text string) {
		first, err := orders.Recoded(text)
		if err != nil {
			return
		}

		if second, err := orders.Recoded(first); err != nil || second != first {
			t.Errorf("%q is %q, and then %q, %v", text, first, second, err)
		}
	})
}
