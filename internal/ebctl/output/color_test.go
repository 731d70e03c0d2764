package output_test

import (
	"testing"

	"github.com/environment-broker/environment-broker/internal/ebctl/output"
)

func TestColored(t *testing.T) {
	t.Parallel()

	const green, yellow, red, plain = "\x1b[32m", "\x1b[33m", "\x1b[31m", "\x1b[0m"

	for text, want := range map[string]string{
		"ID    STATE      \nop-1  succeeded  2m\n":     "ID    STATE      \nop-1  " + green + "succeeded" + plain + "  2m\n",
		"one  failed  ok\n":                            "one  " + red + "failed" + plain + "  " + green + "ok" + plain + "\n",
		"Operation  op-1, in progress\n":               "Operation  op-1, " + yellow + "in progress" + plain + "\n",
		"MESSAGE  the call failed because it is late":  "MESSAGE  the call failed because it is late",
		"The operation failed after 2m. It is pending": "The operation failed after 2m. It is pending",
		"failed-cluster  not-ok":                       "failed-cluster  not-ok",
	} {
		if got := output.Colored(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}
