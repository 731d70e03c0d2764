package clusteraccess_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	rbacclient "k8s.io/client-go/kubernetes/typed/rbac/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakegarden/certificate"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakegarden/runtimes"
	"github.com/environment-broker/environment-broker/provisioner/clusteraccess"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// cluster provides an admin kubeconfig of an API server, or fails with err. It records the requested lifetimes.
type cluster struct {
	kubeconfig []byte
	err        error
	lifetimes  []time.Duration
}

func (c *cluster) AdminKubeconfig(_ context.Context, _ string, valid time.Duration) ([]byte, error) {
	c.lifetimes = append(c.lifetimes, valid)

	return c.kubeconfig, c.err
}

func newCluster(t *testing.T) *cluster {
	t.Helper()

	server, err := runtimes.Listen(t.Context(), runtimes.Options{
		Dir: t.TempDir(), Log: logging.Discard(), Version: func(context.Context, string) string { return "1.35.4" },
	})
	if err != nil {
		t.Fatal(err)
	}

	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)

	go func() { ended <- server.Serve(ctx) }()

	t.Cleanup(func() {
		stop()

		if err := <-ended; err != nil {
			t.Error(err)
		}
	})

	key, err := certificate.NewKey()
	if err != nil {
		t.Fatal(err)
	}

	authority, err := certificate.NewAuthority("clients", key)
	if err != nil {
		t.Fatal(err)
	}

	endpoint, err := server.Start(t.Context(), "shoot--local--c-first", authority.CertificatePEM())
	if err != nil {
		t.Fatal(err)
	}

	pair, err := authority.IssueClient(certificate.Client{
		CommonName: "admin", Organizations: []string{v1beta1constants.ShootSystemAdminsGroupName}, Validity: time.Hour,
	})
	if err != nil {
		t.Fatal(err)
	}

	return &cluster{kubeconfig: kubeconfig(t, endpoint.URL, endpoint.CA, pair)}
}

func kubeconfig(t *testing.T, url string, authority []byte, pair certificate.Pair) []byte {
	t.Helper()

	text, err := clientcmd.Write(clientcmdapi.Config{
		CurrentContext: "c", Contexts: map[string]*clientcmdapi.Context{"c": {Cluster: "c", AuthInfo: "c"}},
		Clusters:  map[string]*clientcmdapi.Cluster{"c": {Server: url, CertificateAuthorityData: authority}},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{"c": {ClientCertificateData: pair.Certificate, ClientKeyData: pair.Key}},
	})
	if err != nil {
		t.Fatal(err)
	}

	return text
}

func (c *cluster) bindings(t *testing.T) rbacclient.ClusterRoleBindingInterface {
	t.Helper()

	config, err := clientcmd.RESTConfigFromKubeConfig(c.kubeconfig)
	if err != nil {
		t.Fatal(err)
	}

	config.ContentType = "application/json"

	connection, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(connection.CloseIdleConnections)

	client, err := rbacclient.NewForConfigAndClient(config, connection)
	if err != nil {
		t.Fatal(err)
	}

	return client.ClusterRoleBindings()
}

// administrators returns the users in the binding, or nil if it does not exist.
func (c *cluster) administrators(t *testing.T) []string {
	t.Helper()

	binding, err := c.bindings(t).Get(t.Context(), clusteraccess.AdministratorsBinding, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}

	if err != nil {
		t.Fatal(err)
	}

	if want := (rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"}); binding.RoleRef != want {
		t.Errorf("the binding has the role %v", binding.RoleRef)
	}

	names := []string{}

	for _, subject := range binding.Subjects {
		if subject.Kind == rbacv1.UserKind {
			names = append(names, subject.Name)
		}
	}

	return names
}

func TestSetAdministrators(t *testing.T) {
	c := newCluster(t)
	access := clusteraccess.New(c)

	for _, tc := range []struct {
		reason string
		users  []string
	}{
		{"no administrators before and after", nil},
		{"a new cluster gets its administrators", []string{"jane", "joe"}},
		{"repeating a call changes nothing", []string{"jane", "joe"}},
		{"omitted users lose their rights", []string{"joe", "ann"}},
		{"an empty list removes all", nil},
		{"rights can be granted again", []string{"ann"}},
	} {
		if err := access.SetAdministrators(t.Context(), "c-first", tc.users, unfenced); err != nil {
			t.Fatalf("%s: %v", tc.reason, err)
		}

		if diff := cmp.Diff(tc.users, c.administrators(t)); diff != "" {
			t.Errorf("%s, -want +got:\n%s", tc.reason, diff)
		}
	}

	for _, valid := range c.lifetimes {
		if valid > 10*time.Minute {
			t.Errorf("a kubeconfig for one call is valid for %s", valid)
		}
	}
}

// unfenced is the confirmation of a replica that holds its lease.
func unfenced(context.Context) error { return nil }

