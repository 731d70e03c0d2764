package director_test

import (
	"cmp"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"go.uber.org/goleak"

	simulator "github.com/environment-broker/environment-broker/internal/sandbox/fakedirector"
	"github.com/environment-broker/environment-broker/provisioner/director"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	tenant = "tenant-1"
	label  = "order"
	// timeout bounds each call by the client.
	timeout = time.Minute
)

// fixed implements director.Credentials with constant values.
type fixed director.ClientCredentials

func (f fixed) Read(context.Context) (director.ClientCredentials, error) {
	return director.ClientCredentials(f), nil
}

// fixture is a fake Director with a client under test.
type fixture struct {
	*testing.T

	director *simulator.Director
	client   *director.Client
}

// newFixture runs a fake Director until the test ends. change modifies the options of the client.
func newFixture(t *testing.T, options simulator.Options, change ...func(*director.Options)) fixture {
	t.Helper()

	simulated, err := simulator.New(options)
	if err != nil {
		t.Fatal(err)
	}

	server := httptest.NewServer(simulated)
	t.Cleanup(server.Close)

	return connected(t, simulated, server.URL, server.Client().Transport, change...)
}

// newInProcess is newFixture without a network, so that calls take no time in a synctest bubble.
func newInProcess(t *testing.T, options simulator.Options, change ...func(*director.Options)) fixture {
	t.Helper()

	simulated, err := simulator.New(options)
	if err != nil {
		t.Fatal(err)
	}

	return connected(t, simulated, "https://director.example.com", inProcess{simulated}, change...)
}

// inProcess is a transport that calls the handler directly, without a network.
type inProcess struct{ http.Handler }

func (p inProcess) RoundTrip(request *http.Request) (answer *http.Response, err error) {
	defer func() {
		if recover() != nil {
			err = cmp.Or(request.Context().Err(), io.ErrUnexpectedEOF)
		}
	}()

	recorder := httptest.NewRecorder()
	p.ServeHTTP(recorder, request)

	return recorder.Result(), nil
}

func connected(t *testing.T, simulated *simulator.Director, url string, transport http.RoundTripper, change ...func(*director.Options)) fixture {
	t.Helper()

	settings := director.Options{
		URL: url + simulator.GraphQLPath, Timeout: timeout, Transport: transport,
		Credentials: fixed{
			ClientID: simulator.DefaultClientID, ClientSecret: simulator.DefaultClientSecret, TokensEndpoint: url + simulator.TokenPath,
		},
	}

	for _, each := range change {
		each(&settings)
	}

	client, err := director.New(settings)
	if err != nil {
		t.Fatal(err)
	}

	return fixture{T: t, director: simulated, client: client}
}

// register registers a runtime labeled with its name and returns its ID.
func (f fixture) register(name string) string {
	f.Helper()

	id, err := f.client.Register(f.Context(), tenant, director.Runtime{
		Name: name, Description: "test runtime", Labels: map[string]any{label: name, "scenarios": []any{"DEFAULT"}},
	})
	if err != nil {
		f.Fatal(err)
	}

	return id
}
