package operator_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/environment-broker/environment-broker/process"
)

// TestBodiesMustBeJSON sends an intervention with the content types that pages of other origins can send without a
// CORS preflight. The API must reject them.
func TestBodiesMustBeJSON(t *testing.T) {
	b := newBench(t)
	operation := b.instance("one", process.InProgress)

	for media, want := range map[string]int{
		"text/plain": 415, "application/x-www-form-urlencoded": 415, "multipart/form-data; boundary=x": 415, "": 415, "nonsense/": 415,
		"application/json; charset=utf-8": 202,
	} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, b.address+"/operations/"+operation+"/cancel",
			strings.NewReader(`{"reason": "a test"}`))
		if err != nil {
			t.Fatal(err)
		}

		request.SetBasicAuth("operator", "o")

		if media != "" {
			request.Header.Set("Content-Type", media)
		}

		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}

		response.Body.Close()

		if response.StatusCode != want {
			t.Errorf("%q: got %d, want %d", media, response.StatusCode, want)
		}
	}
}
