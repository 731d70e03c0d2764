package operator_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/sirupsen/logrus"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/environment-broker/environment-broker/broker/operator"
	"github.com/environment-broker/environment-broker/internal/auth"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
	"github.com/environment-broker/environment-broker/internal/secret"
	"github.com/environment-broker/environment-broker/process"
)

// kubeconfig returns an admin kubeconfig with a token. The certificate is base64-encoded PEM, or empty for none.
func kubeconfig(server, certificate string) secret.String {
	return secret.String(`apiVersion: v1
kind: Config
current-context: c
contexts: [{name: c, context: {cluster: k, user: u}}]
clusters: [{name: k, cluster: {server: "` + server + `", certificate-authority-data: Y2E=}}]
users: [{name: u, user: {token: hunter2, client-certificate-data: "` + certificate + `"}}]
`)
}

func gives(content secret.String, err error) func(environment.Instance) (secret.String, error) {
	return func(environment.Instance) (secret.String, error) { return content, err }
}

// endpoint stores the endpoint of a runtime of the instance.
func (b *bench) endpoint(instanceID, runtimeID string) {
	b.Helper()

	if err := b.endpoints.Set(b.Context(), environment.Instance{ID: instanceID, RuntimeID: runtimeID},
		environment.Endpoint{Server: "https://api.example.com", CA: []byte("ca")}, b.clock.Now()); err != nil {
		b.Fatal(err)
	}
}

func TestAdminKubeconfig(t *testing.T) {
	b := newBench(t)
	b.instance("one", process.Succeeded)

	end := time.Date(2031, 2, 3, 4, 5, 6, 0, time.UTC)
	content := kubeconfig("https://api.example.com", certificate(t, end))
	b.kubeconfigs.make = gives(content, nil)

	got := b.want("an admin gets it", b.do("admin", "POST", "/runtimes/one/adminkubeconfig"), http.StatusOK)
	if diff := cmp.Diff(operatorapi.AdminKubeconfig{Kubeconfig: content.Reveal(), ExpiresAt: end}, read[operatorapi.AdminKubeconfig](b, got)); diff != "" {
		b.Errorf("body: -want +got\n%s", diff)
	}

	if got.Header.Get("Cache-Control") != "no-store" {
		b.Error("the response may be cached")
	}

	b.kubeconfigs.make = gives(kubeconfig("x", ""), nil)
	got = b.want("a kubeconfig without a certificate", b.do("admin", "POST", "/runtimes/one/adminkubeconfig"), http.StatusOK)

	if !read[operatorapi.AdminKubeconfig](b, got).ExpiresAt.IsZero() {
		b.Error("a kubeconfig without a certificate has an expiry")
	}
}

