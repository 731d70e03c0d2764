package clusterclient_test

import (
	"context"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/environment-broker/environment-broker/internal/clients/clusterclient"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/secret"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// sensitive is part of all credentials in the tests. Errors must not contain it.
const sensitive = "hush-hush"

// kubeconfigs returns the same kubeconfig or error on each call. Calls for an unexpected tenant
// or runtime fail.
type kubeconfigs struct {
	text secret.String
	err  error
}

func (k kubeconfigs) Kubeconfig(_ context.Context, tenant, runtimeID string) (secret.String, error) {
	if tenant != "account-1" || runtimeID != "runtime-1" {
		return "", fmt.Errorf("unexpected request for runtime %s of tenant %s", runtimeID, tenant)
	}

	return k.text, k.err
}

func instance() environment.Instance {
	return environment.Instance{ID: "instance-1", GlobalAccountID: "account-1", RuntimeID: "runtime-1"}
}

func runtime(t *testing.T, status int) *httptest.Server {
	t.Helper()

	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Header.Get("Authorization") != "Bearer "+sensitive:
			w.WriteHeader(http.StatusUnauthorized)
		case r.URL.Path != "/shoot/version":
			w.WriteHeader(http.StatusNotFound)
		default:
			w.WriteHeader(status)
			_, _ = w.Write([]byte(`{"gitVersion":"v1.35.4"}`))
		}
	}))
	t.Cleanup(server.Close)

	return server
}

func kubeconfig(server *httptest.Server) *clientcmdapi.Config {
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	config := clientcmdapi.NewConfig()
	config.Clusters["runtime"] = &clientcmdapi.Cluster{Server: server.URL + "/shoot", CertificateAuthorityData: authority}
	config.AuthInfos["admin"] = &clientcmdapi.AuthInfo{Token: sensitive}
	config.Contexts["runtime"] = &clientcmdapi.Context{Cluster: "runtime", AuthInfo: "admin"}
	config.CurrentContext = "runtime"

	return config
}

func written(t *testing.T, config *clientcmdapi.Config) secret.String {
	t.Helper()

	text, err := clientcmd.Write(*config)
	if err != nil {
		t.Fatal(err)
	}

	return secret.String(text)
}

func TestProbe(t *testing.T) {
	cases := map[string]struct {
		reason string
		status int
		change func(*clientcmdapi.Config)
		want   failure.Kind // empty for none
		text   string       // the end of the text for users
	}{
		"answers":    {"the runtime accepts its admin kubeconfig", http.StatusOK, nil, "", ""},
		"not ready":  {"the API server is starting", http.StatusServiceUnavailable, nil, failure.Transient, "is not reachable: it responds with status 503"},
		"locked out": {"a new cluster may not accept its credentials immediately", http.StatusOK, func(c *clientcmdapi.Config) { c.AuthInfos["admin"].Token = "other-" + sensitive }, failure.Transient, "it rejects the credentials of the kubeconfig (status 401)"},
		"other authority": {
			"a server without a valid certificate must not get the token", http.StatusOK,
			func(c *clientcmdapi.Config) { c.Clusters["runtime"].CertificateAuthorityData = nil }, failure.Transient,
			"the kubeconfig does not trust its certificate",
		},
		"unreachable": {"the server may start later", http.StatusOK, func(c *clientcmdapi.Config) {
			c.Clusters["runtime"].Server = "https://me:" + sensitive + "@127.0.0.1:1"
		}, failure.Transient, "the cluster at 127.0.0.1:1 is not reachable: connection refused"},
		"no certificate": {
			"an invalid certificate stays invalid", http.StatusOK, func(c *clientcmdapi.Config) {
				c.AuthInfos["admin"].ClientCertificateData, c.AuthInfos["admin"].ClientKeyData = []byte(sensitive), []byte(sensitive)
			}, failure.Permanent, "its certificates or credentials cannot be used",
		},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			config := kubeconfig(runtime(t, c.status))
			if c.change != nil {
				c.change(config)
			}

			err := clusterclient.New(kubeconfigs{text: written(t, config)}).Probe(t.Context(), instance())
			if (err == nil) != (c.want == "") || (err != nil && failure.KindOf(err) != c.want) {
				t.Errorf("%s: got %v, want %q", c.reason, err, c.want)
			}

			if err != nil && strings.Contains(fmt.Sprintf("%v %+v %s", err, err, failure.Of(err).Text), sensitive) {
				t.Errorf("%s: the error contains credentials: %v", c.reason, err)
			}

			if err != nil && !strings.HasSuffix(failure.Of(err).Text, c.text) {
				t.Errorf("%s: the text is %q, want the cause %q", c.reason, failure.Of(err).Text, c.text)
			}
		})
	}
}

