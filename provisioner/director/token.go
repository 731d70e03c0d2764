package director

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/httpserver/bounds"
	"github.com/environment-broker/environment-broker/internal/upstream"
)

// longestToken is the maximum size of the token endpoint's response, in bytes.
const longestToken = 1 << 20

// scopes returns the OAuth scopes that the Provisioner needs in Director.
func scopes() []string { return []string{"runtime:read", "runtime:write"} }

// newTokens returns an empty cache of access tokens. It limits the size of the token endpoint's responses, which the OAuth
// library does not.
func newTokens(credentials Credentials, client *http.Client) *upstream.Tokens {
	limited := *client
	limited.Transport = bounds.Responses(longestToken)(client.Transport)

	request := func(ctx context.Context) (upstream.Token, error) {
		current, err := credentials.Read(ctx)
		if err != nil {
			return upstream.Token{}, denied(err, "reading the credentials for Director failed")
		}

		config := clientcredentials.Config{
			ClientID: current.ClientID, ClientSecret: current.ClientSecret.Reveal(), TokenURL: current.TokensEndpoint,
			Scopes: scopes(), AuthStyle: oauth2.AuthStyleInHeader,
		}

		token, err := config.Token(context.WithValue(ctx, oauth2.HTTPClient, &limited))
		if err != nil {
			return upstream.Token{}, refusedToken(ctx, err)
		}

		return upstream.Token{Value: token.AccessToken, Expiry: token.Expiry}, nil
	}

	return upstream.NewTokens(request, func(ctx context.Context) error {
		return failure.Wrap(failure.Transient, ctx.Err(), "the token endpoint of Director did not respond in time").
			WithReason(failure.ReasonTimeout, failure.ComponentDirectorToken)
	})
}

// refusedToken turns an error of the token request into a failure.Error. Its text contains neither the address nor the response,
// which may contain secrets.
func refusedToken(ctx context.Context, err error) error {
	if typed, ok := errors.AsType[*failure.Error](err); ok { // The concurrency limit or the circuit breaker rejected the request.
		return typed
	}

	answer, answered := errors.AsType[*oauth2.RetrieveError](err)

	switch {
	case errors.Is(err, context.DeadlineExceeded), ctx.Err() != nil:
		return failure.Wrap(failure.Transient, context.Cause(ctx), "the token endpoint of Director did not respond in time").
			WithReason(failure.ReasonTimeout, failure.ComponentDirectorToken)
	case answered && answer.Response.StatusCode < http.StatusInternalServerError:
		status := fmt.Errorf("HTTP status %d", answer.Response.StatusCode)

		return denied(status, "the token endpoint of Director rejects the credentials")
	case answered:
		return failure.New(failure.Transient, "the token endpoint of Director responded with HTTP status %d", answer.Response.StatusCode).
			WithReason(failure.ReasonHTTPStatus, failure.ComponentDirectorToken)
	}

	cause := errors.New(upstream.Excerpt(upstream.WithoutURL(err).Error()))

	return failure.Wrap(failure.Transient, cause, "the token endpoint of Director cannot be reached or returns no token").
		WithReason(failure.ReasonInternal, failure.ComponentDirectorToken)
}

// denied returns the error for missing, malformed or rejected credentials. It is transient: operations retry until an operator
// corrects the credentials.
func denied(cause error, said string) error {
	return failure.Wrap(failure.Transient, cause, "%s: an operator must correct the credentials in APP_DIRECTOR_OAUTH_PATH or APP_OAUTH_CREDENTIALS_SECRET_NAME",
		said).WithReason("Unauthorized", failure.ComponentDirectorToken)
}
