package director_test

import (
	"context"
	"net/http/httptest"
	"testing"
	"time"

	"go.uber.org/goleak"

	simulator "github.com/environment-broker/environment-broker/internal/simulator/director"
	"github.com/environment-broker/environment-broker/provisioner/director"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	tenant = "tenant-1"
	label  = "order"
)

// fixed are credentials that the test knows.
type fixed director.ClientCredentials

func (f fixed) Read(context.Context) (director.ClientCredentials, error) {
	return director.ClientCredentials(f), nil
}

// landscape is a simulated Director and a client of it.
type landscape struct {
	*testing.T

	director *simulator.Director
	client   *director.Client
}

// begin runs a Director until the test ends. The options of the client may be changed.
func begin(t *testing.T, options simulator.Options, change ...func(*director.Options)) landscape {
	t.Helper()

	simulated, err := simulator.New(options)
	if err != nil {
		t.Fatal(err)
	}

	server := httptest.NewServer(simulated)
	t.Cleanup(server.Close)

	transport := server.Client().Transport
	settings := director.Options{
		URL: server.URL + simulator.GraphQLPath, Timeout: 5 * time.Second, Transport: transport,
		Credentials: fixed{
			ClientID: simulator.DefaultClientID, ClientSecret: simulator.DefaultClientSecret, TokensEndpoint: server.URL + simulator.TokenPath,
		},
	}

	for _, each := range change {
		each(&settings)
	}

	client, err := director.New(settings)
	if err != nil {
		t.Fatal(err)
	}

	return landscape{T: t, director: simulated, client: client}
}

// register registers a runtime with a label.
func (l landscape) register(name string) string {
	l.Helper()

	id, err := l.client.Register(l.Context(), tenant, director.Runtime{
		Name: name, Description: "one of ours", Labels: map[string]any{label: name, "scenarios": []any{"DEFAULT"}},
	})
	if err != nil {
		l.Fatal(err)
	}

	return id
}
