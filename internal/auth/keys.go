package auth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/go-jose/go-jose/v4"
	"k8s.io/utils/clock"
)

const (
	// keysEvery is how often the keys are fetched. It bounds how long a withdrawn key is accepted.
	keysEvery = 5 * time.Minute
	// keysPause is the shortest time between two fetches. It keeps tokens with unknown key ids from flooding the issuer.
	keysPause = 10 * time.Second
	// keysTimeout bounds one fetch.
	keysTimeout = 5 * time.Second
	// maxKeysBytes bounds the issuer's responses, maxKeys the keys in them.
	maxKeysBytes = 1 << 20
	maxKeys      = 64
)

// keysError reports that a token could not be verified, because the keys of the issuer are unknown.
type keysError struct{ cause error }

func (k *keysError) Error() string {
	return "fetching the keys of the token issuer: " + k.cause.Error()
}

func (k *keysError) Unwrap() error { return k.cause }

// keys caches the public keys of an issuer. While the issuer does not answer, the known keys stay valid.
type keys struct {
	issuer     string
	client     *http.Client
	clock      clock.PassiveClock
	algorithms []jose.SignatureAlgorithm

	// fetching is a lock that a request holds while it fetches keys. It is a channel of capacity 1 and not a mutex, so that a waiting request
	// ends with its context.
	fetching chan struct{}

	mutex sync.Mutex
	known []jose.JSONWebKey
	// fetched is the time of the last fetch, failed its error.
	fetched time.Time
	failed  error
}

func newKeys(options TokenOptions) *keys {
	made := &keys{issuer: options.Issuer, client: options.Client, clock: options.Clock, fetching: make(chan struct{}, 1)}
	for _, algorithm := range options.Algorithms {
		made.algorithms = append(made.algorithms, jose.SignatureAlgorithm(algorithm))
	}

	return made
}

// verify returns the payload of a token with a valid signature. Its error is a *keysError if the keys of the issuer are unknown.
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

// matching returns the keys that may have signed a token with the header. It fetches the keys if none matches, at most every keysPause.
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

	found, due := k.lookUp(header) // another request may have fetched meanwhile
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

// lookUp returns the known keys that match, and whether it is time to fetch again.
func (k *keys) lookUp(header jose.Header) (matching []jose.JSONWebKey, due bool) {
	k.mutex.Lock()
	defer k.mutex.Unlock()

	for _, key := range k.known {
		sameID := header.KeyID == "" || key.KeyID == header.KeyID
		sameAlgorithm := key.Algorithm == "" || key.Algorithm == header.Algorithm

		if sameID && sameAlgorithm {
			matching = append(matching, key)
		}
	}

	return matching, k.clock.Since(k.fetched) >= keysPause
}

// refresh fetches the keys. After an error the known keys stay in use.
func (k *keys) refresh(ctx context.Context) error {
	// The fetch outlives the request that triggered it, because other requests need the keys too.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), keysTimeout)
	defer cancel()

	known, err := k.fetch(ctx)

	k.mutex.Lock()
	defer k.mutex.Unlock()

	k.fetched, k.failed = k.clock.Now(), err
	if err == nil {
		k.known = known
	}

	return err
}

// fetch reads the issuer's configuration and then its keys. The configuration must name the same issuer, and the URL of the keys must be
// safe, because a forged key signs valid tokens.
func (k *keys) fetch(ctx context.Context) ([]jose.JSONWebKey, error) {
	client := *k.client
	client.Transport = bounded{client.Transport}

	provider, err := oidc.NewProvider(oidc.ClientContext(ctx, &client), k.issuer)
	if err != nil {
		return nil, fmt.Errorf("fetching the configuration of the issuer: %w", err)
	}

	var described struct {
		Keys string `json:"jwks_uri"`
	}

	if err := provider.Claims(&described); err != nil {
		return nil, fmt.Errorf("reading the configuration of the issuer: %w", err)
	}

	address, err := url.Parse(described.Keys)
	if err != nil || !safe(address) {
		return nil, errors.New("the keys of the issuer are not served over https")
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

	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}

	if err := json.NewDecoder(response.Body).Decode(&set); err != nil {
		return nil, fmt.Errorf("reading the keys: %w", err)
	}

	return usable(set.Keys)
}

// usable returns the public signature keys. It skips unknown kinds of keys, which an issuer may have.
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
		return nil, fmt.Errorf("the issuer has %d usable keys, want 1 to %d", len(keys), maxKeys)
	}

	return keys, nil
}

// bounded cuts off long responses.
type bounded struct{ http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	inner := b.RoundTripper
	if inner == nil {
		inner = http.DefaultTransport
	}

	response, err := inner.RoundTrip(r)
	if err == nil {
		response.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(response.Body, maxKeysBytes), response.Body}
	}

	return response, err
}
