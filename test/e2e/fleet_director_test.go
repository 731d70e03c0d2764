//go:build garden

package e2e

import (
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/environment-broker/environment-broker/internal/sandbox/fakedirector"
	"github.com/environment-broker/environment-broker/provisioner/registration"
	"github.com/environment-broker/environment-broker/storage"
)

// newDirector runs a simulated Director, and returns it with the settings of a Provisioner that registers its runtimes there.
func newDirector(t *testing.T) (simulated *fakedirector.Director, settings []string) {
	t.Helper()

	simulated, err := fakedirector.New(fakedirector.Options{})
	if err != nil {
		t.Fatal(err)
	}

	server := httptest.NewServer(simulated)
	t.Cleanup(server.Close)

	credentials := filepath.Join(t.TempDir(), "director.yaml")
	text := fmt.Sprintf("data: {client_id: %s, client_secret: %s, tokens_endpoint: %q}",
		fakedirector.DefaultClientID, fakedirector.DefaultClientSecret, server.URL+fakedirector.TokenPath)

	if err := os.WriteFile(credentials, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}

	return simulated, []string{
		"APP_DIRECTOR_ENABLED=true", "APP_DIRECTOR_URL=" + server.URL + fakedirector.GraphQLPath, "APP_DIRECTOR_OAUTH_PATH=" + credentials,
	}
}

// checkRegistered compares what stands in Director with the Provisioner's runtimes. What a blow has left there must be known to the one who
// removes it an hour later.
func (f *fleet) checkRegistered(runtimeIDs []string) {
	f.Helper()

	unsettled, err := storage.Select[string](f.Context(), f.provisionerBooks.db.Reader(), `SELECT label FROM registrations`)
	if err != nil {
		f.Fatal(err)
	}

	var registered []string

	left := 0

	for _, runtime := range f.director.Runtimes() {
		label, _ := runtime.Labels[registration.LabelOrder].(string)

		switch {
		case slices.Contains(runtimeIDs, runtime.ID):
			registered = append(registered, runtime.ID)
		case slices.Contains(unsettled, label):
			left++
		default:
			f.Errorf("runtime %s stands in Director for ever", runtime.ID)
		}
	}

	f.Logf("%d runtimes stand in Director until they are found to be nobody's", left)
	f.same("runtimes in Director", slices.Clone(runtimeIDs), registered)
}
