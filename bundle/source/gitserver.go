package source

import (
	"context"
	"errors"
	"io"
	"net/http"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/transport"
	githttp "github.com/go-git/go-git/v5/plumbing/transport/http"

	"github.com/environment-broker/environment-broker/bundle/api/v1alpha1"
	"github.com/environment-broker/environment-broker/bundle/archive"
	"github.com/environment-broker/environment-broker/internal/failure"
)

// gitServer is a connection to a Git repository.
type gitServer interface {
	AdvertisedReferencesContext(ctx context.Context) (*packp.AdvRefs, error)
	UploadPack(ctx context.Context, request *packp.UploadPackRequest) (*packp.UploadPackResponse, error)
	Close() error
}

// connect opens a connection to the repository. It also returns the host, for messages.
func (s *gitSource) connect(ctx context.Context, source v1alpha1.GitSource, folder string) (gitServer, string, error) {
	endpoint, err := transport.NewEndpoint(source.Repository)
	if err != nil {
		return nil, "", terminal("source.git.repository is not a valid address: write https://HOST/PATH, or ssh://git@HOST/PATH")
	}

	switch {
	case endpoint.Password != "" || endpoint.User != "" && endpoint.Protocol != "ssh":
		return nil, "", terminal("source.git.repository contains credentials: move them to a Secret, and name it in source.git.auth.secret")
	case endpoint.Protocol == "https" || endpoint.Protocol == "http":
		server, err := s.connectHTTP(ctx, endpoint, source.Auth)

		return server, endpoint.Host, err
	case endpoint.Protocol == "ssh":
		server, err := s.connectSSH(ctx, endpoint, source.Auth, folder)

		return server, endpoint.Host, err
	default:
		return nil, "", terminal("source.git.repository has the scheme %s: use https, http or ssh", endpoint.Protocol)
	}
}

// httpServer is a connection over HTTP.
type httpServer struct {
	transport.UploadPackSession

	client *http.Client
}

// Close implements gitServer.
func (s *httpServer) Close() error {
	s.client.CloseIdleConnections()

	return s.UploadPackSession.Close()
}

// connectHTTP returns a connection over HTTP, with basic authentication if the source names a Secret. It does not call the server
// yet.
func (s *gitSource) connectHTTP(ctx context.Context, endpoint *transport.Endpoint, authorization v1alpha1.Authorization) (gitServer, error) {
	client, err := newClient(authorization.InsecureSkipVerify, "")
	if err != nil {
		return nil, err
	}

	client.Transport = &boundedTransport{client.Transport, s.options.Limits.CompressedBytes}

	var login transport.AuthMethod

	if name := authorization.Secret.Name; name != "" {
		secret, err := s.objects.secret(ctx, name, usernameKey, passwordKey)
		if err != nil {
			return nil, err
		}

		login = &githttp.BasicAuth{Username: string(secret[usernameKey]), Password: string(secret[passwordKey])}
	}

	session, err := githttp.NewClient(client).NewUploadPackSession(endpoint, login)
	if err != nil {
		return nil, err
	}

	return &httpServer{session, client}, nil
}

// boundedTransport limits the size of responses, because go-git reads lists of references into memory.
type boundedTransport struct {
	http.RoundTripper

	bytes int64
}

// RoundTrip implements http.RoundTripper.
func (b *boundedTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := b.RoundTripper.RoundTrip(request)
	if err == nil {
		const overhead = 1 << 20 // the protocol's own data

		response.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(response.Body, b.bytes+b.bytes/100+overhead), response.Body}
	}

	return response, err
}

// gitError converts an error of a Git connection to a message for users. It does not quote the server's response.
func gitError(ctx context.Context, host string, err error) error {
	if unexpected, ok := errors.AsType[*plumbing.UnexpectedError](err); ok {
		err = unexpected.Err
	}

	_, known := errors.AsType[*failure.Error](err)
	_, invalid := errors.AsType[*archive.InvalidError](err)
	status, responded := errors.AsType[*githttp.Err](err)

	switch {
	case known || invalid:
		return err
	case ctx.Err() != nil:
		return transient("%s did not send the repository in time", host)
	case errors.Is(err, transport.ErrAuthenticationRequired), errors.Is(err, transport.ErrAuthorizationFailed), errors.Is(err, transport.ErrInvalidAuthMethod):
		return transient("%s rejects the credentials, or requires credentials: correct the Secret in source.git.auth.secret", host)
	case errors.Is(err, transport.ErrRepositoryNotFound), errors.Is(err, transport.ErrEmptyRemoteRepository):
		return transient("%s has no such repository, the repository is empty, or the credentials do not permit reading it", host)
	case responded:
		return rejected(host, status.StatusCode())
	default:
		return unreachable(host, err)
	}
}
