package clusterclient

import (
	"context"
	"strconv"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	kubeconfigv1 "k8s.io/client-go/tools/clientcmd/api/v1"
	"sigs.k8s.io/yaml"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/secret"
)

const (
	// accountNamespace is the namespace of the ServiceAccounts of all bindings. It exists in every cluster.
	accountNamespace = metav1.NamespaceSystem

	// These labels help cluster administrators find the broker's objects, and the objects of a particular binding.
	labelManagedBy = "app.kubernetes.io/managed-by"
	labelBinding   = "environment-broker.io/binding"
	managedBy      = "environment-broker"
)

// account is the ServiceAccount of a binding with its ClusterRoleBinding. Both objects have the same name. The name is derived
// from the binding, so a repeated attempt finds the objects of the previous attempt.
type account struct {
	client   *rest.RESTClient
	binding  environment.Binding
	metadata metav1.ObjectMeta
}

// The API paths of the bindings' ServiceAccounts and ClusterRoleBindings.
const (
	serviceAccounts = "/api/v1/namespaces/" + accountNamespace + "/serviceaccounts"
	roleBindings    = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
)

// Grant creates the ServiceAccount and the ClusterRoleBinding of the binding if they are missing, and issues a token. A repeated
// call issues another token; earlier tokens stay valid until they expire. The result's ExpiresAt is the actual expiry of the
// token, because the runtime may grant a shorter lifetime than requested.
func (a Access) Grant(ctx context.Context, instance environment.Instance, binding environment.Binding) (environment.Access, error) {
	return withAccount(ctx, a, instance, binding, func(ctx context.Context, config *rest.Config, account account) (environment.Access, error) {
		if err := account.create(ctx); err != nil {
			return environment.Access{}, actionError(err, "create the account of the binding")
		}

		issued, err := account.token(ctx)
		if err != nil {
			return environment.Access{}, actionError(err, "issue a token for the binding")
		}

		return accessBy(config, issued)
	})
}

// Revoke removes the ServiceAccount and the ClusterRoleBinding of the binding. Missing objects are not an error. The tokens stop
// working within ten seconds, because API servers cache the authentication of a token for that long.
func (a Access) Revoke(ctx context.Context, instance environment.Instance, binding environment.Binding) error {
	_, err := withAccount(ctx, a, instance, binding, func(ctx context.Context, _ *rest.Config, account account) (struct{}, error) {
		return struct{}{}, actionError(account.remove(ctx), "remove the account of the binding")
	})

	return err
}

// maxAccounts limits the number of accounts that Accounts returns.
const maxAccounts = 500

// Accounts returns the names of the bindings' ServiceAccounts in the instance's runtime. It reads at most maxAccounts
// ServiceAccounts with the broker's label.
func (a Access) Accounts(ctx context.Context, instance environment.Instance) ([]string, error) {
	return withAccount(ctx, a, instance, environment.Binding{}, func(ctx context.Context, _ *rest.Config, session account) ([]string, error) {
		list := &corev1.ServiceAccountList{}

		err := session.client.Get().AbsPath(serviceAccounts).Param("labelSelector", labelManagedBy+"="+managedBy).
			Param("limit", strconv.Itoa(maxAccounts)).Do(ctx).Into(list)

		var names []string

		for _, found := range list.Items {
			if strings.HasPrefix(found.Name, environment.Binding{}.Account()) && found.DeletionTimestamp == nil {
				names = append(names, found.Name)
			}
		}

		return names, actionError(err, "list the accounts of bindings")
	})
}

// withAccount requests an admin kubeconfig and runs work in a session with the instance's runtime. Each call requests a new
// kubeconfig, so a retry after HTTP 401 uses new credentials.
func withAccount[Result any](ctx context.Context, access Access, instance environment.Instance, binding environment.Binding,
	work func(ctx context.Context, config *rest.Config, account account) (Result, error),
) (result Result, err error) {
	config, err := access.adminConfig(ctx, instance)
	if err != nil {
		return result, err
	}

	err = inSession(ctx, config, trusted(), func(ctx context.Context, client *rest.RESTClient) error {
		result, err = work(ctx, config, accountOf(client, binding))

		return err
	})

	return result, err
}

