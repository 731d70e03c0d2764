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
		seeTimeline = "; operators can find the details in the timeline of the operation"
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
		"kymaVersion":     {"users choose the version", failure.ComponentProvisioner, failure.ReasonInternal, `kymaConfig.version: there is no release "` + hostile + `"; the releases are 1.0.0`, "the Provisioner has no Kyma release of the ordered version: choose another version"},
		"overload":        {"an admission plugin of Gardener has too many requests; an operator would look for a missing permission in vain", failure.ComponentGardenerClient, "Forbidden", `credentialsbindings "a" is forbidden: aws provider secret sanity check failed: client rate limiter Wait returned an error: ` + hostile, "Gardener is overloaded and does not process the request at the moment"},
		"no overload":     {"only Gardener forbids requests for lack of capacity", failure.ComponentDirector, "", "context deadline exceeded", "Director reports an error" + seeTimeline},
		"permission":      {"the text says more than the reason", failure.ComponentGardenerClient, "Forbidden", `shoots "a" is forbidden: User "u" cannot get resource "shoots"`, "the credentials of the service lack a permission in Gardener: an operator must grant it"},
		"timeout":         {"a known reason", failure.ComponentGardener, failure.ReasonTimeout, hostile, "Gardener did not finish in time" + seeTimeline},
		"unavailable":     {"a known reason", failure.ComponentProvisioner, failure.ReasonSystemUnavailable, hostile, "the Provisioner does not respond correctly" + seeTimeline},
		"module":          {"users know their modules", failure.ComponentRuntime, failure.ReasonInternal, "component 2 of 5 (monitoring): the API server of the cluster rejects Service " + hostile, "component monitoring (2 of 5): the cluster rejects one of its objects" + seeTimeline},
		"taken":           {"the first cause counts", failure.ComponentRuntime, "", "component 2 of 5 (a-1): ConfigMap a/b exists already and was not installed by BundleDeployment x", "component a-1 (2 of 5): one of its objects already exists and was installed by somebody else" + seeTimeline},
		"new cause":       {"another cause is in the timeline", failure.ComponentRuntime, "", "component 2 of 5 (a): " + hostile, "component a (2 of 5): it cannot be installed" + seeTimeline},
		"hostile module":  {"only names of modules are quoted", failure.ComponentRuntime, "", "component 2 of 5 (" + hostile + "): " + hostile, "the cluster reports an error" + seeTimeline},
		"too many fields": {"a long text takes linear time", failure.ComponentGardenerClient, "Invalid", strings.Repeat("spec.region.x[", 100_000), "Gardener rejects the region" + seeTimeline},
	} {
		if got := failure.Explanation(test.component, test.errorReason, test.said); got != test.want {
			t.Errorf("%s: %s: got %q, want %q", name, test.reason, got, test.want)
		}
	}
}

// TestForbidden has a case for each cause of HTTP 403 that the API server of Gardener is known to report.
func TestForbidden(t *testing.T) {
	t.Parallel()

	const prefix = `credentialsbindings.security.gardener.cloud "pool-007" is forbidden: `

	for name, test := range map[string]struct {
		reason, said string
		want         failure.Kind
		wantText     string
	}{
		"rate limit of a plugin": {
			"the request succeeds later",
			prefix + "aws provider secret sanity check failed: client rate limiter Wait returned an error: context canceled",
			failure.Transient, "Gardener is overloaded and does not process the request at the moment",
		},
		"rate limit with a deadline": {
			"the request succeeds later",
			prefix + "aws provider secret sanity check failed: client rate limiter Wait returned an error: rate: Wait(n=1) would exceed context deadline",
			failure.Transient, "Gardener is overloaded",
		},
		"rate limit behind a plugin": {
			"the plugin forbids what it could not check",
			prefix + "the server has received too many requests and has asked us to try again later (get secrets aws)",
			failure.Transient, "Gardener is overloaded",
		},
		"slow server behind a plugin": {
			"the plugin forbids what it could not check", prefix + `Get "https://10.0.0.1/api": context deadline exceeded`,
			failure.Transient, "Gardener is overloaded",
		},
		"etcd": {"etcd has too many requests", prefix + "etcdserver: too many requests", failure.Transient, "Gardener is overloaded"},
		"permission": {
			"a missing permission stays one", prefix + `User "system:serviceaccount:garden-kyma:broker" cannot patch resource "credentialsbindings" in API group "security.gardener.cloud"`,
			failure.Transient, "lack a permission in Gardener: an operator must grant it",
		},
		"starting":    {"the server is about to respond", prefix + "not yet ready to handle request", failure.Transient, "Gardener is not ready yet"},
		"quota":       {"an operator must raise it", prefix + "exceeded quota: gardener, requested: 1", failure.Quota, "quota of the Gardener project"},
		"other cause": {"the caller knows which objects it sends", prefix + "it is bound by a Shoot", "", ""},
	} {
		kind, text, known := failure.Forbidden(test.said)
		if kind != test.want || known != (test.want != "") || !strings.Contains(text, test.wantText) {
			t.Errorf("%s: %s: got %s, %q, %t", name, test.reason, kind, text, known)
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

	if err.Text != "it failed; operators can find the details in the timeline of the operation" {
		t.Errorf("got text %q", err.Text)
	}
}