func TestRejectedKubeconfigs(t *testing.T) {
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte(sensitive), 0o600); err != nil {
		t.Fatal(err)
	}

	user := func(change func(*clientcmdapi.AuthInfo)) func(*clientcmdapi.Config) {
		return func(c *clientcmdapi.Config) { change(c.AuthInfos["admin"]) }
	}

	const programs = "it refers to exec plugins, auth providers or files"

	cases := map[string]struct {
		reason string
		change func(*clientcmdapi.Config)
		want   string
	}{
		"program": {
			"a kubeconfig from outside must not start a program here",
			user(func(u *clientcmdapi.AuthInfo) {
				u.Exec = &clientcmdapi.ExecConfig{Command: "/bin/true", APIVersion: "v1"}
			}), programs,
		},
		"provider of credentials": {
			"an authentication provider can also start programs",
			user(func(u *clientcmdapi.AuthInfo) { u.AuthProvider = &clientcmdapi.AuthProviderConfig{Name: "oidc"} }), programs,
		},
		"token file": {
			"the broker's own service account must not be sent to a runtime",
			user(func(u *clientcmdapi.AuthInfo) { u.Token, u.TokenFile = "", token }), programs,
		},
		"certificate file": {"a kubeconfig must not read files of the broker", user(func(u *clientcmdapi.AuthInfo) { u.ClientCertificate = token }), programs},
		"key file":         {"a kubeconfig must not read files of the broker", user(func(u *clientcmdapi.AuthInfo) { u.ClientKey = token }), programs},
		"another user": {
			"a user that is not current now can become the current user",
			func(c *clientcmdapi.Config) { c.AuthInfos["other"] = &clientcmdapi.AuthInfo{TokenFile: token} }, programs,
		},
		"authority file": {
			"a kubeconfig must not read files of the broker",
			func(c *clientcmdapi.Config) { c.Clusters["runtime"].CertificateAuthority = token }, "it refers to files",
		},
		"authority file of another cluster": {
			"a cluster that is not current now can become the current cluster",
			func(c *clientcmdapi.Config) {
				c.Clusters["other"] = &clientcmdapi.Cluster{Server: "https://other", CertificateAuthority: token}
			}, "it refers to files",
		},
		"no context": {"no defaults are assumed", func(c *clientcmdapi.Config) { c.CurrentContext = "" }, "its current context is missing or incomplete"},
		"no server":  {"no defaults are assumed", func(c *clientcmdapi.Config) { c.Clusters["runtime"].Server = "" }, "its current context is missing or incomplete"},
		"no cluster": {"no defaults are assumed", func(c *clientcmdapi.Config) { c.Clusters = nil }, "its current context is missing or incomplete"},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			config := kubeconfig(runtime(t, http.StatusOK))
			c.change(config)

			refused(t, c.reason, written(t, config), c.want)
		})
	}

	for name, text := range map[string]secret.String{
		"no YAML":      "\t" + sensitive,
		"no base64":    "clusters: [{name: a, cluster: {certificate-authority-data: '" + sensitive + "'}}]",
		"another kind": "apiVersion: v1\nkind: Secret\ndata: {password: " + sensitive + "}",
		"a text":       sensitive,
	} {
		t.Run(name, func(t *testing.T) { refused(t, "an invalid kubeconfig is not quoted", text, "it is no") })
	}
}

// refused checks that Probe rejects the kubeconfig and does not quote it.
func refused(t *testing.T, reason string, text secret.String, want string) {
	t.Helper()

	err := clusterclient.New(kubeconfigs{text: text}).Probe(t.Context(), instance())
	if !failure.Is(err, failure.Permanent) || !strings.Contains(failure.Of(err).Text, want) {
		t.Errorf("%s: got %v, want a permanent error with %q", reason, err, want)
	}

	if err != nil && strings.Contains(fmt.Sprintf("%v %+v", err, err), sensitive) {
		t.Errorf("%s: the error contains credentials: %v", reason, err)
	}
}

func TestProbeOfOwnCluster(t *testing.T) {
	own := instance()
	own.RuntimeID = ""
	own.Request.Cluster.Own = &environment.OwnCluster{Kubeconfig: secret.Stored(written(t, kubeconfig(runtime(t, http.StatusOK))))}

	unused := kubeconfigs{err: failure.New(failure.Internal, "the Provisioner was called")}
	if err := clusterclient.New(unused).Allowing(loopback(t)).Probe(t.Context(), own); err != nil {
		t.Errorf("the tenant's kubeconfig does not work: %v", err)
	}

	unavailable := kubeconfig(runtime(t, http.StatusServiceUnavailable))
	own.Request.Cluster.Own.Kubeconfig = secret.Stored(written(t, unavailable))

	if err := clusterclient.New(unused).Allowing(loopback(t)).Probe(t.Context(), own); !failure.Is(err, failure.Transient) {
		t.Errorf("an unavailable cluster returned %v, want a transient error", err)
	}
}

