package gardener

import (
	"slices"
	"strings"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"

	"github.com/environment-broker/environment-broker/internal/failure"
)

// Meaning is what a code in the last errors of a Shoot means. The page docs/operator/shoots.md has them all.
type Meaning struct {
	Code gardencorev1beta1.ErrorCode
	// Kind is failure.Transient for what is tried again, also when Gardener itself has given up.
	Kind failure.Kind
	// Remedy says what people are to do, as a clause.
	Remedy string
}

// Meanings are the meanings of all codes. Where a Shoot has several, the first that is found says of which kind the failure is.
func Meanings() []Meaning {
	return []Meaning{
		{
			gardencorev1beta1.ErrorInfraQuotaExceeded, failure.Quota,
			"raise the quota of the cloud account or remove what is not needed in it, then retry",
		},
		{
			gardencorev1beta1.ErrorInfraResourcesDepleted, failure.Quota,
			"the provider has none left: order another machine type or other zones, or retry later",
		},
		{
			gardencorev1beta1.ErrorInfraUnauthenticated, failure.Denied,
			"the cloud account does not accept the credentials: renew those behind the credentials binding, then retry",
		},
		{
			gardencorev1beta1.ErrorInfraUnauthorized, failure.Denied,
			"the credentials lack a right in the cloud account: grant it, then retry",
		},
		{
			gardencorev1beta1.ErrorConfigurationProblem, failure.Permanent,
			"something in the cluster or in its order is wrong: correct what the text names, then retry",
		},
		{
			gardencorev1beta1.ErrorProblematicWebhook, failure.Permanent,
			"a webhook in the cluster stands in the way of its system components: correct or remove it, then retry",
		},
		{
			gardencorev1beta1.ErrorCleanupClusterResources, failure.Permanent,
			"objects in the cluster are not removed: see whose finalizers they wait for",
		},
		{
			gardencorev1beta1.ErrorInfraDependencies, failure.Transient,
			"something in the cloud account is still in use: remove what depends on it",
		},
		{
			gardencorev1beta1.ErrorRetryableInfraDependencies, failure.Transient,
			"something in the cloud account is still in use: that passes, or remove what depends on it",
		},
		{
			gardencorev1beta1.ErrorRetryableConfigurationProblem, failure.Transient,
			"something in the cluster is not as it has to be: that passes, or correct what the text names",
		},
		{
			gardencorev1beta1.ErrorInfraRateLimitsExceeded, failure.Transient,
			"too many calls to the provider: that passes",
		},
	}
}

// found are the meanings of the codes in the last errors of a Shoot, each once. A code that is not known stays until somebody acts.
func found(shoot *gardencorev1beta1.Shoot) []Meaning {
	var told []Meaning

	known := Meanings()

	for _, problem := range shoot.Status.LastErrors {
		for _, code := range problem.Codes {
			meaning := Meaning{Code: code, Kind: failure.Permanent}
			if i := slices.IndexFunc(known, func(m Meaning) bool { return m.Code == code }); i >= 0 {
				meaning = known[i]
			}

			if !slices.Contains(told, meaning) {
				told = append(told, meaning)
			}
		}
	}

	return told
}

// kindOf says of which kind a failure is that does not pass.
func kindOf(met []Meaning) failure.Kind {
	for _, meaning := range Meanings() {
		if meaning.Kind != failure.Transient && slices.Contains(met, meaning) {
			return meaning.Kind
		}
	}

	return failure.Permanent
}

// passes reports whether everything that was met passes without the help of whoever ordered the cluster.
func passes(met []Meaning) bool {
	return len(met) > 0 && !slices.ContainsFunc(met, func(m Meaning) bool { return m.Kind != failure.Transient })
}

// reasonOfCodes is what clients that know Gardener's codes look for.
func reasonOfCodes(met []Meaning) string {
	texts := make([]string, 0, len(met))
	for _, meaning := range met {
		texts = append(texts, string(meaning.Code))
	}

	return strings.Join(texts, ", ")
}

// problems are the texts of the last errors, each code with what to do about it; or the description of the last operation.
func problems(shoot *gardencorev1beta1.Shoot) string {
	texts := make([]string, 0, len(shoot.Status.LastErrors))
	for _, problem := range shoot.Status.LastErrors {
		texts = append(texts, problem.Description)
	}

	if len(texts) == 0 {
		return shoot.Status.LastOperation.Description
	}

	said := strings.Join(texts, "; ")

	met := found(shoot)
	remedies := make([]string, 0, len(met))

	for _, meaning := range met {
		remedy := string(meaning.Code)
		if meaning.Remedy != "" {
			remedy += ": " + meaning.Remedy
		}

		remedies = append(remedies, remedy)
	}

	if len(remedies) == 0 {
		return said
	}

	return said + " (" + strings.Join(remedies, "; ") + ")"
}
