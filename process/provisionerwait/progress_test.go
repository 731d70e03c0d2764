package provisionerwait_test

import (
	"testing"

	"github.com/environment-broker/environment-broker/process/provisionerwait"
)

func TestSummary(t *testing.T) {
	const working = "the Provisioner is working on it: Operation in progress. Stage WaitingForClusterCreation: "

	cases := map[string]struct{ reason, progress, want string }{
		"percentage": {"users see the percentage", working + "Gardener is at 40%: Creating infrastructure", "40 %"},
		"start":      {"0 % is a percentage", working + "Gardener is at 0%: Cluster is scheduled", "0 %"},
		"component": {
			"users see which module is being installed", "the Provisioner is working on it: Operation in progress. Stage WaitingForInstallation: component 3 of 4 (eventing): ConfigMap is next",
			"installing component 3 of 4 (eventing)",
		},
		"retries": {
			"an infrastructure error explains a delay", working + "Gardener is at 20% and retries: no quota [ERR_QUOTA]",
			"20 %, delayed: no quota [ERR_QUOTA]",
		},
		"earlier":       {"earlier errors may still delay it", working + "Gardener is at 20%: Busy; earlier problems: no quota", "20 %, delayed: no quota"},
		"stopped":       {"a stopped Gardener has no percentage", working + "Gardener has stopped; the Provisioner makes it retry: no quota", "delayed: no quota"},
		"stopped 0.1.0": {"a Provisioner 0.1.0 words it differently", working + "Gardener has stopped and is asked to retry: no quota", "delayed: no quota"},
		"error":         {"errors of the Provisioner are for users", "the Provisioner is working on it, delayed by an error: no answer", "delayed: no answer"},
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
