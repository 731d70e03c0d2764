package auth

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/go-jose/go-jose/v4"
	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/internal/httpserver/bounds"
)

const (
	// keysInterval is the interval at which the background work fetches the keys. While the issuer is reachable, a key that the
	// issuer withdraws is accepted for at most this long.
	keysInterval = 5 * time.Minute
	// keysPause is the minimum time between two fetches that requests trigger. Without the pause, a client could flood the issuer
	// by sending tokens with unknown key IDs.
	keysPause = 10 * time.Second
	// keysTimeout is the time limit for one fetch, which consists of two requests: for the issuer's discovery document and for
	// the keys.
	keysTimeout = 5 * time.Second
	// maxKeysBytes bounds the size of each response of the issuer in bytes; maxKeys bounds the number of keys. Real issuers
	// publish fewer than ten keys.
	maxKeysBytes = 1 << 20
	maxKeys      = 64
)

// keysError reports that a token could not be verified because fetching the issuer's keys failed. The client gets 503 and not
// 401, because the token may be valid.
type keysError struct{ cause error }

// Error returns a message with the cause.
func (k *keysError) Error() string {
	return "fetching the keys of the token issuer: " + k.cause.Error()
}

// Unwrap returns the cause.
func (k *keysError) Unwrap() error { return k.cause }

// keys caches the public keys of an issuer. During an outage of the issuer, the cached keys stay valid. The key set of go-oidc is
// not suitable: it fetches the keys for every unknown key ID, and does not distinguish an outage from an invalid signature.
type keys struct {
	issuer     string
	client     *http.Client
	clock      clock.PassiveClock
	algorithms []jose.SignatureAlgorithm

	// fetching is a lock that a request acquires to fetch keys. It is a channel with capacity 1 rather than a mutex, so a waiting
	// request can give up when its context ends.
	fetching chan struct{}

	mutex  sync.Mutex
	cached []jose.JSONWebKey
	// fetched is the time of the last fetch, successful or not.
	fetched time.Time
	// failed is the error of the last fetch, or nil.
	failed error
}

// newKeys returns an empty cache. The keys are first fetched by the background work or by the first request with a token,
// whichever comes first.
func newKeys(options TokenOptions) *keys {
	made := &keys{issuer: options.Issuer, client: options.Client, clock: options.Clock, fetching: make(chan struct{}, 1)}
	for _, algorithm := range options.Algorithms {
		made.algorithms = append(made.algorithms, jose.SignatureAlgorithm(algorithm))
	}

	return made
}

// verify returns the payload of a token with a valid signature. The error is a *keysError if the issuer's keys could not be
// fetched; any other error means that the token is invalid.
func (k *keys) verify(ctx context.Context, token string) ([]byte, error) {
	signed, err := jose.ParseSigned(token, k.algorithms)
	if err != nil || len(signed.Signatures) != 1 {
		return nil, errors.Join(errors.New("parsing the token"), err)
	}

	matching, err := k.matching(ctx, signed.Signatures[0].Header)
	if err != nil {
		return nil, err
	}

	for _, key := range matching {
		if payload, err := signed.Verify(key.Key); err == nil {
			return payload, nil
		}
	}

	return nil, errors.New("the token is not signed by a key of the issuer")
}

// matching returns the keys that may have signed a token with this header. If no cached key matches, the issuer may have rotated
// its keys, so matching fetches them. All requests together fetch the keys at most once per keysPause.
func (k *keys) matching(ctx context.Context, header jose.Header) ([]jose.JSONWebKey, error) {
	if found, _ := k.lookUp(header); len(found) > 0 {
		return found, nil
	}

	select {
	case k.fetching <- struct{}{}:
		defer func() { <-k.fetching }()
	case <-ctx.Done():
		return nil, &keysError{cause: ctx.Err()}
	}

	found, due := k.lookUp(header) // another request may have fetched the keys while this one waited for the lock
	if len(found) == 0 && due {
		if err := k.refresh(ctx); err == nil {
			found, _ = k.lookUp(header)
		}
	}

	k.mutex.Lock()
	defer k.mutex.Unlock()

	if len(found) == 0 && k.failed != nil {
		return nil, &keysError{cause: k.failed}
	}

	return found, nil
}

