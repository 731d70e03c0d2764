package auth

import (
	"bytes"
	"testing"
)

// FuzzKeys parses arbitrary JSON Web Key Sets. Each accepted key can verify signatures and is public.
func FuzzKeys(f *testing.F) {
	for _, seed := range []string{
		"", "{}", "null", `{"keys":null}`, `{"keys":[null,1,{}]}`, `{"keys":[{"kty":"oct","k":"AAAA"}]}`, `{"keys":[{"kty":"RSA","n":"AQAB","e":"AQAB"}]}`,
		`{"keys":[{"kty":"RSA","use":"enc","n":"AQAB","e":"AQAB"}]}`, `{"keys":[{"kty":"RSA","n":"","e":""}]}`, `{"keys":[{"kty":"EC","crv":"P-256","x":"AA","y":"AA"}]}`,
		`{"keys":[{"kty":"EC","crv":"P-256","x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU","y":"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0","kid":"k"}]}`,
		`{"keys":[{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}`, `{"keys":[{"kty":"RSA","n":"AQAB","e":"AQAB","x5c":["AA=="]}]}`,
	} {
		f.Add([]byte(seed))
	}

	f.Fuzz(func(t *testing.T, content []byte) {
		keys, err := parseKeys(bytes.NewReader(content))
		if err == nil && (len(keys) == 0 || len(keys) > maxKeys) {
			t.Errorf("%d keys are accepted", len(keys))
		}

		for _, key := range keys {
			if !key.Valid() || !key.IsPublic() {
				t.Errorf("a key that is not valid or not public is accepted: %q", content)
			}
		}
	})
}
