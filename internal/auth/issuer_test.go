package auth_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/go-jose/go-jose/v4"
)

const audience = "environment-broker"

// issuer is an OpenID Connect issuer with a replaceable key set.
type issuer struct {
	*httptest.Server

	keys atomic.Pointer[jose.JSONWebKeySet]
	// fetches counts requests for the discovery document. While down is set, all responses are 503.
	fetches atomic.Int64
	down    atomic.Bool
	// claimed is the issuer URL in the discovery document. If it is empty, the document contains the real URL.
	claimed string
}

func newIssuer(t *testing.T, keys ...jose.JSONWebKey) *issuer {
	t.Helper()

	made := &issuer{}
	made.publish(keys...)

	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		made.fetches.Add(1)

		url := made.URL
		if made.claimed != "" {
			url = made.claimed
		}

		_ = json.NewEncoder(w).Encode(map[string]string{"issuer": url, "jwks_uri": made.URL + "/keys"})
	})
	mux.HandleFunc("GET /keys", func(w http.ResponseWriter, _ *http.Request) { _ = json.NewEncoder(w).Encode(made.keys.Load()) })

	made.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if made.down.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)

			return
		}

		mux.ServeHTTP(w, r)
	}))
	t.Cleanup(made.Close)

	return made
}

func (i *issuer) publish(keys ...jose.JSONWebKey) {
	set := &jose.JSONWebKeySet{}
	for _, key := range keys {
		set.Keys = append(set.Keys, key.Public())
	}

	i.keys.Store(set)
}

func newKey(t *testing.T, id string) jose.JSONWebKey {
	t.Helper()

	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}

	return jose.JSONWebKey{Key: key, KeyID: id, Algorithm: "ES256", Use: "sig"}
}

func sign(t *testing.T, algorithm jose.SignatureAlgorithm, key any, claims map[string]any) string {
	t.Helper()

	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: algorithm, Key: key}, nil)
	if err != nil {
		t.Fatal(err)
	}

	payload, err := json.Marshal(claims)
	if err != nil {
		t.Fatal(err)
	}

	signed, err := signer.Sign(payload)
	if err != nil {
		t.Fatal(err)
	}

	token, err := signed.CompactSerialize()
	if err != nil {
		t.Fatal(err)
	}

	return token
}
