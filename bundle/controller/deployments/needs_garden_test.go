//go:build garden

package deployments_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/environment-broker/environment-broker/bundle/api/v1alpha1"
)

// lists is a client that counts the calls that list all BundleDeployments.
type lists struct {
	client.Client

	number atomic.Int64
}

// List implements client.Reader.
func (l *lists) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	if _, all := list.(*v1alpha1.BundleDeploymentList); all {
		l.number.Add(1)
	}

	return l.Client.List(ctx, list, options...)
}

// TestNeeds verifies that a BundleDeployment continues when the one that it depends on is installed, and when the Secret with its
// kubeconfig appears, although the next poll is an hour away. A change of a BundleDeployment does not make the controller read all others,
// because the time for changes of all of them would then grow with the square of their number.
func TestNeeds(t *testing.T) {
	f := newFixture(t)
	f.options.UnreachableInterval = time.Hour
	f.startWatching()

	deploy := func(name string, change func(made *v1alpha1.BundleDeployment)) {
		source := f.content(name, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: "+name+", namespace: default}\n")
		made := &v1alpha1.BundleDeployment{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.BundleDeploymentSpec{
			ProvisionerClassName: f.options.Class,
			Template:             v1alpha1.BundleTemplate{Spec: v1alpha1.TemplateSpec{ProvisionerClassName: "foreign", Source: source}},
		}}
		change(made)

		if err := f.Create(t.Context(), made); err != nil {
			t.Fatal(err)
		}
	}
	reason := func(name, want string) {
		f.await(name+" has not the reason "+want, func() bool {
			f.unpackOf(name)

			found := &v1alpha1.BundleDeployment{}
			if err := f.Get(t.Context(), client.ObjectKey{Name: name}, found); err != nil {
				t.Fatal(err)
			}

			for _, condition := range found.Status.Conditions {
				if condition.Type == v1alpha1.TypeInstalled {
					return condition.Reason == want
				}
			}

			return false
		})
	}

	first, second, there := f.name+"-first", f.name+"-second", f.name+"-there"

	deploy(second, func(made *v1alpha1.BundleDeployment) { made.Spec.DependsOn = []v1alpha1.Dependency{{Name: first}} })
	reason(second, v1alpha1.ReasonDependencyPending)
	deploy(there, f.onTarget)
	reason(there, v1alpha1.ReasonErrorGettingClient)

	deploy(first, func(*v1alpha1.BundleDeployment) {})
	reason(first, v1alpha1.ReasonInstallationSucceeded)
	reason(second, v1alpha1.ReasonInstallationSucceeded)

	f.kubeconfig(targetKubeconfig)
	reason(there, v1alpha1.ReasonInstallationSucceeded)

	if number := f.lists.number.Load(); number > 0 {
		t.Errorf("the controller has read all BundleDeployments %d times", number)
	}
}
