//go:build garden

package e2e

import (
	"context"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/environment-broker/environment-broker/provisioner/gardener"
)

// TestRuntimesWithKymaOnTheRealGarden installs on runtimes with an API server of their own.
func TestRuntimesWithKymaOnTheRealGarden(t *testing.T) {
	t.Parallel()

	api, err := gardener.Connect(realGarden(t, "--cluster-creation=1s"))
	if err != nil {
		t.Fatal(err)
	}

	kymaStory(t, api, clusters.finishNamespaces)
}

// finishNamespaces plays the part of the controller-manager that runtimes here do not have: it ends namespaces that are to go.
func (c clusters) finishNamespaces(runtimeID string) {
	c.Helper()

	namespaces := c.inside(runtimeID).CoreV1().Namespaces()

	finish := func(ctx context.Context) {
		list, err := namespaces.List(ctx, metav1.ListOptions{})
		if err != nil {
			return // the runtime sleeps, or is gone
		}

		for _, namespace := range list.Items {
			if namespace.DeletionTimestamp == nil {
				continue
			}

			namespace.Spec.Finalizers = nil
			if _, err := namespaces.Finalize(ctx, &namespace, metav1.UpdateOptions{}); err != nil && ctx.Err() == nil {
				c.Logf("namespace %s: %v", namespace.Name, err)
			}
		}
	}

	run(c.T, func(ctx context.Context) error {
		ticker := time.NewTicker(200 * time.Millisecond)
		defer ticker.Stop()

		for {
			select {
			case <-ctx.Done():
				return nil
			case <-ticker.C:
				finish(ctx)
			}
		}
	})
}
