package failure_test

import (
	"strings"
	"testing"

	"github.com/environment-broker/environment-broker/internal/failure"
)

func TestExplanation(t *testing.T) {
	t.Parallel()

	const (
		hostile     = "<b>renew your password</b> spec.evil gardenerConfig.evil ERR_EVIL "
		seeTimeline = "; operators find the details in the timeline of the operation"
		quota       = "Gardener reports ERR_INFRA_QUOTA_EXCEEDED: raise the quota of the cloud account or remove unused resources, then retry"
	)

	for name, test := range map[string]struct {
		reason                             string
		component, errorReason, said, want string
	}{
		"unknown":         {"no word comes from outside", hostile, hostile, hostile, "another system reports an error" + seeTimeline},
		"component":       {"the system is named", failure.ComponentDirectorToken, "", hostile, "the token endpoint of Director reports an error" + seeTimeline},
		"code":            {"codes have remedies", failure.ComponentGardener, "ERR_INFRA_QUOTA_EXCEEDED", hostile, quota},
		"code in text":    {"Kyma Provisioner may have no reason", "", "", hostile + "(ERR_INFRA_QUOTA_EXCEEDED)", quota},
		"repeated code":   {"each code appears once", "", "ERR_INFRA_QUOTA_EXCEEDED, ERR_NEW", "ERR_INFRA_QUOTA_EXCEEDED", quota},
		"part of a word":  {"a code is a whole word", "", "", "ERR_INFRA_QUOTA_EXCEEDED_NOW", "another system reports an error" + seeTimeline},
		"field":           {"users can correct their order", failure.ComponentGardenerClient, "Invalid", hostile + `spec.provider.workers[0].machine.type: Unsupported value: "x"`, "Gardener rejects the machine type" + seeTimeline},
		"field below":     {"the closest known field counts", failure.ComponentGardenerClient, "Forbidden", "spec.provider.workers[pool-1].labels.x: no", "Gardener rejects the worker pool" + seeTimeline},
		"fields":          {"all fields are named once", failure.ComponentProvisioner, "err_provisioner_bad_request", "config.clusterConfig.gardenerConfig.region config.gardenerConfig.autoScalerMin gardenerConfig.autoScalerMax", "the Provisioner rejects the number of nodes, the region" + seeTimeline},
		"rejected":        {"unknown fields are not named", failure.ComponentGardenerClient, "BadRequest", hostile, "Gardener rejects the order" + seeTimeline},
		"project quota":   {"the text says more than the reason", failure.ComponentGardenerClient, "Forbidden", hostile + "exceeded quota: x", "a quota of the Gardener project is exhausted: raise it or remove unused clusters, then retry"},
		"timeout":         {"a known reason", failure.ComponentGardener, failure.ReasonTimeout, hostile, "Gardener did not finish in time" + seeTimeline},
		"unavailable":     {"a known reason", failure.ComponentProvisioner, failure.ReasonSystemAway, hostile, "the Provisioner does not respond correctly" + seeTimeline},
		"too many fields": {"a long text takes linear time", failure.ComponentGardenerClient, "Invalid", strings.Repeat("spec.region.x[", 100_000), "Gardener rejects the region" + seeTimeline},
	} {
		if got := failure.Explanation(test.component, test.errorReason, test.said); got != test.want {
			t.Errorf("%s: %s: got %q, want %q", name, test.reason, got, test.want)
		}
	}
}

// TestDetail checks that a detail is bounded, stays with an error that is wrapped, and is not part of the text for users.
func TestDetail(t *testing.T) {
	t.Parallel()

	err := failure.Reported(failure.Permanent, "it failed", failure.ComponentDirector, "R", "a\x00\nb"+strings.Repeat("x", 5000))
	wrapped := failure.Wrap(failure.Permanent, failure.While(err, "doing"), "all failed")

	if runes := len([]rune(err.Detail)); runes != 1000 || !strings.HasPrefix(err.Detail, "a bxxx") {
		t.Errorf("got %d characters: %.20q", runes, err.Detail)
	}

	if wrapped.Detail != err.Detail || wrapped.Text != "all failed" || !strings.HasPrefix(wrapped.ForOperators(), "all failed: a bxxx") ||
		!strings.Contains(wrapped.Error(), "a bxxx") {
		t.Errorf("got %+v", wrapped)
	}

	if err.Text != "it failed; operators find the details in the timeline of the operation" {
		t.Errorf("got text %q", err.Text)
	}
}
