package auth

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/internal/program/lifecycle"
)

const (
	// maxToken is the maximum length of a token in bytes. Longer tokens are rejected unparsed, because parsing an unverified
	// token costs CPU time.
	maxToken = 16 << 10
	// skew is the tolerated difference between the clocks of the issuer and this service.
	skew = time.Minute
)

// TokenOptions configures which tokens are accepted. All fields are required.
type TokenOptions struct {
	// Issuer is the URL of the OpenID Connect issuer. It must use https, except on the loopback interface.
	Issuer string
	// Audiences are the accepted audiences. A token must name at least one of them.
	Audiences []string
	// Algorithms are the accepted signature algorithms, such as RS256. Symmetric algorithms and the algorithm "none" are not
	// supported.
	Algorithms []string
	// Rules grant roles according to claims. A rule for scope matches both the scope claim and the scp claim.
	Rules Rules
	// NameClaim is the claim that contains the client's name, such as sub.
	NameClaim string
	Client    *http.Client
	Clock     clock.Clock
}

// Tokens authenticates clients by JSON Web Tokens of an OpenID Connect issuer. The token must be signed by a key of the issuer
// with an accepted algorithm. It must name the issuer and an accepted audience, have an expiry and a name, and be valid now.
type Tokens struct {
	options TokenOptions
	keys    *keys
	rules   *oidc.Config
}

// NewTokens returns an authenticator, or an error for invalid options. It does not call the issuer, so a service can start during
// an outage of the issuer. Until the first fetch of the keys succeeds, requests with a token get 503.
func NewTokens(options TokenOptions) (*Tokens, error) {
	if err := options.check(); err != nil {
		return nil, err
	}

	return &Tokens{
		options: options,
		keys:    newKeys(options),
		rules: &oidc.Config{
			SkipClientIDCheck:    true, // there may be several audiences
			SupportedSigningAlgs: options.Algorithms,
			Now:                  func() time.Time { return options.Clock.Now().Add(-skew) },
		},
	}, nil
}

// check returns an error for the first invalid option.
func (o TokenOptions) check() error {
	if !safeText(o.Issuer) {
		return errors.New("the URL of the issuer must use https")
	}

	if len(o.Audiences) == 0 {
		return errors.New("at least one audience is required: without an audience, tokens for other services would be accepted")
	}

	if o.NameClaim == "" {
		return errors.New("a name claim is required, such as sub")
	}

	supported := []string{
		oidc.RS256, oidc.RS384, oidc.RS512, oidc.ES256, oidc.ES384, oidc.ES512, oidc.PS256, oidc.PS384, oidc.PS512, oidc.EdDSA,
	}

	for _, algorithm := range o.Algorithms {
		if !slices.Contains(supported, algorithm) {
			return fmt.Errorf("the algorithm %q is not supported: use %s", algorithm, strings.Join(supported, ", "))
		}
	}

	if len(o.Algorithms) == 0 {
		return errors.New("at least one signature algorithm is required, such as RS256")
	}

	return nil
}

// safe reports whether the address uses HTTPS or the loopback interface, so that nobody on the network can forge its responses.
func safe(address *url.URL) bool {
	return address.Scheme == "https" || address.Scheme == "http" && !BeyondLoopback(address.Hostname()+":80")
}

// safeText reports whether the text is a URL with a host that satisfies safe.
func safeText(text string) bool {
	address, err := url.Parse(text)

	return err == nil && address.Host != "" && safe(address)
}

// Part returns the lifecycle.Part that fetches the issuer's keys every keysInterval. The caller sets periodic's Clock and Log.
func (t *Tokens) Part(periodic lifecycle.Periodic) lifecycle.Part {
	periodic.Name, periodic.Every, periodic.Work = "keys of the token issuer", keysInterval, t.keys.refresh

	return periodic.Part()
}

// Challenge implements Authenticator.
func (*Tokens) Challenge() string { return `Bearer realm="environment broker"` }

// Authenticate implements Authenticator. It reads the token from an Authorization header with the Bearer scheme.
func (t *Tokens) Authenticate(r *http.Request) (Identity, error) {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return Identity{}, ErrNoCredentials
	}

	return t.Identify(r.Context(), strings.TrimSpace(token))
}

// Identify returns the client that a token identifies. It returns the same errors as Authenticate.
func (t *Tokens) Identify(ctx context.Context, token string) (Identity, error) {
	if len(token) > maxToken {
		return Identity{}, reject(fmt.Sprintf("The token is longer than %d KiB.", maxToken>>10))
	}

	verified, err := t.verify(ctx, token)
	if err != nil {
		return Identity{}, rejected(err)
	}

	if !slices.ContainsFunc(t.options.Audiences, func(ours string) bool { return slices.Contains(verified.Audience, ours) }) {
		return Identity{}, reject("The token is for a different audience.")
	}

	claims := map[string]any{}
	if err := verified.Claims(&claims); err != nil {
		return Identity{}, reject("The claims of the token cannot be read.")
	}

	name, _ := claims[t.options.NameClaim].(string)
	if name == "" {
		return Identity{}, reject(fmt.Sprintf("The token has no %q claim.", t.options.NameClaim))
	}

	attributes := textsIn(claims)

	return Identity{Name: name, Means: ByToken, Roles: t.options.Rules.roles(attributes), Attributes: attributes}, nil
}

// verify checks the signature, then the issuer and the validity period. The verifier's clock is set back by skew, so a token is
// accepted until skew after its expiry. For tokens that are not valid yet, no such correction is needed, because go-oidc has its
// own tolerance.
func (t *Tokens) verify(ctx context.Context, token string) (*oidc.IDToken, error) {
	payload, err := t.keys.verify(ctx, token)
	if err != nil {
		return nil, err
	}

	verified, err := oidc.NewVerifier(t.options.Issuer, signed(payload), t.rules).Verify(ctx, token)
	if err != nil {
		return nil, fmt.Errorf("checking a token: %w", err)
	}

	return verified, nil
}

// signed is the payload of a token with a signature that keys.verify has already checked. As an oidc.KeySet, it prevents go-oidc
// from fetching keys to check the signature again.
type signed []byte

// VerifySignature implements oidc.KeySet.
func (s signed) VerifySignature(context.Context, string) ([]byte, error) { return s, nil }

// rejected converts an error of verify. A *keysError is returned unchanged; any other error becomes a Rejection that quotes
// nothing from the token.
func rejected(err error) error {
	if _, unknown := errors.AsType[*keysError](err); unknown {
		return err
	}

	if _, expired := errors.AsType[*oidc.TokenExpiredError](err); expired {
		return reject("The token has expired.")
	}

	return reject("The token is from a different issuer, is not valid yet, or has no valid signature.")
}

// textsIn returns the values of all claims that are strings, Booleans or lists of strings. Issuers put scopes into the scope or
// scp claim, as a list or separated by spaces; textsIn returns the scopes of both claims under the name scope.
func textsIn(claims map[string]any) map[string][]string {
	found := map[string][]string{}

	for name, value := range claims {
		switch value := value.(type) {
		case string:
			found[name] = []string{value}
		case bool:
			found[name] = []string{strconv.FormatBool(value)}
		case []any:
			for _, each := range value {
				if text, ok := each.(string); ok {
					found[name] = append(found[name], text)
				}
			}
		}
	}

	var scopes []string
	for _, text := range slices.Concat(found["scope"], found["scp"]) {
		scopes = append(scopes, strings.Fields(text)...)
	}

	found["scope"] = scopes

	return found
}
