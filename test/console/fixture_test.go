package console

import (
	"net"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	broker "github.com/environment-broker/environment-broker/broker/service"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakeoidc"
	"github.com/environment-broker/environment-broker/internal/sandbox/freeport"
	provisioner "github.com/environment-broker/environment-broker/provisioner/service"
	"github.com/environment-broker/environment-broker/test/harness"
)

// Names and passwords of the users of the console.
const (
	viewer, operator, admin = "vera", "olga", "adam"
	password                = "correct horse"
	users                   = harness.User + ":" + harness.Password + ":osb+admin," +
		viewer + ":" + password + ":viewer," + operator + ":" + password + ":operator," + admin + ":" + password + ":admin"
)

// fixture is an environment with a console on PostgreSQL.
type fixture struct {
	*harness.Environment

	client harness.Client
	issuer *fakeoidc.Issuer
	base   string
}

// start runs an environment until the test ends. creation is the time that the garden takes to create a cluster.
func start(t *testing.T, creation time.Duration, change ...func(*broker.Config)) *fixture {
	t.Helper()

	port, err := freeport.Draw(t.Context())
	if err != nil {
		t.Fatal(err)
	}

	f := &fixture{}
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	f.base = "http://" + address

	if f.issuer, err = fakeoidc.New("console", f.base+"/console/login/callback", map[string]any{"sub": "tom", "email": "tom@example.com"}); err != nil {
		t.Fatal(err)
	}

	t.Cleanup(f.issuer.Close)

	f.Environment = harness.Start(t, harness.Options{
		Database: harness.Postgres, ClusterCreation: creation,
		Configure: func(settings *broker.Config, _ *provisioner.Config) {
			settings.Address, settings.PublicURL, settings.AuthBasicUsers = address, f.base, users
			settings.Access.OIDC.IssuerURL, settings.Access.OIDC.Audience = f.issuer.URL, []string{"environment-broker"}
			settings.Console.OIDCClientID, settings.Console.TenantNameClaim = "console", "email"

			for _, apply := range change {
				apply(settings)
			}
		},
	})
	f.client = harness.Client{TB: t, Endpoint: f.Broker.Endpoint}

	return f
}

// order orders an instance whose administrator is the user of the issuer, and returns the address of the instance's dashboard.
func (f *fixture) order(id, name string) string {
	f.Helper()

	order := harness.Order(harness.PlanAWS)
	order["parameters"] = map[string]any{"name": name, "administrators": []string{"tom@example.com"}}

	return f.client.Send(http.MethodPut, harness.InstancePath(id)+harness.Incomplete, order, http.StatusAccepted).Text("dashboard_url")
}

// logIn logs in to the console as one of its users.
func (b browser) logIn(user string) {
	b.Helper()
	b.logInWith(user, password)
}

// logInWith logs in to the console with the given user name, which may contain any characters, and password.
func (b browser) logInWith(user, password string) {
	b.Helper()
	b.visit("/console/login")
	b.run(
		chromedp.SetValue("#user", user, chromedp.ByQuery), chromedp.SendKeys("#password", password, chromedp.ByQuery),
		chromedp.Submit("#password", chromedp.ByQuery),
	)
	b.wait("the first page", "!location.pathname.startsWith('/console/login') && document.readyState == 'complete'")
}