// lookUp returns the cached keys that match the header. It also reports whether keysPause has passed since the last fetch. A
// header without a key ID matches every key.
func (k *keys) lookUp(header jose.Header) (matching []jose.JSONWebKey, due bool) {
	k.mutex.Lock()
	defer k.mutex.Unlock()

	for _, key := range k.cached {
		sameID := header.KeyID == "" || key.KeyID == header.KeyID
		sameAlgorithm := key.Algorithm == "" || key.Algorithm == header.Algorithm

		if sameID && sameAlgorithm {
			matching = append(matching, key)
		}
	}

	return matching, k.clock.Since(k.fetched) >= keysPause
}

// refresh fetches the keys and replaces the cached keys. If the fetch fails, the cached keys stay in use.
func (k *keys) refresh(ctx context.Context) error {
	// The fetch continues even if the client of this request disconnects, because other requests need the keys too.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), keysTimeout)
	defer cancel()

	received, err := k.fetch(ctx)

	k.mutex.Lock()
	defer k.mutex.Unlock()

	k.fetched, k.failed = k.clock.Now(), err
	if err == nil {
		k.cached = received
	}

	return err
}

// fetch reads the issuer's discovery document and then the keys. The document must name the same issuer, and the URL of the keys
// must use HTTPS or the loopback interface, because an attacker who can replace the keys can sign valid tokens.
func (k *keys) fetch(ctx context.Context) ([]jose.JSONWebKey, error) {
	client := k.bounded()

	provider, err := oidc.NewProvider(oidc.ClientContext(ctx, client), k.issuer)
	if err != nil {
		return nil, fmt.Errorf("fetching the configuration of the issuer: %w", err)
	}

	var described struct {
		Keys string `json:"jwks_uri"`
	}

	if err := provider.Claims(&described); err != nil {
		return nil, fmt.Errorf("reading the configuration of the issuer: %w", err)
	}

	if !safeText(described.Keys) {
		return nil, errors.New("the URL of the issuer's keys does not use https")
	}

	request, err := http.NewRequestWithContext(ctx, http.MethodGet, described.Keys, http.NoBody)
	if err != nil {
		return nil, fmt.Errorf("fetching the keys: %w", err)
	}

	response, err := client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("fetching the keys: %w", err)
	}
	defer response.Body.Close() //nolint:errcheck // read to the end

	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("fetching the keys: status %d", response.StatusCode)
	}

	return parseKeys(response.Body)
}

// bounded returns an HTTP client for calls to the issuer that limits the size of responses.
func (k *keys) bounded() *http.Client {
	client := *k.client
	client.Transport = bounds.Responses(maxKeysBytes)(cmp.Or(client.Transport, http.DefaultTransport))

	return &client
}

// parseKeys decodes a JSON Web Key Set and returns its usable keys.
func parseKeys(from io.Reader) ([]jose.JSONWebKey, error) {
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}

	if err := json.NewDecoder(from).Decode(&set); err != nil {
		return nil, fmt.Errorf("reading the keys: %w", err)
	}

	return usable(set.Keys)
}

// usable decodes a key set and returns its public signing keys. It skips encryption keys and keys of unknown types. It returns an
// error if there are more than maxKeys. It also returns an error if no keys remain, because the service would then reject all
// tokens.
func usable(encoded []json.RawMessage) ([]jose.JSONWebKey, error) {
	var keys []jose.JSONWebKey

	for _, each := range encoded {
		var key jose.JSONWebKey
		if err := key.UnmarshalJSON(each); err != nil || !key.Valid() || !key.IsPublic() || key.Use != "" && key.Use != "sig" {
			continue
		}

		keys = append(keys, key)
	}

	if len(keys) == 0 || len(keys) > maxKeys {
		return nil, fmt.Errorf("the issuer has %d usable keys; it must have 1 to %d", len(keys), maxKeys)
	}

	return keys, nil
}
