package gardener_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/provisioner/gardener"
)

const (
	newest = 3
	older  = 2
)

// shootAt returns a Shoot whose status describes the given generation. Its last operation is in the given state and has an error
// for each code.
func shootAt(generation int64, state gardencorev1beta1.LastOperationState, codes ...gardencorev1beta1.ErrorCode) *gardencorev1beta1.Shoot {
	shoot := &gardencorev1beta1.Shoot{
		ObjectMeta: metav1.ObjectMeta{Name: "c-first", Generation: newest},
		Status: gardencorev1beta1.ShootStatus{
			ObservedGeneration: generation,
			LastOperation: &gardencorev1beta1.LastOperation{
				Type: gardencorev1beta1.LastOperationTypeCreate, State: state, Progress: 42, Description: "creating DNS",
			},
		},
	}

	for _, code := range codes {
		shoot.Status.LastErrors = append(shoot.Status.LastErrors, gardencorev1beta1.LastError{
			Description: "because of " + string(code), Codes: []gardencorev1beta1.ErrorCode{code},
		})
	}

	return shoot
}

func TestProgressInEachState(t *testing.T) {
	fresh := shootAt(newest, "")
	fresh.Status.LastOperation = nil

	cases := map[string]struct {
		reason string
		shoot  *gardencorev1beta1.Shoot
		want   gardener.Progress
	}{
		"new": {
			"Gardener has not seen the Shoot yet", fresh,
			gardener.Progress{Message: "Gardener has not started to reconcile the cluster yet"},
		},
		"earlier success": {
			"a success of the previous generation says nothing about the change", shootAt(older, gardencorev1beta1.LastOperationStateSucceeded),
			gardener.Progress{Message: "Gardener has not started to reconcile the cluster yet"},
		},
		"earlier failure": {
			"the change may fix it", shootAt(older, gardencorev1beta1.LastOperationStateFailed, gardencorev1beta1.ErrorConfigurationProblem),
			gardener.Progress{Message: "Gardener has not started to reconcile the cluster yet"},
		},
		"succeeded": {
			"the cluster is ready", shootAt(newest, gardencorev1beta1.LastOperationStateSucceeded),
			gardener.Progress{Done: true, Message: "creating DNS"},
		},
		"processing": {
			"the message shows the progress", shootAt(newest, gardencorev1beta1.LastOperationStateProcessing),
			gardener.Progress{Message: "Gardener is at 42%: creating DNS"},
		},
		"pending": {
			"Gardener has queued it", shootAt(newest, gardencorev1beta1.LastOperationStatePending),
			gardener.Progress{Message: "Gardener is at 42%: creating DNS"},
		},
		"aborted": {
			"Gardener resumes it", shootAt(newest, gardencorev1beta1.LastOperationStateAborted),
			gardener.Progress{Message: "Gardener is at 42%: creating DNS"},
		},
		"unknown": {
			"a state of a later version may pass", shootAt(newest, "Dreaming"),
			gardener.Progress{Message: "Gardener is at 42%: creating DNS"},
		},
		"error": {
			"Gardener retries after any error", shootAt(newest, gardencorev1beta1.LastOperationStateError, gardencorev1beta1.ErrorInfraQuotaExceeded),
			gardener.Progress{
				Codes: "ERR_INFRA_QUOTA_EXCEEDED",
				Message: "Gardener is at 42% and retries: because of ERR_INFRA_QUOTA_EXCEEDED (ERR_INFRA_QUOTA_EXCEEDED: " +
					"raise the quota of the cloud account or remove unused resources, then retry)",
			},
		},
		"again": {
			"an earlier error may still be the obstacle", shootAt(newest, gardencorev1beta1.LastOperationStateProcessing, "ERR_NEW"),
			gardener.Progress{Codes: "ERR_NEW", Message: "Gardener is at 42%: creating DNS; earlier problems: because of ERR_NEW (ERR_NEW)"},
		},
		"not scheduled": {
			"the message says why no Seed accepts the Shoot", shootAt(older, gardencorev1beta1.LastOperationStatePending),
			gardener.Progress{Message: "Gardener has not started to reconcile the cluster yet: creating DNS"},
		},
		"error without text": {
			"the message is never empty", shootAt(newest, gardencorev1beta1.LastOperationStateError),
			gardener.Progress{Message: "Gardener is at 42% and retries: creating DNS"},
		},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, gardener.ProgressOf(c.shoot)); diff != "" {
				t.Errorf("%s: -want +got:\n%s", c.reason, diff)
			}
		})
	}
}

