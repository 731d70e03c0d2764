package gardener

import (
	"slices"
	"strings"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/upstream"
)

// Meaning explains an error code in status.lastErrors of a Shoot. docs/operator/shoots.md lists all codes.
type Meaning struct {
	Code gardencorev1beta1.ErrorCode
	// Kind is the kind of the resulting failure. If it is failure.Transient, the Provisioner requests a retry after Gardener has
	// stopped.
	Kind failure.Kind
	// Remedy is a clause that describes how users can fix the cause. It is empty for unknown codes.
	Remedy string
}

// Meanings returns the meanings of all codes that Gardener documents. If a Shoot has several codes, the first of them in this
// list determines the kind of the failure.
func Meanings() []Meaning {
	meaning := func(code gardencorev1beta1.ErrorCode, kind failure.Kind) Meaning {
		return Meaning{Code: code, Kind: kind, Remedy: failure.RemedyOf(string(code))}
	}

	return []Meaning{
		meaning(gardencorev1beta1.ErrorInfraQuotaExceeded, failure.Quota),
		meaning(gardencorev1beta1.ErrorInfraResourcesDepleted, failure.Quota),
		meaning(gardencorev1beta1.ErrorInfraUnauthenticated, failure.Denied),
		meaning(gardencorev1beta1.ErrorInfraUnauthorized, failure.Denied),
		meaning(gardencorev1beta1.ErrorConfigurationProblem, failure.Permanent),
		meaning(gardencorev1beta1.ErrorProblematicWebhook, failure.Permanent),
		meaning(gardencorev1beta1.ErrorCleanupClusterResources, failure.Permanent),
		meaning(gardencorev1beta1.ErrorInfraDependencies, failure.Transient),
		meaning(gardencorev1beta1.ErrorRetryableInfraDependencies, failure.Transient),
		meaning(gardencorev1beta1.ErrorRetryableConfigurationProblem, failure.Transient),
		meaning(gardencorev1beta1.ErrorInfraRateLimitsExceeded, failure.Transient),
	}
}

// meaningsOf returns the distinct meanings of the codes in a Shoot's last errors, in the order of the errors. Unknown codes are
// permanent.
func meaningsOf(shoot *gardencorev1beta1.Shoot) []Meaning {
	var meanings []Meaning

	all := Meanings()

	for _, problem := range shoot.Status.LastErrors {
		for _, code := range problem.Codes {
			// A newer Gardener may report codes that this list does not contain.
			meaning := Meaning{Code: code, Kind: failure.Permanent}
			if i := slices.IndexFunc(all, func(m Meaning) bool { return m.Code == code }); i >= 0 {
				meaning = all[i]
			}

			if !slices.Contains(meanings, meaning) {
				meanings = append(meanings, meaning)
			}
		}
	}

	return meanings
}

// kindOf returns the kind of a failure with these codes. The first of the codes in the order of Meanings determines the kind, but
// transient codes are ignored. If no code remains, kindOf returns failure.Permanent.
func kindOf(meanings []Meaning) failure.Kind {
	for _, meaning := range Meanings() {
		if meaning.Kind != failure.Transient && slices.Contains(meanings, meaning) {
			return meaning.Kind
		}
	}

	return failure.Permanent
}

// passes reports whether all codes are transient, so that a retry can help. It returns false if there are no codes.
func passes(meanings []Meaning) bool {
	return len(meanings) > 0 && !slices.ContainsFunc(meanings, func(m Meaning) bool { return m.Kind != failure.Transient })
}

// reasonOfCodes returns the codes separated by commas, as the reason of a failure. Clients of the API parse this form.
func reasonOfCodes(meanings []Meaning) string {
	texts := make([]string, 0, len(meanings))
	for _, meaning := range meanings {
		texts = append(texts, string(meaning.Code))
	}

	return strings.Join(texts, ", ")
}

// maxProblems is the maximum length of a Shoot's last errors in a message, in characters, without the remedies.
const maxProblems = 1000

// problems returns the descriptions of the last errors with the remedies for their codes. If there are no last errors, it returns the
// description of the last operation. The descriptions are shortened, because extensions and cloud providers write parts of them.
func problems(shoot *gardencorev1beta1.Shoot) string {
	text := descriptions(shoot)

	var remedies []string
	for _, meaning := range meaningsOf(shoot) {
		remedies = append(remedies, strings.TrimSuffix(string(meaning.Code)+": "+meaning.Remedy, ": "))
	}

	if len(remedies) > 0 {
		text += " (" + strings.Join(remedies, "; ") + ")"
	}

	return text
}

// descriptions returns the descriptions of the last errors without the remedies.
func descriptions(shoot *gardencorev1beta1.Shoot) string {
	texts := make([]string, 0, len(shoot.Status.LastErrors))
	for _, problem := range shoot.Status.LastErrors {
		texts = append(texts, upstream.Excerpt(problem.Description))
	}

	if len(texts) == 0 {
		return upstream.Excerpt(shoot.Status.LastOperation.Description)
	}

	return failure.Shorten(strings.Join(texts, "; "), maxProblems)
}