func TestCheck(t *testing.T) {
	cases := map[string]struct {
		reason string
		change func(*clientcmdapi.Config)
		want   string
	}{
		"usable":   {"the kubeconfig is complete", func(*clientcmdapi.Config) {}, ""},
		"in clear": {"credentials require TLS", func(c *clientcmdapi.Config) { c.Clusters["runtime"].Server = "http://" + sensitive }, "does not have the form https://"},
		"path":     {"the address lacks a host", func(c *clientcmdapi.Config) { c.Clusters["runtime"].Server = "https:///" + sensitive }, "does not have the form https://"},
		"user":     {"credentials belong to the entry of the user", func(c *clientcmdapi.Config) { c.Clusters["runtime"].Server = "https://" + sensitive + "@127.0.0.1" }, "does not have the form https://"},
		"proxy":    {"a proxy could read the credentials", func(c *clientcmdapi.Config) { c.Clusters["runtime"].ProxyURL = "https://" + sensitive }, "it refers to files or a proxy"},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			config := kubeconfig(runtime(t, http.StatusOK))
			c.change(config)

			err := clusterclient.Check(written(t, config))
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: got %v, want %q", c.reason, err, c.want)
			}

			if err != nil && strings.Contains(err.Error(), sensitive) {
				t.Errorf("%s: the error quotes the kubeconfig: %v", c.reason, err)
			}
		})
	}
}

func TestInstanceWithoutKubeconfig(t *testing.T) {
	waiting := failure.New(failure.Waiting, "no cluster yet")
	withoutRuntime := instance()
	withoutRuntime.RuntimeID = ""

	cases := map[string]struct {
		reason   string
		source   kubeconfigs
		instance environment.Instance
		want     failure.Kind
	}{
		"no runtime":  {"the instance has no runtime", kubeconfigs{}, withoutRuntime, failure.NotFound},
		"no cluster":  {"the Provisioner's error is passed on", kubeconfigs{err: waiting}, instance(), failure.Waiting},
		"no contents": {"the kubeconfig is empty", kubeconfigs{}, instance(), failure.Permanent},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if err := clusterclient.New(c.source).Probe(t.Context(), c.instance); !failure.Is(err, c.want) {
				t.Errorf("%s: a probe returned %v, want %s", c.reason, err, c.want)
			}
		})
	}
}

// recorder records endpoints, or fails.
type recorder struct {
	err  error
	seen []environment.Endpoint
}

func (r *recorder) Record(_ context.Context, _ environment.Instance, endpoint environment.Endpoint) error {
	r.seen = append(r.seen, endpoint)

	return r.err
}

func TestEndpointsAreRecorded(t *testing.T) {
	config := kubeconfig(runtime(t, http.StatusOK))
	cluster := config.Clusters["runtime"]
	want := []environment.Endpoint{{Server: cluster.Server, CA: cluster.CertificateAuthorityData}}

	endpoints := &recorder{}
	if err := clusterclient.New(kubeconfigs{text: written(t, config)}).Recording(endpoints).Probe(t.Context(), instance()); err != nil {
		t.Fatal(err)
	}

	if diff := cmp.Diff(want, endpoints.seen); diff != "" {
		t.Errorf("a probe: -want +got\n%s", diff)
	}

	failing := &recorder{err: failure.New(failure.Transient, "the database does not respond")}
	if got, err := clusterclient.New(kubeconfigs{text: written(t, config)}).Recording(failing).AdminKubeconfig(t.Context(), instance()); !failure.Is(err, failure.Transient) || got != "" {
		t.Errorf("an address that cannot be stored: %v", err)
	}

	for _, invalid := range []secret.String{"hush-hush: [", "apiVersion: v1\nkind: Config\n"} {
		endpoints := &recorder{}
		if _, err := clusterclient.New(kubeconfigs{text: invalid}).Recording(endpoints).AdminKubeconfig(t.Context(), instance()); err != nil || len(endpoints.seen) > 0 {
			t.Errorf("an invalid kubeconfig has no address: recorded %v, %v", endpoints.seen, err)
		}
	}
}

func TestOwnClustersAreNotRecorded(t *testing.T) {
	own := instance()
	own.Request.Cluster.Own = &environment.OwnCluster{Kubeconfig: secret.Stored(written(t, kubeconfig(runtime(t, http.StatusOK))))}

	endpoints := &recorder{}
	if err := clusterclient.New(kubeconfigs{}).Allowing(loopback(t)).Recording(endpoints).Probe(t.Context(), own); err != nil || len(endpoints.seen) > 0 {
		t.Errorf("recorded %v, %v", endpoints.seen, err)
	}
}
