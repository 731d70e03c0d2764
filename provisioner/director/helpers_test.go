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
	// timeout is how long a call may take.
	timeout = time.Minute
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

	return connected(t, simulated, server.URL, server.Client().Transport, change...)
}

// beginInProcess is begin without a network, so that calls take no time in a synctest bubble.
func beginInProcess(t *testing.T, options simulator.Options, change ...func(*director.Options)) landscape {
	t.Helper()

	simulated, err := simulator.New(options)
	if err != nil {
		t.Fatal(err)
	}

	return connected(t, simulated, "https://director.example.com", inProcess{simulated}, change...)
}

// inProcess answers requests itself.
type inProcess struct{ http.Handler }

// RoundTrip implements http.RoundTripper. To a handler that stops in the midst of it the connection breaks.
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

func connected(t *testing.T, simulated *simulator.Director, url string, transport http.RoundTripper, change ...func(*director.Options)) landscape {
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
