//go:build garden

package deployments_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/environment-broker/environment-broker/bundle/api/v1alpha1"
)

// TestRequirement08ActiveBundle verifies that status.activeBundle names the installed Bundle: it is empty before the first one, and stays while
// another one is pending, fails to unpack or cannot be installed.
func TestRequirement08ActiveBundle(t *testing.T) {
	eachClass(t, func(_ *testing.T, f *fixture) {
		first := f.content("1", f.configMap("one", "1"))
		f.create(first)
		name := f.awaitBundle(first)

		if active := f.deployment().Status.ActiveBundle; active != "" {
			f.Errorf("before the Bundle is unpacked, the active Bundle is %q", active)
		}

		f.unpack()
		f.awaitActive(name)

		pending := f.content("2", f.configMap("one", "2"))
		f.upgrade(pending)
		second := f.awaitBundle(pending)
		reason := func() string {
			return meta.FindStatusCondition(f.deployment().Status.Conditions, v1alpha1.TypeInstalled).Reason
		}
		f.await("the wait is not reported", func() bool { return reason() == v1alpha1.ReasonInstallPending })

		if active := f.deployment().Status.ActiveBundle; active != name {
			f.Errorf("while another one is pending, the active Bundle is %q", active)
		}

		f.unpack()
		f.awaitActive(second)

		invalid := f.content("3", f.configMap("one", "3")+"apiVersion: v1\nkind: Service\nmetadata: {name: x, namespace: default}\nspec: {ports: [{port: 99999}]}\n")
		f.upgrade(invalid)
		f.awaitBundle(invalid)
		f.unpack()
		f.await("the failure is not reported", func() bool { return reason() == v1alpha1.ReasonUpgradeFailed })
		f.want(v1alpha1.TypeInstalled, metav1.ConditionTrue, v1alpha1.ReasonUpgradeFailed, second)

		if active := f.deployment().Status.ActiveBundle; active != second || f.value(f, "one") != "2" {
			f.Errorf("after a failed upgrade, the active Bundle is %q, and the value %q", active, f.value(f, "one"))
		}
	})
}