// accountOf returns the account of the binding, with the client of the session. It does not call the server.
func accountOf(client *rest.RESTClient, binding environment.Binding) account {
	return account{client, binding, metav1.ObjectMeta{
		Name: binding.Account(), Labels: map[string]string{labelManagedBy: managedBy, labelBinding: binding.ID},
	}}
}

// create creates the account's objects unless they already exist. It does not compare existing objects with the binding: the name
// of an account is unique to its binding, and a binding never changes.
func (a account) create(ctx context.Context) error {
	err := a.client.Post().AbsPath(serviceAccounts).Body(&corev1.ServiceAccount{ObjectMeta: a.metadata}).Do(ctx).Error()
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}

	err = a.client.Post().AbsPath(roleBindings).Body(&rbacv1.ClusterRoleBinding{
		ObjectMeta: a.metadata,
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: a.metadata.Name, Namespace: accountNamespace}},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: a.binding.Role.ClusterRole()},
	}).Do(ctx).Error()
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}

	return nil
}

// token issues a token for the account through the TokenRequest API.
func (a account) token(ctx context.Context) (authenticationv1.TokenRequestStatus, error) {
	request := &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: new(int64(a.binding.Lifetime.Seconds()))},
	}
	err := a.client.Post().AbsPath(serviceAccounts, a.metadata.Name, "token").Body(request).Do(ctx).Into(request)

	return request.Status, err
}

// remove deletes the objects of the account. It deletes the ClusterRoleBinding first, so the account has no rights even if the
// second deletion fails.
func (a account) remove(ctx context.Context) error {
	for _, path := range []string{roleBindings, serviceAccounts} {
		err := a.client.Delete().AbsPath(path, a.metadata.Name).Do(ctx).Error()
		if err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}

	return nil
}

// actionError classifies the error of an action in a runtime. The kind is Permanent if the API server rejects the request itself,
// and Transient otherwise. A namespace that is being deleted counts as transient, because it can be created again once it is gone.
// The detail is the message of the API server. actionError returns nil for nil.
func actionError(err error, action string) error {
	switch {
	case err == nil:
		return nil
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return failure.Wrap(failure.Transient, err, "cannot %s yet: its namespace is being deleted", action).
			WithReason(failure.ReasonInternal, failure.ComponentRuntime).WithDetail(reported(err))
	case apierrors.IsForbidden(err), apierrors.IsInvalid(err), apierrors.IsBadRequest(err), apierrors.IsMethodNotSupported(err):
		return failure.Wrap(failure.Permanent, err, "the runtime rejects the request to %s", action).
			WithReason(failure.ReasonInternal, failure.ComponentRuntime).WithDetail(reported(err))
	default:
		return failure.Wrap(failure.Transient, err, "cannot %s yet: the API server of the runtime does not respond correctly", action).
			WithReason(failure.ReasonInternal, failure.ComponentRuntime).WithDetail(reported(err))
	}
}

// accessBy returns a kubeconfig with the issued token, and with the server and the certificate authority of the admin kubeconfig.
func accessBy(admin *rest.Config, issued authenticationv1.TokenRequestStatus) (environment.Access, error) {
	const name = "runtime"

	text, err := yaml.Marshal(kubeconfigv1.Config{
		Kind:           "Config",
		APIVersion:     "v1",
		CurrentContext: name,
		Clusters: []kubeconfigv1.NamedCluster{{Name: name, Cluster: kubeconfigv1.Cluster{
			Server: admin.Host, CertificateAuthorityData: admin.CAData,
			TLSServerName: admin.ServerName, InsecureSkipTLSVerify: admin.Insecure,
		}}},
		Contexts:  []kubeconfigv1.NamedContext{{Name: name, Context: kubeconfigv1.Context{Cluster: name, AuthInfo: name}}},
		AuthInfos: []kubeconfigv1.NamedAuthInfo{{Name: name, AuthInfo: kubeconfigv1.AuthInfo{Token: issued.Token}}},
	})
	if err != nil || issued.Token == "" || issued.ExpirationTimestamp.IsZero() {
		// The error has no cause, because a cause might quote the token.
		return environment.Access{}, failure.New(failure.Transient, "the runtime issued an unusable token").
			WithReason(failure.ReasonInternal, failure.ComponentRuntime)
	}

	return environment.Access{
		Kubeconfig: secret.String(text), Server: admin.Host, ExpiresAt: issued.ExpirationTimestamp.Time,
	}, nil
}
