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
	// keysEvery is how often the issuer is asked for its keys: what it has withdrawn is not accepted for longer.
	keysEvery = 5 * time.Minute
	// keysPause is how soon it is asked again because of a token that names a key that is not known.
	keysPause = 10 * time.Second
	// keysTimeout bounds one question.
	keysTimeout = 5 * time.Second
	// largestKeys bounds the issuer's answers, in bytes, mostKeys what is kept of them.
	largestKeys = 1 << 20
	mostKeys    = 64
)

// keysError tells that a token could not be checked, because the issuer did not tell its keys.
type keysError struct{ cause error }

func (k *keysError) Error() string {
	return "the keys of the token issuer cannot be had: " + k.cause.Error()
}

func (k *keysError) Unwrap() error { return k.cause }

// keys are those of an issuer. While the issuer is away, those that are known go on.
type keys struct {
	issuer     string
	client     *http.Client
	clock      clock.PassiveClock
	algorithms []jose.SignatureAlgorithm

	// asking is held by whoever asks the issuer because of a token.
	asking chan struct{}

	mutex sync.Mutex
	known []jose.JSONWebKey
	asked time.Time
	// failed is why the issuer was asked last without success.
	failed error
}

func newKeys(options TokenOptions) *keys {
	made := &keys{issuer: options.Issuer, client: options.Client, clock: options.Clock, asking: make(chan struct{}, 1)}
	for _, algorithm := range options.Algorithms {
		made.algorithms = append(made.algorithms, jose.SignatureAlgorithm(algorithm))
	}

	return made
}

// verify returns what a key of the issuer has signed. Its error is a *keysError where the issuer does not tell its keys.
func (k *keys) verify(ctx context.Context, token string) ([]byte, error) {
	signed, err := jose.ParseSigned(token, k.algorithms)
	if err != nil || len(signed.Signatures) != 1 {
		return nil, errors.Join(errors.New("the token cannot be read"), err)
	}

	fitting, err := k.fitting(ctx, signed.Signatures[0].Header)
	if err != nil {
		return nil, err
	}

	for _, key := range fitting {
		if payload, err := signed.Verify(key.Key); err == nil {
			return payload, nil
		}
	}

	return nil, errors.New("no key of the issuer has signed the token")
}

// fitting returns the keys by which a token with the header may be signed. Where none is known the issuer is asked, seldom.
func (k *keys) fitting(ctx context.Context, header jose.Header) ([]jose.JSONWebKey, error) {
	if found, _ := k.look(header); len(found) > 0 {
		return found, nil
	}

	select {
	case k.asking <- struct{}{}:
		defer func() { <-k.asking }()
	case <-ctx.Done():
		return nil, &keysError{cause: ctx.Err()}
	}

	found, due := k.look(header) // somebody else may have asked meanwhile
	if len(found) == 0 && due {
		if err := k.refresh(ctx); err == nil {
			found, _ = k.look(header)
		}
	}

	k.mutex.Lock()
	defer k.mutex.Unlock()

	if len(found) == 0 && k.failed != nil {
		return nil, &keysError{cause: k.failed}
	}

	return found, nil
}

// look returns the keys that are known, and whether the issuer may be asked for others.
func (k *keys) look(header jose.Header) (fitting []jose.JSONWebKey, due bool) {
	k.mutex.Lock()
	defer k.mutex.Unlock()

	for _, key := range k.known {
		sameID := header.KeyID == "" || key.KeyID == header.KeyID
		sameAlgorithm := key.Algorithm == "" || key.Algorithm == header.Algorithm

		if sameID && sameAlgorithm {
			fitting = append(fitting, key)
		}
	}

	return fitting, k.clock.Since(k.asked) >= keysPause
}

// refresh asks the issuer for its keys.
func (k *keys) refresh(ctx context.Context) error {
	// The question does not end with the request that was its cause: others need the answer too.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), keysTimeout)
	defer cancel()

	known, err := k.ask(ctx)

	k.mutex.Lock()
	defer k.mutex.Unlock()

	k.asked, k.failed = k.clock.Now(), err
	if err == nil {
		k.known = known
	}

	return err
}

func (k *keys) ask(ctx context.Context) ([]jose.JSONWebKey, error) {
	client := *k.client
	client.Transport = bounded{client.Transport}

	provider, err := oidc.NewProvider(oidc.ClientContext(ctx, &client), k.issuer)
	if err != nil {
		return nil, fmt.Errorf("asking the issuer about itself: %w", err)
	}

	var described struct {
		Keys string `json:"jwks_uri"`
	}

	if err := provider.Claims(&described); err != nil {
		return nil, fmt.Errorf("reading what the issuer tells of itself: %w", err)
	}

	address, err := url.Parse(described.Keys)
	if err != nil || !safe(address) {
		return nil, errors.New("the issuer does not tell its keys over https")
	}

	request, err := http.NewRequestWithContext(ctx, http.MethodGet, described.Keys, http.NoBody)
	if err != nil {
		return nil, fmt.Errorf("asking the issuer for its keys: %w", err)
	}

	response, err := client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("asking the issuer for its keys: %w", err)
	}
	defer response.Body.Close() //nolint:errcheck // it was read

	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the issuer answers with status %d for its keys", response.StatusCode)
	}

	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}

	if err := json.NewDecoder(response.Body).Decode(&set); err != nil {
		return nil, fmt.Errorf("reading the issuer's keys: %w", err)
	}

	return usable(set.Keys)
}

// usable returns the public keys for signatures. Keys of a kind that is not known are passed by: an issuer may have some.
func usable(encoded []json.RawMessage) ([]jose.JSONWebKey, error) {
	var keys []jose.JSONWebKey

	for _, each := range encoded {
		var key jose.JSONWebKey
		if err := key.UnmarshalJSON(each); err != nil || !key.Valid() || !key.IsPublic() || key.Use != "" && key.Use != "sig" {
			continue
		}

		keys = append(keys, key)
	}

	if len(keys) == 0 || len(keys) > mostKeys {
		return nil, fmt.Errorf("the issuer has %d keys that could be used, there have to be 1 to %d", len(keys), mostKeys)
	}

	return keys, nil
}

// bounded cuts answers that are too long.
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
		}{io.LimitReader(response.Body, largestKeys), response.Body}
	}

	return response, err
}
