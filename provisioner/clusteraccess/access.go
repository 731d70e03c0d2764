// Package clusteraccess does the Provisioner's work inside of clusters: administrators, the runtime agent, the services of a service
// catalog. Each call gets an admin kubeconfig of its own from Gardener, which is stored nowhere. Errors are of package failure.
package clusteraccess

import (
	"context"
	"errors"
	"fmt"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	rbacclient "k8s.io/client-go/kubernetes/typed/rbac/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/environment-broker/environment-broker/internal/clusterclient"
	"github.com/environment-broker/environment-broker/internal/failure"
)

const (
	// AdministratorsBinding is the name of the ClusterRoleBinding of all administrators. It is replaced as a whole.
	AdministratorsBinding = "environment-broker-administrators"

	clusterAdmin = "cluster-admin"

	// validity is the shortest that Gardener grants for a kubeconfig.
	validity    = 10 * time.Minute
	callTimeout = 15 * time.Second
)

// Kubeconfigs issues admin kubeconfigs of clusters. Its errors are of package failure.
type Kubeconfigs interface {
	AdminKubeconfig(ctx context.Context, shootName string, valid time.Duration) ([]byte, error)
}

// Access reaches clusters.
type Access struct {
	kubeconfigs Kubeconfigs
}

// New returns an Access that uses the kubeconfigs.
func New(kubeconfigs Kubeconfigs) Access { return Access{kubeconfigs: kubeconfigs} }

// Connect returns a configuration with all rights in a cluster, valid for ten minutes. Call disconnect at the end of the session: its
// connections serve this kubeconfig only, and client-go would cache them forever.
func (a Access) Connect(ctx context.Context, shootName string) (cluster *rest.Config, disconnect func(), err error) {
	kubeconfig, err := a.kubeconfigs.AdminKubeconfig(ctx, shootName, validity)
	if err != nil {
		return nil, nil, err
	}

	cluster, disconnect, err = connect(kubeconfig)
	if err != nil {
		// No cause is kept: it may quote the kubeconfig.
		return nil, nil, failure.New(failure.Permanent, "the kubeconfig of the cluster %q cannot be used", shootName).
			WithReason(failure.ReasonInternal, failure.ComponentRuntime)
	}

	return cluster, disconnect, nil
}

// connect returns a configuration with a transport of its own and without a client-side rate limit: a session makes few calls.
func connect(kubeconfig []byte) (*rest.Config, func(), error) {
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	if err != nil {
		return nil, nil, err
	}

	transport, disconnect, err := clusterclient.Transport(config)
	if err != nil {
		return nil, nil, err
	}

	cluster := &rest.Config{
		Host: config.Host, APIPath: config.APIPath, Transport: transport, Timeout: callTimeout, QPS: -1,
	}
	cluster.ContentType, cluster.AcceptContentTypes = runtime.ContentTypeJSON, runtime.ContentTypeJSON

	return cluster, disconnect, nil
}

// SetAdministrators implements processes.Clusters. It replaces all users of AdministratorsBinding; without users it deletes the binding. It
// is idempotent.
func (a Access) SetAdministrators(ctx context.Context, shootName string, users []string) error {
	cluster, disconnect, err := a.Connect(ctx, shootName)
	if err != nil {
		return err
	}
	defer disconnect()

	client, err := rbacclient.NewForConfig(cluster)
	if err != nil {
		return failure.Wrap(failure.Internal, err, "creating a client of the cluster %q failed", shootName)
	}

	bindings := client.ClusterRoleBindings()

	if len(users) == 0 {
		err = bindings.Delete(ctx, AdministratorsBinding, metav1.DeleteOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
	} else {
		err = put(ctx, bindings, bindingOf(users))
	}

	return explain(err, "the administrators of the cluster %q could not be granted their rights", shootName)
}

func bindingOf(users []string) *rbacv1.ClusterRoleBinding {
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{
			Name: AdministratorsBinding, Labels: map[string]string{labelManagedBy: fieldManager},
		},
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: clusterAdmin},
	}

	for _, user := range users {
		binding.Subjects = append(binding.Subjects, rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user})
	}

	return binding
}

// put creates or updates the binding. The role of a binding is immutable: a binding to another role, made by hand, is deleted and created
// again.
func put(ctx context.Context, bindings rbacclient.ClusterRoleBindingInterface, wanted *rbacv1.ClusterRoleBinding) error {
	present, err := bindings.Get(ctx, wanted.Name, metav1.GetOptions{})

	switch {
	case apierrors.IsNotFound(err):
		_, err = bindings.Create(ctx, wanted, metav1.CreateOptions{})

		return err
	case err != nil:
		return err
	case present.RoleRef != wanted.RoleRef:
		if err := bindings.Delete(ctx, wanted.Name, metav1.DeleteOptions{}); err != nil {
			return err
		}

		_, err = bindings.Create(ctx, wanted, metav1.CreateOptions{})

		return err
	case apiequality.Semantic.DeepEqual(present.Subjects, wanted.Subjects):
		return nil
	}

	present.Subjects = wanted.Subjects
	_, err = bindings.Update(ctx, present, metav1.UpdateOptions{})

	return err
}

// explain classifies an error of the API server of a cluster. Only the rejection of an object is permanent: a new or changed cluster may
// answer anything for a while.
func explain(err error, what string, args ...any) error {
	if err == nil {
		return nil
	}

	// The message of the API server is for the owner of the cluster; that of a transport may name internal addresses.
	kind, said := failure.Transient, "its API server does not answer"

	var status apierrors.APIStatus
	if errors.As(err, &status) {
		said = status.Status().Message
	}

	if apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) {
		kind = failure.Invalid
	}

	return failure.Wrap(kind, err, "%s: %s", fmt.Sprintf(what, args...), said).WithReason(failure.ReasonInternal, failure.ComponentRuntime)
}