func TestAdminKubeconfigIsAudited(t *testing.T) {
	cases := map[string]struct {
		reason   string
		instance string
		make     func(environment.Instance) (secret.String, error)
		status   int
		want     logrus.Fields
	}{
		"Given":       {"a returned kubeconfig is audited", "ready", gives(kubeconfig("x", ""), nil), 200, logrus.Fields{"instanceID": "ready", "runtimeID": "runtime-ready", "level": "info"}},
		"Unknown":     {"requests for unknown instances are audited", "unknown", nil, 404, logrus.Fields{"instanceID": "unknown", "runtimeID": "", "level": "warning"}},
		"NotReady":    {"the runtime does not exist yet", "making", nil, 404, logrus.Fields{"instanceID": "making", "runtimeID": "runtime-making", "level": "warning"}},
		"Leaving":     {"the instance is being deleted", "leaving", nil, 404, logrus.Fields{"instanceID": "leaving", "runtimeID": "runtime-leaving", "level": "warning"}},
		"Provisioner": {"the Provisioner does not respond", "ready", gives("", failure.New(failure.Transient, "the Provisioner does not respond")), 503, logrus.Fields{"instanceID": "ready", "runtimeID": "runtime-ready", "level": "warning"}},
		"Refused":     {"the Provisioner rejects the call", "ready", gives("", failure.New(failure.Permanent, "no")), 502, logrus.Fields{"instanceID": "ready", "runtimeID": "runtime-ready", "level": "warning"}},
	}

	b := newBench(t)
	b.instance("ready", process.Succeeded)
	b.instance("making", process.InProgress)
	b.instance("leaving", process.Succeeded)
	b.operation("leaving", environment.KindDeprovision, process.InProgress)

	for name, test := range cases {
		b.kubeconfigs.make = test.make
		b.log.Reset()
		b.want(name+": "+test.reason, b.do("admin", "POST", "/runtimes/"+test.instance+"/adminkubeconfig"), test.status)

		var audit *logrus.Entry

		for _, entry := range b.log.AllEntries() {
			if strings.HasPrefix(entry.Message, "audit: ") {
				audit = entry
			}

			if text, _ := entry.String(); strings.Contains(text, "hunter2") {
				b.Errorf("%s: a log line contains a secret: %s", name, text)
			}
		}

		if audit == nil {
			b.Errorf("%s\n%s\nthe audit line is missing", name, test.reason)

			continue
		}

		got := logrus.Fields{"instanceID": audit.Data["instanceID"], "runtimeID": audit.Data["runtimeID"], "level": audit.Level.String()}
		if diff := cmp.Diff(test.want, got); diff != "" || audit.Data["user"] != "admin" || audit.Data["requestID"] != identity {
			b.Errorf("%s\n%s\naudit of %v: -want +got\n%s", name, test.reason, audit.Data["user"], diff)
		}
	}
}

func TestKubeconfigForUsers(t *testing.T) {
	b := newBench(t)
	b.instance("one", process.Succeeded)
	b.endpoint("one", "runtime-one")

	got := b.want("no credentials are required", b.do("", "GET", "/kubeconfig/one"), http.StatusOK)

	parsed, err := clientcmd.Load([]byte(got.Raw))
	if err != nil {
		t.Fatal(err)
	}

	if err := clientcmd.ConfirmUsable(*parsed, ""); err != nil {
		b.Errorf("kubectl cannot use the kubeconfig: %v", err)
	}

	cluster, login := parsed.Clusters["c-one"], parsed.AuthInfos["oidc"]
	if parsed.CurrentContext != "name-one" || cluster == nil || cluster.Server != "https://api.example.com" ||
		string(cluster.CertificateAuthorityData) != "ca" {
		b.Errorf("cluster: %s", got.Raw)
	}

	want := []string{
		"oidc-login", "get-token", "--oidc-issuer-url=https://issuer.example.com", "--oidc-client-id=client",
		"--oidc-extra-scope=email", "--oidc-extra-scope=openid",
	}
	if diff := cmp.Diff(want, login.Exec.Args); diff != "" {
		b.Errorf("login: -want +got\n%s", diff)
	}

	if strings.Contains(got.Raw, "hunter2") || strings.Contains(got.Raw, "token:") {
		b.Errorf("the kubeconfig contains a secret: %s", got.Raw)
	}

	if got.Header.Get("Content-Type") != "application/x-yaml" || got.Header.Get("Access-Control-Allow-Origin") != "*" {
		b.Errorf("header: %v", got.Header)
	}
}

func TestKubeconfigForUsersWithoutAnIssuer(t *testing.T) {
	b := newBench(t, func(options *operator.Options) { options.OIDC = environment.OIDC{} })
	b.instance("one", process.Succeeded)
	b.endpoint("one", "runtime-one")

	parsed, err := clientcmd.Load([]byte(b.want("the kubeconfig lacks the address of the cluster", b.do("", "GET", "/kubeconfig/one"), http.StatusOK).Raw))
	if err != nil {
		t.Fatal(err)
	}

	if len(parsed.AuthInfos) != 0 || len(parsed.Clusters) != 1 {
		b.Errorf("kubeconfig: %+v", parsed)
	}
}

