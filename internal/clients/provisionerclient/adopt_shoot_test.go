package provisionerclient_test

import (
	"net/http"
	"testing"

	"github.com/environment-broker/environment-broker/internal/clients/provisionerclient"
	"github.com/environment-broker/environment-broker/internal/failure"
)

// TestRejectedAdoptionsContainTheReason checks errors of adoptions. An adoption has no operation, so the text must not refer to a timeline.
func TestRejectedAdoptionsContainTheReason(t *testing.T) {
	t.Parallel()

	for name, tc := range map[string]struct {
		answer string
		kind   failure.Kind
		text   string
	}{
		"no such Shoot": {
			`{"message":"reading the Shoot \"shop\": Gardener has no such object","extensions":{"error_code":404,"error_component":"k8s client - gardener","error_reason":"NotFound"}}`,
			failure.NotFound, `reading the Shoot "shop": Gardener has no such object`,
		},
		"Shoot of another runtime": {
			`{"message":"the Shoot belongs to another runtime","extensions":{"error_code":409,"error_component":"provisioner","error_reason":"err_conflict"}}`,
			failure.Conflict, "the Shoot belongs to another runtime",
		},
	} {
		client, _ := playProvisioner(t, http.StatusOK, `{"errors":[`+tc.answer+`],"data":null}`)

		_, err := client.AdoptShoot(t.Context(), provisionerclient.Caller{}, provisionerclient.ShootAdoption{Instance: ordered()})
		if known := failure.Of(err); known.Kind != tc.kind || known.Text != tc.text {
			t.Errorf("%s: got %s %q, want %s %q", name, known.Kind, known.Text, tc.kind, tc.text)
		}
	}
}
