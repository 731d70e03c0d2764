// Package clusteraccess does the Provisioner's work inside clusters: it makes administrators cluster-admins (access.go),
// configures the runtime agent (agent.go), and removes services of the Kubernetes Service Catalog (services.go). Package applier
// installs Kyma.
//
// Each call requests an admin kubeconfig from Gardener. The kubeconfig expires after ten minutes and is never stored. Clusters
// are not trusted: calls have timeouts, responses have size limits, and messages from clusters are shortened. Errors come from
// package failure. All calls are idempotent, because steps repeat them after a crash.
package clusteraccess

import (
	"context"
	"errors"
	"fmt"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/environment-broker/environment-broker/internal/clients/clusterclient"
	"github.com/environment-broker/environment-broker/internal/failure"
)

const (
	// AdministratorsBinding is the name of the ClusterRoleBinding for all administrators of a cluster. The Provisioner replaces
	// all its subjects, so users must not add their own.
	AdministratorsBinding = "environment-broker-administrators"

	clusterAdmin = "cluster-admin"

	// validity is the lifetime of a kubeconfig. It is the shortest lifetime that Gardener accepts.
	validity = 10 * time.Minute
	// callTimeout limits one request to the API server of a cluster.
	callTimeout = 15 * time.Second
)

// Kubeconfigs issues admin kubeconfigs of clusters. gardener.Client implements it.
type Kubeconfigs interface {
	AdminKubeconfig(ctx context.Context, shootName string, valid time.Duration) ([]byte, error)
}

// Access makes calls into clusters. Each call opens its own connection. Access is safe for concurrent use.
type Access struct {
	kubeconfigs Kubeconfigs
}

// New returns an Access that connects with kubeconfigs from the given source.
func New(kubeconfigs Kubeconfigs) Access { return Access{kubeconfigs: kubeconfigs} }

// Connect returns a configuration with cluster-admin rights, valid for ten minutes. The caller must call disconnect at the end of
// the session, even if a request has failed: otherwise the session's connections stay open until the API server closes them.
func (a Access) Connect(ctx context.Context, shootName string) (cluster *rest.Config, disconnect func(), err error) {
	kubeconfig, err := a.kubeconfigs.AdminKubeconfig(ctx, shootName, validity)
	if err != nil {
		return nil, nil, err
	}

	cluster, disconnect, err = connect(kubeconfig)
	if err != nil {
		// The cause is dropped because it may quote the kubeconfig.
		return nil, nil, failure.New(failure.Permanent, "the kubeconfig of the cluster %q cannot be used", shootName).
			WithReason(failure.ReasonInternal, failure.ComponentRuntime)
	}

	return cluster, disconnect, nil
}

// connect returns a configuration with its own transport. client-go would cache a transport for each kubeconfig and never drop
// it. The client-side rate limit is off, because a session makes few calls.
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
		WarningHandlerWithContext: rest.NoWarnings{}, // client-go and controller-runtime would write them to their own logs
	}
	cluster.ContentType, cluster.AcceptContentTypes = runtime.ContentTypeJSON, runtime.ContentTypeJSON

	return cluster, disconnect, nil
}

// open connects to the cluster and returns a client for any kind of object. The caller must call disconnect at the end.
func (a Access) open(ctx context.Context, shootName string) (api dynamic.Interface, disconnect func(), err error) {
	cluster, disconnect, err := a.Connect(ctx, shootName)
	if err != nil {
		return nil, nil, err
	}

	api, err = dynamic.NewForConfig(cluster)
	if err != nil {
		disconnect()

		return nil, nil, failure.Wrap(failure.Internal, err, "creating a client for the cluster %q failed", shootName)
	}

	return api, disconnect, nil
}

// SetAdministrators implements processes.Clusters. It replaces all subjects of AdministratorsBinding. If there are no users, it
// deletes the binding.
func (a Access) SetAdministrators(ctx context.Context, shootName string, users []string, confirm func(context.Context) error) error {
	cluster, disconnect, err := a.Connect(ctx, shootName)
	if err != nil {
		return err
	}
	defer disconnect()

	bindings, err := bindingsClient(cluster)
	if err != nil {
		return failure.Wrap(failure.Internal, err, "creating a client for the cluster %q failed", shootName)
	}

	var unconfirmed error

	err = put(ctx, bindings, bindingOf(users), func() error {
		unconfirmed = confirm(ctx)

		return unconfirmed
	})
	if unconfirmed != nil {
		return unconfirmed
	}

	return explain(err, "the administrators of the cluster %q could not be granted their rights", shootName)
}

// bindingOf returns the ClusterRoleBinding that makes the given users cluster-admins. User names are not checked: an unknown user
// gets the rights as soon as the identity provider knows the name.
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

// bindingsClient returns a client for ClusterRoleBindings. It needs no discovery, which would take two more calls.
func bindingsClient(cluster *rest.Config) (client.Client, error) {
	scheme, mapper := runtime.NewScheme(), meta.NewDefaultRESTMapper(nil)
	mapper.Add(rbacv1.SchemeGroupVersion.WithKind("ClusterRoleBinding"), meta.RESTScopeRoot)

	if err := rbacv1.AddToScheme(scheme); err != nil {
		return nil, err
	}

	return client.New(cluster, client.Options{Scheme: scheme, Mapper: mapper})
}

// put creates or updates the binding, or deletes it if wanted has no subjects. It calls confirm after it has read the present binding, and
// changes only the binding that it has read. The API server does not allow a binding's role to change. If somebody has manually created
// the binding with a different role, put deletes it and creates a new one.
func put(ctx context.Context, bindings client.Client, wanted *rbacv1.ClusterRoleBinding, confirm func() error) error {
	present := &rbacv1.ClusterRoleBinding{}

	err := bindings.Get(ctx, client.ObjectKeyFromObject(wanted), present)
	if client.IgnoreNotFound(err) != nil {
		return err
	}

	missing, none := err != nil, len(wanted.Subjects) == 0
	update := !missing && !none && present.RoleRef == wanted.RoleRef

	if missing && none || update && apiequality.Semantic.DeepEqual(present.Subjects, wanted.Subjects) {
		return nil
	}

	if err := confirm(); err != nil {
		return err
	}

	if update {
		present.Subjects = wanted.Subjects

		return bindings.Update(ctx, present)
	}

	if !missing {
		read := client.Preconditions{UID: &present.UID, ResourceVersion: &present.ResourceVersion}
		if err := bindings.Delete(ctx, present, read); err != nil {
			return err
		}
	}

	if none {
		return nil
	}

	return bindings.Create(ctx, wanted)
}

// explain converts an error from a cluster's API server to a failure.Error, and nil to nil. If the API server rejects a request as
// invalid, the kind is failure.Invalid. All other errors are transient: a cluster can respond with any error, even Forbidden,
// while its control plane starts or changes.
func explain(err error, problem string, args ...any) error {
	if err == nil {
		return nil
	}

	// Transport errors may contain internal addresses, so only the log shows them.
	kind, said, reported := failure.Transient, "its API server does not respond", ""

	var status apierrors.APIStatus
	if errors.As(err, &status) {
		said, reported = "its API server reports an error", status.Status().Message
	}

	if apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) {
		kind, said = failure.Invalid, "its API server rejects the request"
	}

	return failure.Wrap(kind, err, "%s: %s", fmt.Sprintf(problem, args...), said).
		WithReason(failure.ReasonInternal, failure.ComponentRuntime).WithDetail(reported)
}
