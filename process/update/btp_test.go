package update

import (
	"errors"
	"testing"
	"time"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/process"
)

// TestCredentialsOnly checks which steps an update needs, depending on what it changes.
func TestCredentialsOnly(t *testing.T) {
	first := &environment.ServiceManager{ClientID: "client", ClientSecret: "one", URL: "https://sm", TokenURL: "https://tokens"}
	second := &environment.ServiceManager{ClientID: "client", ClientSecret: "two", URL: "https://sm", TokenURL: "https://tokens"}

	cases := map[string]struct {
		reason             string
		before             *environment.ServiceManager
		change             func(*environment.Cluster)
		shoot, credentials bool
	}{
		"rotated":   {"the cluster does not change", first, func(c *environment.Cluster) { c.ServiceManager = second }, false, true},
		"new":       {"the first credentials", nil, func(c *environment.Cluster) { c.ServiceManager = first }, false, true},
		"both":      {"cluster and credentials change", first, func(c *environment.Cluster) { c.ServiceManager, c.AutoScalerMax = second, 9 }, true, true},
		"cluster":   {"the credentials stay", first, func(c *environment.Cluster) { c.AutoScalerMax = 9 }, true, false},
		"equal":     {"a copy of the credentials", first, func(c *environment.Cluster) { c.ServiceManager, c.AutoScalerMax = new(*first), 9 }, true, false},
		"no change": {"maintenance orders the cluster again", first, func(*environment.Cluster) {}, true, false},
		"own":       {"only the credentials matter", nil, func(c *environment.Cluster) { c.Own, c.ServiceManager = &environment.OwnCluster{}, first }, false, true},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := newFixture()
			w.instance.Request.Cluster.ServiceManager = c.before
			operation := updating(w)
			change := environment.UnchangedUpdate(w.instance)
			c.change(&change.Cluster)
			operation.Data.Instance, operation.Data.Update = w.instance, &change

			if got := changesShoot(operation); got != c.shoot {
				t.Errorf("%s: changesShoot returned %t", c.reason, got)
			}

			if got := changesCredentials(operation); got != c.credentials {
				t.Errorf("%s: changesCredentials returned %t", c.reason, got)
			}
		})
	}
}

// TestInjectCredentials checks that the step writes the new credentials with the kubeconfig in the update, and returns errors.
func TestInjectCredentials(t *testing.T) {
	w := newFixture()
	operation := updating(w)
	operation.Data.Instance = w.instance
	operation.Data.Update.Cluster.ServiceManager = &environment.ServiceManager{ClientID: "client", ClientSecret: "two"}
	operation.Data.Update.Cluster.Own = &environment.OwnCluster{Kubeconfig: "new"}

	if _, _, err := injectCredentials(w).Run(t.Context(), operation, logging.Discard()); err != nil {
		t.Fatal(err)
	}

	if w.applied.ClientSecret != "two" || w.probed.Own == nil || w.probed.Own.Kubeconfig != "new" {
		t.Errorf("applied %q, with the new kubeconfig: %t", w.applied.ClientSecret.Reveal().Reveal(), w.probed.Own != nil)
	}

	w.silent = errors.New("down")
	if _, _, err := injectCredentials(w).Run(t.Context(), operation, logging.Discard()); !errors.Is(err, w.silent) {
		t.Errorf("got %v, want the error of the runtime", err)
	}
}

// TestGetKubeconfig checks that an update writes nothing to a runtime that does not respond and does not change its Kyma.
func TestGetKubeconfig(t *testing.T) {
	w := newFixture()
	w.silent = errors.New("down")
	w.instance.Request.Cluster.Kyma = &environment.Kyma{Version: "1.0.0", Modules: []string{"eventing"}}
	change := environment.UnchangedUpdate(w.instance)
	change.Cluster.Kyma = &environment.Kyma{Version: "1.0.0", Modules: []string{"serverless"}}
	change.Cluster.ServiceManager = &environment.ServiceManager{ClientID: "client", ClientSecret: "two"}
	operation := process.NewOperation(process.Record{ID: "op-2", InstanceID: "instance-1"},
		environment.Data{Instance: w.instance, Update: &change}, time.Time{})

	if _, _, err := run(t, w, "btp-operator", operation); !errors.Is(err, w.silent) {
		t.Errorf("got %v, want the error of the runtime", err)
	}

	if w.applied.ClientID != "" || len(w.modules) > 0 {
		t.Errorf("the update wrote the credentials of %q and ordered %v", w.applied.ClientID, w.modules)
	}
}
