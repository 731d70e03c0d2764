package crash

import (
	"context"
	"fmt"
	"net/http"

	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/internal/logging"
	simulator "github.com/environment-broker/environment-broker/internal/sandbox/fakedirector"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakegarden"
	"github.com/environment-broker/environment-broker/internal/secret"
	"github.com/environment-broker/environment-broker/process/crashtest"
	"github.com/environment-broker/environment-broker/provisioner/director"
	"github.com/environment-broker/environment-broker/provisioner/registration"
)

// withDirector makes the Provisioner register its runtimes in a fake Director.
func withDirector(p *provisioner) {
	p.Helper()

	simulated, err := simulator.New(simulator.Options{ConnectorURL: "https://connector.example.com"})
	if err != nil {
		p.Fatal(err)
	}

	p.director = simulated
	p.service.Registrar = &registration.Registrar{
		Director: p.directorClient(crashtest.Transparent()), Rows: p.runtimes, Project: fakegarden.DefaultProject, Clock: clock.RealClock{}, Log: logging.Discard(),
	}
}

// directorClient returns a Director client that sends its requests through the proxy of a replica.
func (p *provisioner) directorClient(proxy *crashtest.Proxy) *director.Client {
	p.Helper()

	client, err := director.New(director.Options{
		URL: "http://director.example.com" + simulator.GraphQLPath, Credentials: directorCredentials{},
		Transport: proxy.Client(p.director, directorCall).Transport,
	})
	if err != nil {
		p.Fatal(err)
	}

	return client
}

// directorCall returns the name of a request to the GraphQL API or the token endpoint of Director, which identifies the call in
// the crash matrix.
func directorCall(request *http.Request) string {
	if request.URL.Path == simulator.TokenPath {
		return simulator.TokenOperation
	}

	return operationName(request)
}

// directorCredentials are the credentials of the fake Director.
type directorCredentials struct{}

// Read implements director.Credentials.
func (directorCredentials) Read(context.Context) (director.ClientCredentials, error) {
	return director.ClientCredentials{
		ClientID: simulator.DefaultClientID, ClientSecret: secret.String(simulator.DefaultClientSecret),
		TokensEndpoint: "http://director.example.com" + simulator.TokenPath,
	}, nil
}

// registered formats the runtimes that are registered in Director. It returns nil if there is no Director.
func (p *provisioner) registered() []string {
	if p.director == nil {
		return nil
	}

	known := []string{}
	for _, runtime := range p.director.Runtimes() {
		known = append(known, fmt.Sprintf("%s: %s, cluster %v at %v", runtime.Name, runtime.Condition,
			runtime.Labels["gardenerClusterName"], runtime.Labels["gardenerClusterDomain"]))
	}

	return known
}

// console is the address of the console that every runtime has in Director.
const console = "https://console.example.com"

// consoles is a Director whose runtimes have consoles.
type consoles struct{}

func (consoles) Console(context.Context, string, string) (string, error) { return console, nil }
