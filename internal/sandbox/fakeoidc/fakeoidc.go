// Package fakeoidc is an OpenID Connect issuer for tests. It supports the authorization code flow with PKCE, for one client and
// one user, and shows no login page.
package fakeoidc

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/environment-broker/environment-broker/internal/sandbox/simulator"
)

// Issuer is a running OpenID Connect issuer. Its fields may be changed while no request is in progress.
type Issuer struct {
	*httptest.Server

	// ClientID and ClientSecret identify the client. Without a secret, the client is public.
	ClientID, ClientSecret string
	// Redirect is the only redirect URI that the issuer accepts.
	Redirect string
	// Claims are the claims of the user, such as sub. A claim here replaces the issuer's claim with the same name.
	Claims map[string]any
	// TokenStatus, if not 0, is the HTTP status of all token responses.
	TokenStatus int
	// TokenBody, if not empty, is the body of all token responses.
	TokenBody string
	// Deny makes the login fail, as if the user had refused it.
	Deny bool

	key jose.JSONWebKey

	mutex sync.Mutex
	codes map[string]url.Values
}

// New starts an issuer that lets one user log in. Close stops it.
func New(clientID, redirect string, claims map[string]any) (*Issuer, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err //nolint:wrapcheck // not reached
	}

	issuer := &Issuer{
		ClientID: clientID, Redirect: redirect, Claims: claims, codes: map[string]url.Values{},
		key: jose.JSONWebKey{Key: key, KeyID: "one", Algorithm: "ES256", Use: "sig"},
	}

	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/openid-configuration", issuer.describe)
	mux.HandleFunc("GET /keys", func(w http.ResponseWriter, _ *http.Request) {
		simulator.WriteJSON(w, http.StatusOK, jose.JSONWebKeySet{Keys: []jose.JSONWebKey{issuer.key.Public()}})
	})
	mux.HandleFunc("GET /authorize", issuer.authorize)
	mux.HandleFunc("POST /token", issuer.token)

	issuer.Server = httptest.NewServer(mux)

	return issuer, nil
}

func (i *Issuer) describe(w http.ResponseWriter, _ *http.Request) {
	simulator.WriteJSON(w, http.StatusOK, map[string]any{
		"issuer": i.URL, "authorization_endpoint": i.URL + "/authorize", "token_endpoint": i.URL + "/token", "jwks_uri": i.URL + "/keys",
		"id_token_signing_alg_values_supported": []string{"ES256"},
	})
}

// authorize redirects the browser to the client with an authorization code, or with an error if Deny is set. It rejects requests
// that lack PKCE, state or nonce.
func (i *Issuer) authorize(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()

	if query.Get("client_id") != i.ClientID || query.Get("redirect_uri") != i.Redirect || query.Get("response_type") != "code" ||
		query.Get("code_challenge_method") != "S256" || query.Get("code_challenge") == "" || query.Get("state") == "" || query.Get("nonce") == "" {
		http.Error(w, "the client's authorization request is invalid", http.StatusBadRequest)

		return
	}

	sent := url.Values{"state": {query.Get("state")}}

	if i.Deny {
		sent.Set("error", "access_denied")
	} else {
		code := rand.Text()

		i.mutex.Lock()
		i.codes[code] = query
		i.mutex.Unlock()

		sent.Set("code", code)
	}

	http.Redirect(w, r, i.Redirect+"?"+sent.Encode(), http.StatusFound)
}

// token exchanges a code for an ID token. It accepts each code only once.
func (i *Issuer) token(w http.ResponseWriter, r *http.Request) {
	if i.TokenBody != "" || i.TokenStatus != 0 {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(max(i.TokenStatus, http.StatusOK))
		_, _ = w.Write([]byte(i.TokenBody))

		return
	}

	id, secret, sent := r.BasicAuth()
	if !sent {
		id, secret = r.PostFormValue("client_id"), r.PostFormValue("client_secret")
	}

	i.mutex.Lock()
	login, known := i.codes[r.PostFormValue("code")]
	delete(i.codes, r.PostFormValue("code"))
	i.mutex.Unlock()

	challenge := sha256.Sum256([]byte(r.PostFormValue("code_verifier")))

	if !known || id != i.ClientID || secret != i.ClientSecret || r.PostFormValue("redirect_uri") != i.Redirect ||
		base64.RawURLEncoding.EncodeToString(challenge[:]) != login.Get("code_challenge") {
		simulator.WriteJSON(w, http.StatusBadRequest, map[string]string{"error": "invalid_grant"})

		return
	}

	token, err := i.Sign(login.Get("nonce"))
	if err != nil {
		simulator.WriteJSON(w, http.StatusInternalServerError, map[string]string{"error": "server_error"})

		return
	}

	simulator.WriteJSON(w, http.StatusOK, map[string]any{"access_token": rand.Text(), "token_type": "Bearer", "expires_in": 60, "id_token": token})
}

// Sign returns an ID token for the user, with the given nonce.
func (i *Issuer) Sign(nonce string) (string, error) {
	claims := map[string]any{
		"iss": i.URL, "aud": i.ClientID, "nonce": nonce, "iat": time.Now().Unix(), "exp": time.Now().Add(time.Minute).Unix(),
	}
	maps.Copy(claims, i.Claims)

	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: i.key}, nil)
	if err != nil {
		return "", err //nolint:wrapcheck // not reached
	}

	payload, err := json.Marshal(claims)
	if err != nil {
		return "", err //nolint:wrapcheck // a test has set invalid claims
	}

	signed, err := signer.Sign(payload)
	if err != nil {
		return "", err //nolint:wrapcheck // not reached
	}

	return signed.CompactSerialize() //nolint:wrapcheck // never fails
}
