package gardener_test

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/provisioner/gardener"
)

// hostile is a text from another system with control characters, invalid UTF-8 and many bytes.
var hostile = "quota \x1b[31m\x00\xff\r\n" + strings.Repeat("x", 1_000_000) + "\u202e end"

// checkText fails the test unless the text is one printable line of at most limit characters.
func checkText(t *testing.T, reason, text string, limit int) {
	t.Helper()

	unprintable := func(char rune) bool { return !unicode.IsPrint(char) }
	if text == "" || utf8.RuneCountInString(text) > limit || !utf8.ValidString(text) || strings.ContainsFunc(text, unprintable) {
		t.Errorf("%s: got %d bytes: %.200q", reason, len(text), text)
	}
}

// TestHostileStatus checks the texts about a Shoot whose status contains hostile texts. Operators see them; users see none of them.
func TestHostileStatus(t *testing.T) {
	var problems []gardencorev1beta1.LastError
	for range 50 {
		problems = append(problems, gardencorev1beta1.LastError{Description: hostile, Codes: []gardencorev1beta1.ErrorCode{gardencorev1beta1.ErrorInfraQuotaExceeded}})
	}

	for _, errs := range [][]gardencorev1beta1.LastError{nil, problems} {
		for _, state := range []gardencorev1beta1.LastOperationState{
			gardencorev1beta1.LastOperationStatePending, gardencorev1beta1.LastOperationStateProcessing, gardencorev1beta1.LastOperationStateError,
			gardencorev1beta1.LastOperationStateFailed, gardencorev1beta1.LastOperationStateSucceeded,
		} {
			shoot := &gardencorev1beta1.Shoot{}
			shoot.Status.LastErrors = errs
			shoot.Status.LastOperation = &gardencorev1beta1.LastOperation{State: state, Description: hostile, Type: gardencorev1beta1.LastOperationTypeCreate}

			for _, generation := range []int64{0, 1} { // 1 has not been taken up
				shoot.Generation = generation

				got := gardener.ProgressOf(shoot)
				checkText(t, string(state), got.Message, 2000)

				if got.Err != nil {
					known := failure.Of(got.Err)
					checkText(t, string(state)+" error", known.Text, 255)
					checkText(t, string(state)+" detail", known.Detail, 1000)

					if strings.Contains(known.Text, "xxx") || !strings.Contains(known.Detail, "xxx") {
						t.Errorf("%s: got text %q and detail %q", state, known.Text, known.Detail)
					}
				}
			}
		}
	}
}
