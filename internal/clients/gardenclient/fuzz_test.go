package gardenclient_test

import (
	"bytes"
	"io"
	"net/http"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/environment-broker/environment-broker/internal/clients/gardenclient"
	"github.com/environment-broker/environment-broker/internal/failure"
)

// fixed responds to every request with the same content.
type fixed struct{ content []byte }

func (f fixed) RoundTrip(request *http.Request) (*http.Response, error) {
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Request: request,
		Body: io.NopCloser(bytes.NewReader(f.content)),
	}, nil
}

// FuzzObjects checks that every response of an API server is either decoded or a transient error.
func FuzzObjects(f *testing.F) {
	for _, seed := range []string{
		`{"metadata": {"name": "a", "labels": {"hyperscalerType": "aws", "dirty": "true"}, "resourceVersion": "1"}}`,
		`{"items": [{"metadata": {"name": "c-1"}, "spec": {"credentialsBindingName": "a", "secretBindingName": "a"}}]}`,
		`{"items": [null]}`, `{"items": {}}`, `[]`, `{"metadata": {"labels": {"dirty": true}}}`,
	} {
		f.Add([]byte(seed))
	}

	f.Fuzz(func(t *testing.T, content []byte) {
		if bytes.Contains(content, []byte("continue")) {
			t.Skip("the same page would follow again")
		}

		client, err := gardenclient.New(&rest.Config{Host: "http://garden", Transport: fixed{content}}, gardenclient.Options{
			Namespace: "garden-local", Kind: gardenclient.CredentialsBinding,
		})
		if err != nil {
			t.Fatal(err)
		}

		check := func(err error) {
			if err != nil && !failure.Is(err, failure.Transient) {
				t.Errorf("got %v of kind %s, want a transient error", err, failure.KindOf(err))
			}
		}

		_, err = client.Account(t.Context(), "a")
		check(err)

		_, err = client.Accounts(t.Context(), "")
		check(err)

		shoots, err := client.Shoots(t.Context())
		check(err)

		if _, unnamed := shoots[""]; unnamed {
			t.Errorf("Shoots without an account are listed under an empty name: %v", shoots)
		}
	})
}
