package console

import (
	"context"
	"os/exec"
	"testing"
)

// TestQuoted checks that a shell reads a quoted text as one unchanged word.
func TestQuoted(t *testing.T) {
	t.Parallel()

	for _, text := range []string{"", "sandbox", "http://127.0.0.1:8080", "o'hara", "$(touch x)", "a b", "`x`;\\", "a\nb", "*", "~", "#", "ä"} {
		output, err := exec.CommandContext(context.WithoutCancel(t.Context()), "sh", "-c", "printf %s "+quoted(text)).Output()
		if err != nil || string(output) != text {
			t.Errorf("the shell reads %s as %q (%v), want %q", quoted(text), output, err, text)
		}
	}
}
