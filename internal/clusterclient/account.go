package clusterclient

import (
	"context"
	"net/http"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	rbacv1client "k8s.io/client-go/kubernetes/typed/rbac/v1"
	"k8s.io/client-go/rest"
	kubeconfigv1 "k8s.io/client-go/tools/clientcmd/api/v1"
	"sigs.k8s.io/yaml"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/secret"
)

const (
	// accountNamespace is the namespace of all accounts. It exists in every cluster.
	accountNamespace = metav1.NamespaceSystem

	// The labels let administrators of a cluster find the objects of the broker and of a binding.
	labelManagedBy = "app.kubernetes.io/managed-by"
	labelBinding   = "environment-broker.io/binding"
	managedBy      = "environment-broker"
)

// account is the ServiceAccount of a binding with its ClusterRoleBinding. Both objects have the same name, which is the same on every attempt,
// so a repeated attempt finds the objects of the attempt before.
type account struct {
	name     string
	labels   map[string]string
	core     *corev1client.CoreV1Client
	rbac     *rbacv1client.RbacV1Client
	lifetime int64
	role     string
}

// Grant creates the missing objects of the binding's account and issues a token for the account. A repeated call issues another token;
// earlier tokens stay valid until they expire. The runtime may grant a shorter lifetime than requested, so ExpiresAt is the expiry of the
// issued token.
func (a Access) Grant(ctx context.Context, instance environment.Instance, binding environment.Binding) (environment.Access, error) {
	return reached(ctx, a, instance, binding, func(ctx context.Context, config *rest.Config, account account) (environment.Access, error) {
		if err := account.create(ctx); err != nil {
			return environment.Access{}, refused(err, "create the account of the binding")
		}

		issued, err := account.token(ctx)
		if err != nil {
			return environment.Access{}, refused(err, "issue a token for the binding")
		}

		return accessBy(config, issued)
	})
}

// Revoke removes the account of the binding; a missing account is not an error. The account's tokens stop working within ten seconds, the
// time for which an API server caches the result of a token's authentication.
func (a Access) Revoke(ctx context.Context, instance environment.Instance, binding environment.Binding) error {
	_, err := reached(ctx, a, instance, binding, func(ctx context.Context, _ *rest.Config, account account) (struct{}, error) {
		return struct{}{}, refused(account.remove(ctx), "remove the account of the binding")
	})

	return err
}

// reached runs work in an admin session with the instance's runtime. Each call requests a new kubeconfig, so a retry after HTTP 401 has new
// credentials.
func reached[Result any](ctx context.Context, access Access, instance environment.Instance, binding environment.Binding,
	work func(ctx context.Context, config *rest.Config, account account) (Result, error),
) (result Result, err error) {
	kubeconfig, err := access.AdminKubeconfig(ctx, instance)
	if err != nil {
		return result, err
	}

	config, err := restConfig(kubeconfig)
	if err != nil {
		return result, err
	}

	client, disconnect, err := connect(config)
	if err != nil {
		return result, err
	}
	defer disconnect()

	account, err := accountOf(config, client, binding)
	if err != nil {
		return result, err
	}

	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()

	return work(ctx, config, account)
}

// accountOf returns the account of the binding with clients for the session. It calls no server.
func accountOf(config *rest.Config, client *http.Client, binding environment.Binding) (account, error) {
	core, coreErr := corev1client.NewForConfigAndClient(config, client)
	rbac, rbacErr := rbacv1client.NewForConfigAndClient(config, client)

	if coreErr != nil || rbacErr != nil {
		return account{}, unusable("it is incomplete")
	}

	return account{
		name:     binding.Account(),
		labels:   map[string]string{labelManagedBy: managedBy, labelBinding: binding.ID},
		core:     core,
		rbac:     rbac,
		lifetime: int64(binding.Lifetime.Seconds()),
		role:     binding.Role.ClusterRole(),
	}, nil
}

// create creates the objects of the account that do not exist yet. It does not compare existing objects: the name of an account is unique to
// its binding, and a binding never changes.
func (a account) create(ctx context.Context) error {
	if _, err := a.core.ServiceAccounts(accountNamespace).Create(ctx, &corev1.ServiceAccount{
		ObjectMeta: metav1.ObjectMeta{Name: a.name, Namespace: accountNamespace, Labels: a.labels},
	}, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}

	if _, err := a.rbac.ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: a.name, Labels: a.labels},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: a.name, Namespace: accountNamespace}},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: a.role},
	}, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}

	return nil
}

// token issues a token for the account through the TokenRequest API.
func (a account) token(ctx context.Context) (authenticationv1.TokenRequestStatus, error) {
	issued, err := a.core.ServiceAccounts(accountNamespace).CreateToken(ctx, a.name, &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &a.lifetime},
	}, metav1.CreateOptions{})
	if err != nil {
		return authenticationv1.TokenRequestStatus{}, err
	}

	return issued.Status, nil
}

// remove deletes the objects of the account. It deletes the ClusterRoleBinding first, so that the account has no rights even if the second
// deletion fails.
func (a account) remove(ctx context.Context) error {
	if err := a.rbac.ClusterRoleBindings().Delete(ctx, a.name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		return err
	}

	if err := a.core.ServiceAccounts(accountNamespace).Delete(ctx, a.name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		return err
	}

	return nil
}

// refused classifies the error of an action in a runtime: Permanent if the API server rejects the request itself, Transient otherwise. It
// returns nil for nil.
func refused(err error, action string) error {
	switch {
	case err == nil:
		return nil
	case apierrors.IsForbidden(err), apierrors.IsInvalid(err), apierrors.IsBadRequest(err), apierrors.IsMethodNotSupported(err):
		return failure.Wrap(failure.Permanent, err, "the runtime refuses to %s", action).
			WithReason(failure.ReasonInternal, failure.ComponentRuntime)
	default:
		return failure.Wrap(failure.Transient, err, "the runtime does not %s yet: its API server does not respond correctly", action).
			WithReason(failure.ReasonInternal, failure.ComponentRuntime)
	}
}

// accessBy returns a kubeconfig with the token, for the server and the certificate authority of the admin kubeconfig.
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
		// The error has no cause, because the cause may quote the token.
		return environment.Access{}, failure.New(failure.Transient, "the runtime issued an unusable token").
			WithReason(failure.ReasonInternal, failure.ComponentRuntime)
	}

	return environment.Access{
		Kubeconfig: secret.String(text), Server: admin.Host, ExpiresAt: issued.ExpirationTimestamp.Time,
	}, nil
}
