package adopt

import (
	"encoding/json"
	"testing"

	"github.com/environment-broker/environment-broker/internal/sandbox/kymarows"
	"github.com/environment-broker/environment-broker/storage/takeover"
)

// FuzzParameters checks that any content of the provisioning_parameters column is either rejected or results in valid JSON without the
// fields that KEB added.
func FuzzParameters(f *testing.F) {
	cipher, err := takeover.NewCipher(kymarows.Key)
	if err != nil {
		f.Fatal(err)
	}

	f.Add(`{"ers_context":{"globalaccount_id":"ga","active":null,"user_id":"ME"},"parameters":{"name":"x","targetSecret":"aws","zones":["a"]},"platform_region":"cf-eu10"}`)
	f.Add(`{"ers_context":{"sm_operator_credentials":{"clientid":"!","clientsecret":1}},"parameters":{"kubeconfig":"apiVersion: v1"}}`)
	f.Add(`{"ers_context":null,"parameters":{"kubeconfig":{},"oidc":{"clientID":null}}}`)
	f.Fuzz(func(t *testing.T, text string) {
		parsed, err := parse(text)
		if err != nil {
			return
		}

		request, _, err := parsed.request(cipher)
		if err != nil {
			return
		}

		var parameters, context map[string]any
		if json.Unmarshal(request.Parameters, &parameters) != nil || json.Unmarshal(request.Context, &context) != nil {
			t.Fatalf("%s results in %s and %s", text, request.Parameters, request.Context)
		}

		for _, name := range []string{fieldTargetSecret, fieldLicenceType} {
			if _, has := parameters[name]; has {
				t.Errorf("%s is kept in %s", name, request.Parameters)
			}
		}

		if _, has := context[fieldServiceManager]; has {
			t.Errorf("credentials are kept in %s", request.Context)
		}
	})
}
