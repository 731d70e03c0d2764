//go:build garden

package bundletest

import (
	"context"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	k8sruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/environment-broker/environment-broker/bundle/api/v1alpha1"
)

// Scheme returns a scheme with the types of client-go and of package v1alpha1.
func Scheme(tb testing.TB) *k8sruntime.Scheme {
	tb.Helper()

	scheme := k8sruntime.NewScheme()
	if err := clientscheme.AddToScheme(scheme); err != nil {
		tb.Fatal(err)
	}

	if err := v1alpha1.AddToScheme(scheme); err != nil {
		tb.Fatal(err)
	}

	return scheme
}

// Client returns a client that uses Scheme.
func Client(tb testing.TB, config *rest.Config) client.WithWatch {
	tb.Helper()

	clusterClient, err := client.NewWithWatch(config, client.Options{Scheme: Scheme(tb)})
	if err != nil {
		tb.Fatal(err)
	}

	return clusterClient
}

// Namespace creates a namespace with a generated name.
func Namespace(tb testing.TB, config *rest.Config) string {
	tb.Helper()

	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "bundles-"}}
	if err := Client(tb, config).Create(tb.Context(), namespace); err != nil {
		tb.Fatal(err)
	}

	return namespace.Name
}

// Token creates a ServiceAccount in the namespace, binds it to the given ClusterRoles, which must exist, and returns a token for
// it.
func Token(tb testing.TB, config *rest.Config, namespace, account string, roles ...string) string {
	tb.Helper()

	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		tb.Fatal(err)
	}

	ctx := tb.Context()

	if _, err := clients.CoreV1().ServiceAccounts(namespace).Create(ctx,
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: account}}, metav1.CreateOptions{}); err != nil {
		tb.Fatal(err)
	}

	for _, role := range roles {
		binding := &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: namespace + "-" + account + "-" + role},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: account}},
		}
		if _, err := clients.RbacV1().ClusterRoleBindings().Create(ctx, binding, metav1.CreateOptions{}); err != nil {
			tb.Fatal(err)
		}
	}

	request, err := clients.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, account, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		tb.Fatal(err)
	}

	return request.Status.Token
}

const (
	// patience is how long Eventually waits for the result of the check to change. It is long, because the API server may share two
	// cores with other tests.
	patience = 4 * time.Minute
	// limit is how long Eventually waits in total, even if the result of the check keeps changing.
	limit = 15 * time.Minute
)

// Eventually repeats the check until it returns "". The test fails if the result does not change for 4 minutes, or after 15
// minutes in total.
func Eventually(tb testing.TB, check func() string) {
	tb.Helper()

	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()

	began := time.Now()

	for last, changed := "", began; ; <-ticker.C {
		problem := check()
		if problem == "" {
			return
		}

		if problem != last {
			last, changed = problem, time.Now()
		}

		if time.Since(changed) > patience || time.Since(began) > limit {
			tb.Fatal(problem)
		}
	}
}

// Delete removes an object and its finalizers, so that other tests do not see it. It ignores missing objects.
func Delete(tb testing.TB, clusterClient client.Client, object client.Object) {
	tb.Helper()

	ctx := context.WithoutCancel(tb.Context())

	err := clusterClient.Delete(ctx, object)
	if err == nil {
		err = clusterClient.Patch(ctx, object, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`)))
	}

	if err != nil && !apierrors.IsNotFound(err) {
		tb.Error(err)
	}
}
