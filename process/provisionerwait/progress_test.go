package provisionerwait_test

import (
	"testing"

	"github.com/environment-broker/environment-broker/process/provisionerwait"
)

func TestSummary(t *testing.T) {
	const (
		working = "the Provisioner is working on it: Operation in progress. Stage WaitingForClusterCreation: "
		unknown = "the Provisioner reports an error; operators can find the details in the timeline of the operation"
	)

	cases := map[string]struct{ reason, progress, want string }{
		"percentage": {"users see the percentage", working + "Gardener is at 40%: Creating infrastructure", "40 %"},
		"start":      {"0 % is a percentage", working + "Gardener is at 0%: Cluster is scheduled", "0 %"},
		"component": {
			"users see which module is being installed", "the Provisioner is working on it: Operation in progress. Stage WaitingForInstallation: component 3 of 4 (eventing): ConfigMap is next",
			"installing component 3 of 4 (eventing)",
		},
		"retries": {
			"a known code of Gardener explains a delay", working + "Gardener is at 20% and retries: <b>buy</b> (ERR_INFRA_QUOTA_EXCEEDED: pay)",
			"20 %, delayed: Gardener reports ERR_INFRA_QUOTA_EXCEEDED: raise the quota of the cloud account or remove unused resources, then retry",
		},
		"unknown code":  {"users read no words of other systems", working + "Gardener is at 20% and retries: <b>buy</b> (ERR_BUY)", "20 %, delayed: " + unknown},
		"earlier":       {"earlier errors may still delay it", working + "Gardener is at 20%: Busy; earlier problems: no quota", "20 %, delayed: " + unknown},
		"stopped":       {"a stopped Gardener has no percentage", working + "Gardener has stopped; the Provisioner makes it retry: no quota", "delayed: " + unknown},
		"stopped 0.1.0": {"a Provisioner 0.1.0 words it differently", working + "Gardener has stopped and is asked to retry: no quota", "delayed: " + unknown},
		"error":         {"the error of the Provisioner's step has a code", "the Provisioner is working on it, delayed by an error: no answer (ERR_INFRA_UNAUTHORIZED)", "delayed: Gardener reports ERR_INFRA_UNAUTHORIZED: the credentials lack a permission in the cloud account: grant it, then retry"},
		"waiting":       {"internal waits are for operators", working + "Gardener has not started to reconcile the cluster yet", ""},
		"busy":          {"internal waits are for operators", "many operations are polling the Provisioner; this one is waiting for its turn", ""},
		"Kyma":          {"Kyma Provisioner reports no percentage", "the Provisioner is working on it: Operation in progress", ""},
		"nothing":       {"the first poll has not happened yet", "", ""},
	}

	for name, c := range cases {
		if got := provisionerwait.Summary(c.progress); got != c.want {
			t.Errorf("%s: %s: got %q, want %q", name, c.reason, got, c.want)
		}
	}
}