// TestLateChangeOfAdministrators calls SetAdministrators on a replica that freezes after it has read the administrators, while a later
// operation changes them. The late call must not undo that change. A replica that has lost its lease changes nothing either.
func TestLateChangeOfAdministrators(t *testing.T) {
	lost := failure.New(failure.Transient, "the lease is lost")

	for name, tc := range map[string]struct {
		reason              string
		before, late, after []string
		err                 error
	}{
		"revoked":      {"a revoked administrator gets no rights again", []string{"joe"}, []string{"joe", "jane"}, []string{"joe"}, nil},
		"all revoked":  {"the binding was removed meanwhile", []string{"joe"}, []string{"jane"}, nil, nil},
		"granted":      {"the removal of all administrators is late", []string{"joe"}, nil, []string{"ann"}, nil},
		"first":        {"the first administrators are late", nil, []string{"jane"}, []string{"ann"}, nil},
		"lost lease":   {"another replica continues the operation", []string{"joe"}, []string{"jane"}, []string{"joe"}, lost},
		"lost at none": {"there are no administrators yet", nil, []string{"jane"}, nil, lost},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			access := clusteraccess.New(c)

			if err := access.SetAdministrators(t.Context(), "c-first", tc.before, unfenced); err != nil {
				t.Fatal(err)
			}

			err := access.SetAdministrators(t.Context(), "c-first", tc.late, func(ctx context.Context) error {
				if tc.err != nil {
					return tc.err
				}

				if err := access.SetAdministrators(ctx, "c-first", []string{"other"}, unfenced); err != nil {
					return err
				}

				return access.SetAdministrators(ctx, "c-first", tc.after, unfenced)
			})
			if !failure.Is(err, failure.Transient) || tc.err != nil && failure.Of(err).Text != failure.Of(tc.err).Text {
				t.Errorf("%s: got %v", tc.reason, err)
			}

			if diff := cmp.Diff(tc.after, c.administrators(t)); diff != "" {
				t.Errorf("%s, -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestBindingToAnotherRoleIsReplaced(t *testing.T) {
	c := newCluster(t)

	if _, err := c.bindings(t).Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: clusteraccess.AdministratorsBinding},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}

	if err := clusteraccess.New(c).SetAdministrators(t.Context(), "c-first", []string{"jane"}, unfenced); err != nil {
		t.Fatal(err)
	}

	if diff := cmp.Diff([]string{"jane"}, c.administrators(t)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestSetAdministratorsFailures(t *testing.T) {
	answering := func(status int, body string) *cluster {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			_, _ = w.Write([]byte(body))
		}))
		t.Cleanup(server.Close)

		return &cluster{kubeconfig: kubeconfig(t, server.URL, nil, certificate.Pair{})}
	}
	empty := answering(http.StatusOK, "")
	outage := failure.New(failure.Transient, "Gardener is unavailable")

	for name, tc := range map[string]struct {
		reason  string
		cluster *cluster
		kind    failure.Kind
		want    string
		detail  string
	}{
		"no kubeconfig": {"Gardener's error is returned unchanged", &cluster{err: outage}, failure.Transient, "Gardener is unavailable", ""},
		"unusable":      {"an invalid kubeconfig is not quoted", &cluster{kubeconfig: []byte("secret: {")}, failure.Permanent, "cannot be used", ""},
		"forbidden": {
			"a new cluster may deny access until its roles exist",
			answering(http.StatusForbidden, `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"not yet","reason":"Forbidden","code":403}`),
			failure.Transient, "its API server reports an error", "not yet",
		},
		"invalid": {
			"an invalid binding fails again",
			answering(http.StatusUnprocessableEntity, `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"no name","reason":"Invalid","code":422}`),
			failure.Invalid, "its API server rejects the request", "no name",
		},
		"unreachable": {
			"users must not see addresses",
			&cluster{kubeconfig: kubeconfig(t, "http://127.0.0.1:1", nil, certificate.Pair{})}, failure.Transient, "does not respond", "",
		},
		"nonsense": {"an unexpected response may be temporary", empty, failure.Transient, "could not be granted their rights", ""},
	} {
		t.Run(name, func(t *testing.T) {
			err := clusteraccess.New(tc.cluster).SetAdministrators(t.Context(), "c-first", []string{"jane"}, unfenced)

			text := failure.Of(err).Text
			if !failure.Is(err, tc.kind) || !strings.Contains(text, tc.want) || strings.Contains(text, "127.0.0.1") || strings.Contains(text, "secret") {
				t.Errorf("%s: got %s %q", tc.reason, failure.KindOf(err), text)
			}

			if detail := failure.Of(err).Detail; detail != tc.detail {
				t.Errorf("%s: got detail %q", tc.reason, detail)
			}
		})
	}
}

func TestRemoveServicesFailures(t *testing.T) {
	outage := failure.New(failure.Transient, "Gardener is unavailable")

	for name, tc := range map[string]struct {
		reason  string
		cluster *cluster
		kind    failure.Kind
		want    string
	}{
		"no service catalog": {reason: "the cluster has no services", cluster: newCluster(t)},
		"no kubeconfig":      {"Gardener's error is returned unchanged", &cluster{err: outage}, failure.Transient, "Gardener is unavailable"},
		"unreachable": {
			"an unreachable cluster must not be treated as empty",
			&cluster{kubeconfig: kubeconfig(t, "http://127.0.0.1:1", nil, certificate.Pair{})}, failure.Transient, "could not be removed",
		},
	} {
		t.Run(name, func(t *testing.T) {
			access := clusteraccess.New(tc.cluster)

			left, err := access.RemoveServices(t.Context(), "c-first", "https://service-manager.")
			for call, err := range map[string]error{"remove": err, "release": access.ReleaseBrokers(t.Context(), "c-first")} {
				if left != "" || (err == nil) != (tc.kind == "") || err != nil && (!failure.Is(err, tc.kind) || !strings.Contains(failure.Of(err).Text, tc.want)) {
					t.Errorf("%s: %s: remaining: %q, %v", tc.reason, call, left, err)
				}
			}
		})
	}
}