func TestFailureOfEachCode(t *testing.T) {
	type codes = []gardencorev1beta1.ErrorCode

	cases := map[string]struct {
		reason string
		codes  codes
		want   failure.Kind // empty for a transient failure
	}{
		"rate limit":                {"the cause is temporary", codes{gardencorev1beta1.ErrorInfraRateLimitsExceeded}, ""},
		"retryable dependency":      {"the cause is temporary", codes{gardencorev1beta1.ErrorRetryableInfraDependencies}, ""},
		"retryable configuration":   {"the cause is temporary", codes{gardencorev1beta1.ErrorRetryableConfigurationProblem}, ""},
		"all of them":               {"all codes are transient", codes{gardencorev1beta1.ErrorInfraRateLimitsExceeded, gardencorev1beta1.ErrorRetryableInfraDependencies}, ""},
		"quota":                     {"the quota of the account is exhausted", codes{gardencorev1beta1.ErrorInfraQuotaExceeded}, failure.Quota},
		"depleted":                  {"the provider has no capacity", codes{gardencorev1beta1.ErrorInfraResourcesDepleted}, failure.Quota},
		"unauthenticated":           {"the credentials are wrong", codes{gardencorev1beta1.ErrorInfraUnauthenticated}, failure.Denied},
		"unauthorized":              {"the credentials lack a permission", codes{gardencorev1beta1.ErrorInfraUnauthorized}, failure.Denied},
		"dependencies":              {"a resource in use may become free", codes{gardencorev1beta1.ErrorInfraDependencies}, ""},
		"configuration":             {"an operator must act", codes{gardencorev1beta1.ErrorConfigurationProblem}, failure.Permanent},
		"cleanup":                   {"an operator must act", codes{gardencorev1beta1.ErrorCleanupClusterResources}, failure.Permanent},
		"webhook":                   {"an operator must act", codes{gardencorev1beta1.ErrorProblematicWebhook}, failure.Permanent},
		"future code":               {"an unknown code is permanent", codes{"ERR_NEW"}, failure.Permanent},
		"none":                      {"an unknown code is permanent", nil, failure.Permanent},
		"transient and quota":       {"one permanent code is enough", codes{gardencorev1beta1.ErrorInfraRateLimitsExceeded, gardencorev1beta1.ErrorInfraQuotaExceeded}, failure.Quota},
		"quota and configuration":   {"the quota has the clearest remedy", codes{gardencorev1beta1.ErrorConfigurationProblem, gardencorev1beta1.ErrorInfraQuotaExceeded}, failure.Quota},
		"unknown and quota":         {"a known code has a remedy", codes{"ERR_NEW", gardencorev1beta1.ErrorInfraQuotaExceeded}, failure.Quota},
		"unknown and rate limit":    {"an unknown code is permanent", codes{"ERR_NEW", gardencorev1beta1.ErrorInfraRateLimitsExceeded}, failure.Permanent},
		"quota and unauthenticated": {"the quota has the clearest remedy", codes{gardencorev1beta1.ErrorInfraUnauthenticated, gardencorev1beta1.ErrorInfraQuotaExceeded}, failure.Quota},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := gardener.ProgressOf(shootAt(newest, gardencorev1beta1.LastOperationStateFailed, c.codes...))
			if got.Done || got.Stopped != (c.want == "") || (got.Err == nil) != (c.want == "") {
				t.Fatalf("%s: got %+v", c.reason, got)
			}

			for _, code := range c.codes {
				if !strings.Contains(got.Message, "because of "+string(code)) {
					t.Errorf("%s: %q does not contain %s", c.reason, got.Message, code)
				}
			}

			if got.Err == nil {
				return
			}

			known := failure.Of(got.Err)
			if known.Kind != c.want || known.Component != failure.ComponentGardener || !strings.Contains(known.Text, `"c-first"`) {
				t.Errorf("%s: got %s of %s: %q", c.reason, known.Kind, known.Component, known.Text)
			}

			if want := reasonOf(c.codes); known.Reason != want {
				t.Errorf("%s: reason %q, want %q", c.reason, known.Reason, want)
			}
		})
	}
}

