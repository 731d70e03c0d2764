package service_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/environment-broker/environment-broker/internal/clients/provisionerclient"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakegarden/gardenlet"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// operatorAPI sends a request to the operator API of the running Provisioner and decodes the response.
func operatorAPI[Body any](f fixture, method, path, body string, want int) Body {
	f.Helper()

	request, err := http.NewRequestWithContext(f.Context(), method, strings.TrimSuffix(f.url, "/graphql")+path, strings.NewReader(body))
	if err != nil {
		f.Fatal(err)
	}

	request.Header.Set("Content-Type", "application/json")

	response, err := http.DefaultClient.Do(request)
	if err != nil {
		f.Fatal(err)
	}
	defer response.Body.Close()

	text, err := io.ReadAll(response.Body)
	if err != nil {
		f.Fatal(err)
	}

	if response.StatusCode != want {
		f.Fatalf("%s %s: want %d, got %d %s", method, path, want, response.StatusCode, text)
	}

	var decoded Body
	if err := json.Unmarshal(text, &decoded); err != nil {
		f.Fatalf("decoding %s: %v", text, err)
	}

	return decoded
}

// TestOperatorRetriesAFailedCreation retries a creation that failed because a quota was exhausted, after the quota was
// raised.
func TestOperatorRetriesAFailedCreation(t *testing.T) {
	f := start(t, 200*time.Millisecond)
	f.injectFault(gardenlet.FaultQuota)

	ordered := f.provision("key", "c-first")
	if status := f.await(ordered.ID); status.State != provisionerclient.StateFailed {
		t.Fatalf("the creation is %s, want a failure", status.State)
	}

	list := operatorAPI[operatorapi.RuntimeList](f, http.MethodGet, "/runtimes?name=c-first&state=failed", "", http.StatusOK)
	if len(list.Data) != 1 || list.Data[0].RuntimeID != ordered.RuntimeID || list.Data[0].Region != "eu-central-1" {
		t.Fatalf("listed: %+v", list.Data)
	}

	shown := operatorAPI[operatorapi.Operation](f, http.MethodGet, "/operations/"+ordered.ID, "", http.StatusOK)
	if len(shown.Stages) == 0 || len(shown.Timeline) == 0 || shown.InstanceName != "c-first" || shown.Problem.Reason == "" {
		t.Fatalf("an operation has stages, a timeline, a problem and the name of its Shoot: got %+v", shown)
	}

	if err := f.garden.Client().Delete(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: f.garden.Namespace(), Name: gardenlet.FaultsConfigMap,
	}}); err != nil {
		t.Fatal(err)
	}

	again := operatorAPI[operatorapi.Operation](f, http.MethodPost, "/operations/"+ordered.ID+"/retry",
		`{"reason": "the quota was raised"}`, http.StatusAccepted)
	if again.PredecessorID != ordered.ID || again.InstanceID != ordered.RuntimeID {
		t.Fatalf("the retry is %+v", again)
	}

	f.succeeded(again.ID)

	entries := operatorAPI[operatorapi.AuditList](f, http.MethodGet, "/audit?action=retry&instance_id="+ordered.RuntimeID, "", http.StatusOK)
	if len(entries.Data) != 1 || entries.Data[0].Reason != "the quota was raised" {
		t.Errorf("the audit log has %+v", entries.Data)
	}
}
