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
	// accountNamespace exists in every cluster from the start.
	accountNamespace = metav1.NamespaceSystem

	labelManagedBy = "app.kubernetes.io/managed-by"
	labelBinding   = "environment-broker.io/binding"
	managedBy      = "environment-broker"
)

// account is the ServiceAccount of a binding, with a ClusterRoleBinding. Its name is the same on every attempt.
type account struct {
	name     string
	labels   map[string]string
	core     *corev1client.CoreV1Client
	rbac     *rbacv1client.RbacV1Client
	lifetime int64
	role     string
}

// Grant creates the account of the binding if it is missing, and issues new credentials for it. It is idempotent except for the token: each
// call issues another one, and earlier ones stay valid until they expire. The runtime may grant a shorter lifetime than requested; ExpiresAt
// is the actual one.
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

// Revoke removes the account of the binding. Its tokens become invalid within the ten seconds for which an API server caches them.
func (a Access) Revoke(ctx context.Context, instance environment.Instance, binding environment.Binding) error {
	_, err := reached(ctx, a, instance, binding, func(ctx context.Context, _ *rest.Config, account account) (struct{}, error) {
		return struct{}{}, refused(account.remove(ctx), "remove the account of the binding")
	})

	return err
}

// reached runs work with the account, in an admin session with the runtime. Each call gets a kubeconfig of its own, so a retry after
// HTTP 401 has new credentials.
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

// create creates the missing objects of the account.
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

func (a account) token(ctx context.Context) (authenticationv1.TokenRequestStatus, error) {
	issued, err := a.core.ServiceAccounts(accountNamespace).CreateToken(ctx, a.name, &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &a.lifetime},
	}, metav1.CreateOptions{})
	if err != nil {
		return authenticationv1.TokenRequestStatus{}, err
	}

	return issued.Status, nil
}

// remove deletes the role binding first, so that the account has no permissions even if its deletion fails. Missing objects are not an error.
func (a account) remove(ctx context.Context) error {
	if err := a.rbac.ClusterRoleBindings().Delete(ctx, a.name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		return err
	}

	if err := a.core.ServiceAccounts(accountNamespace).Delete(ctx, a.name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		return err
	}

	return nil
}

// refused classifies the error of an action in a runtime. Nil stays nil.
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

// accessBy returns a kubeconfig with the token, for the same API server as the administrator's.
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
		// The cause could quote the token.
		return environment.Access{}, failure.New(failure.Transient, "the runtime issued an unusable token").
			WithReason(failure.ReasonInternal, failure.ComponentRuntime)
	}

	return environment.Access{
		Kubeconfig: secret.String(text), Server: admin.Host, ExpiresAt: issued.ExpirationTimestamp.Time,
	}, nil
}