// reasonOf returns the reason of a failure with these codes, in the form that clients parse.
func reasonOf(codes []gardencorev1beta1.ErrorCode) string {
	if len(codes) == 0 {
		return "Failed"
	}

	texts := []string{}
	for _, code := range codes {
		texts = append(texts, string(code))
	}

	return strings.Join(texts, ", ")
}

func TestCodeAppearsOnce(t *testing.T) {
	shoot := shootAt(newest, gardencorev1beta1.LastOperationStateFailed,
		gardencorev1beta1.ErrorInfraQuotaExceeded, gardencorev1beta1.ErrorInfraQuotaExceeded)

	if got := failure.Of(gardener.ProgressOf(shoot).Err).Reason; got != "ERR_INFRA_QUOTA_EXCEEDED" {
		t.Errorf("got reason %q", got)
	}
}

// TestEachCodeHasRemedy checks that the failure message for each code contains the remedy, and that docs/operator/shoots.md
// lists both.
func TestEachCodeHasRemedy(t *testing.T) {
	page, err := os.ReadFile("../../docs/operator/shoots.md")
	if err != nil {
		t.Fatal(err)
	}

	for _, meaning := range gardener.Meanings() {
		got := gardener.ProgressOf(shootAt(newest, gardencorev1beta1.LastOperationStateFailed, meaning.Code)).Message
		if want := fmt.Sprintf("(%s: %s)", meaning.Code, meaning.Remedy); !strings.Contains(got, want) {
			t.Errorf("%q does not say %q", got, want)
		}

		text := failure.Of(gardener.ProgressOf(shootAt(newest, gardencorev1beta1.LastOperationStateFailed, meaning.Code)).Err).Text
		if meaning.Kind != failure.Transient && !strings.Contains(text, string(meaning.Code)+": "+meaning.Remedy) {
			t.Errorf("users do not read the remedy: %q", text)
		}

		// The broker explains the error again, with the text of the Provisioner as the detail.
		if err := gardener.ProgressOf(shootAt(newest, gardencorev1beta1.LastOperationStateFailed, meaning.Code)).Err; err != nil && meaning.Remedy != "" {
			again := failure.Reported(meaning.Kind, "", failure.ComponentGardener, string(meaning.Code), err.Error())
			if shown := again.Error(); strings.Count(shown, meaning.Remedy) != 1 {
				t.Errorf("operators read the remedy repeatedly: %q", shown)
			}
		}

		if row := fmt.Sprintf("| `%s` | %s | %s |", meaning.Code, meaning.Kind, meaning.Remedy); !strings.Contains(string(page), row) {
			t.Errorf("the page has no row %s", row)
		}
	}
}

func TestFailureNamesAction(t *testing.T) {
	for operation, want := range map[gardencorev1beta1.LastOperationType]string{
		gardencorev1beta1.LastOperationTypeCreate:    `Gardener could not create the cluster "c-first"`,
		gardencorev1beta1.LastOperationTypeReconcile: `Gardener could not change the cluster "c-first"`,
		gardencorev1beta1.LastOperationTypeDelete:    `Gardener could not delete the cluster "c-first"`,
	} {
		shoot := shootAt(newest, gardencorev1beta1.LastOperationStateFailed)
		shoot.Status.LastOperation.Type = operation

		if got := failure.Of(gardener.ProgressOf(shoot).Err).Text; !strings.HasPrefix(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestRetryIsNotRepeatedTooSoon(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	shoot := shootAt(newest, gardencorev1beta1.LastOperationStateFailed, gardencorev1beta1.ErrorInfraRateLimitsExceeded)
	shoot.Status.LastOperation.LastUpdateTime = metav1.NewTime(at)

	progress := gardener.ProgressOf(shoot)
	if progress.Rested(at.Add(59*time.Second)) || !progress.Rested(at.Add(time.Minute)) {
		t.Error("no retry is requested one minute after the failure")
	}
}