func TestKubeconfigOfARuntimeWithItsOwnIssuer(t *testing.T) {
	b := newBench(t)
	b.instance("one", process.Succeeded, func(i *environment.Instance) {
		i.Request.Cluster.OIDC = &environment.OIDC{IssuerURL: "https://own.example.com", ClientID: "own"}
	})
	b.endpoint("one", "runtime-one")

	got := b.want("the configuration of the runtime is used", b.do("", "GET", "/kubeconfig/one"), http.StatusOK).Raw
	if !strings.Contains(got, "--oidc-issuer-url=https://own.example.com") || strings.Contains(got, "https://issuer.example.com") {
		b.Errorf("the kubeconfig has the wrong issuer:\n%s", got)
	}
}

// TestMissingKubeconfigs checks that a rejection does not reveal whether an instance exists, and that no request calls the
// Provisioner.
func TestMissingKubeconfigs(t *testing.T) {
	b := newBench(t)
	b.instance("making", process.InProgress)
	b.instance("failed", process.Failed)
	b.instance("leaving", process.Succeeded)
	b.operation("leaving", environment.KindDeprovision, process.Pending)
	b.instance("bare", process.Succeeded, func(i *environment.Instance) { i.RuntimeID = "" })
	b.instance("unread", process.Succeeded)
	b.instance("resumed", process.Succeeded)

	for _, id := range []string{"making", "failed", "leaving", "bare"} {
		b.endpoint(id, "runtime-"+id)
	}

	b.endpoint("resumed", "former-runtime")

	unknown := b.want("unknown", b.do("", "GET", "/kubeconfig/unknown"), http.StatusNotFound)
	unknown.Header.Del("Date")

	for _, id := range []string{"making", "failed", "leaving", "bare", "unread", "resumed"} {
		got := b.want(id, b.do("", "GET", "/kubeconfig/"+id), http.StatusNotFound)
		got.Header.Del("Date")

		if diff := cmp.Diff(unknown, got); diff != "" {
			b.Errorf("%s differs from an unknown instance: -unknown +got\n%s", id, diff)
		}
	}

	if b.kubeconfigs.calls != 0 {
		b.Errorf("the Provisioner was called %d times, want none", b.kubeconfigs.calls)
	}
}

func TestKubeconfigsAreLimitedByAddress(t *testing.T) {
	const burst = 3

	b := newBench(t, func(options *operator.Options) {
		limit, err := auth.NewLimiter(1, burst, options.Clock)
		if err != nil {
			t.Fatal(err)
		}

		options.KubeconfigLimit = limit
	})
	b.instance("one", process.Succeeded)
	b.endpoint("one", "runtime-one")

	for range burst {
		b.want("a burst is allowed", b.do("", "GET", "/kubeconfig/one"), http.StatusOK)
	}

	got := b.want("a request beyond the burst", b.do("", "GET", "/kubeconfig/unknown"), http.StatusTooManyRequests)
	if got.Header.Get("Retry-After") != "1" {
		b.Error("Retry-After is missing")
	}

	b.want("other endpoints are not limited", b.do("viewer", "GET", "/runtimes/one"), http.StatusOK)
	b.clock.SetTime(b.clock.Now().Add(time.Second))
	b.want("the limit recovers", b.do("", "GET", "/kubeconfig/one"), http.StatusOK)
}

func TestKubeconfigsWithLogin(t *testing.T) {
	b := newBench(t, func(options *operator.Options) { options.KubeconfigLogin = true })
	b.instance("one", process.Succeeded)
	b.endpoint("one", "runtime-one")

	for user, want := range map[string]int{
		"": http.StatusUnauthorized, "platform": http.StatusForbidden, "viewer": http.StatusOK, "operator": http.StatusOK, "admin": http.StatusOK,
	} {
		b.want("as "+user, b.do(user, "GET", "/kubeconfig/one"), want)
	}
}
