package main_test

import (
	"context"
	"fmt"
	"testing"

	authenticationv1alpha1 "github.com/gardener/gardener/pkg/apis/authentication/v1alpha1"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/environment-broker/environment-broker/internal/sandbox/fakegarden/conformance"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakegarden/gardenlet"
	"github.com/environment-broker/environment-broker/test/garden/gardener/internal/process"
)

// createShoot creates a Shoot in a project and waits until its runtime is ready.
func createShoot(t *testing.T, c client.Client, project, name string) *gardencorev1beta1.Shoot {
	t.Helper()
	if err := c.Create(t.Context(), conformance.Shoot(gardenlet.Namespace(project), name)); err != nil {
		t.Fatalf("creating the shoot: %v", err)
	}
	return awaitShoot(t, c, project, name)
}

// awaitShoot waits until the runtime of a Shoot is ready.
func awaitShoot(t *testing.T, c client.Client, project, name string) *gardencorev1beta1.Shoot {
	t.Helper()
	shoot := conformance.Shoot(gardenlet.Namespace(project), name)
	eventually(t, "the shoot "+name+" is created", func(ctx context.Context) error {
		if err := c.Get(ctx, client.ObjectKeyFromObject(shoot), shoot); err != nil {
			return err
		}
		if last := shoot.Status.LastOperation; last == nil || last.State != gardencorev1beta1.LastOperationStateSucceeded {
			return fmt.Errorf("its last operation is %+v", last)
		}
		return nil
	})
	return shoot
}

// deleteShoot deletes a Shoot and waits until it is gone.
func deleteShoot(t *testing.T, c client.Client, shoot *gardencorev1beta1.Shoot) {
	t.Helper()
	before := shoot.DeepCopy()
	metav1.SetMetaDataAnnotation(&shoot.ObjectMeta, v1beta1constants.ConfirmationDeletion, "true")
	if err := c.Patch(t.Context(), shoot, client.MergeFrom(before)); err != nil {
		t.Fatalf("confirming the deletion of the shoot: %v", err)
	}
	if err := c.Delete(t.Context(), shoot); err != nil {
		t.Fatalf("deleting the shoot: %v", err)
	}
	eventually(t, "the shoot is gone", func(ctx context.Context) error {
		err := c.Get(ctx, client.ObjectKeyFromObject(shoot), shoot)
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("it still exists: %+v (%w)", shoot.Status.LastOperation, err)
	})
}

// adminOf returns a client for a runtime that uses an admin kubeconfig.
func adminOf(t *testing.T, c client.Client, shoot *gardencorev1beta1.Shoot) *kubernetes.Clientset {
	t.Helper()
	request := &authenticationv1alpha1.AdminKubeconfigRequest{
		Spec: authenticationv1alpha1.AdminKubeconfigRequestSpec{ExpirationSeconds: new(int64(3600))},
	}
	if err := c.SubResource("adminkubeconfig").Create(t.Context(), shoot, request); err != nil {
		t.Fatalf("requesting the admin kubeconfig: %v", err)
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(request.Status.Kubeconfig)
	if err != nil {
		t.Fatalf("loading the admin kubeconfig: %v", err)
	}
	runtime, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatalf("creating a client for the runtime: %v", err)
	}
	return runtime
}

func eventually(t *testing.T, what string, probe func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := process.Until(ctx, what, probe); err != nil {
		t.Fatal(err)
	}
}
