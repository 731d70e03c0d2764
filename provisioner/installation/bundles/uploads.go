package bundles

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"k8s.io/client-go/rest"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/upstream"
)

const (
	// uploadTimeout is the default of UploadsOptions.Timeout.
	uploadTimeout = 30 * time.Second
	// uploadAttempts is the maximum number of requests in one call of Upload. Upload repeats a request if another replica of the
	// server may accept it.
	uploadAttempts = 3
	// largestResponse is the maximum number of bytes that are read from a response.
	largestResponse = 1 << 10
)

// UploadsOptions configure Uploads.
type UploadsOptions struct {
	// Address is the address of the content server.
	Address string
	// Credentials returns a client configuration with a token, a token file or an exec plugin. Other credentials in the
	// configuration are ignored.
	Credentials func() *rest.Config
	// TokenFile is the path of a file with a token. If it is set, Credentials is not used. The file is read again when it changes.
	TokenFile string
	// CAFile is the path of a file with the CA certificates that the client trusts. If it is empty, the client trusts the system's
	// CA certificates.
	CAFile string
	// Timeout limits one request; 0 means 30 seconds.
	Timeout time.Duration
}

// Uploads is a client for the content server of a bundle provisioner.
type Uploads struct {
	options UploadsOptions
	address *url.URL
}

// NewUploads returns the client. It checks the configuration but does not contact the server.
func NewUploads(options UploadsOptions) (*Uploads, error) {
	address, err := url.Parse(options.Address)
	if err != nil || address.Scheme != "https" || address.Host == "" {
		return nil, errors.New("the address must be an https address")
	}

	uploads := &Uploads{options, address}
	_, err = uploads.client()

	return uploads, err
}

// client returns an HTTP client with the current credentials and CA certificates.
func (u *Uploads) client() (*http.Client, error) {
	config := &rest.Config{
		BearerTokenFile: u.options.TokenFile, Timeout: cmp.Or(u.options.Timeout, uploadTimeout),
		TLSClientConfig: rest.TLSClientConfig{CAFile: u.options.CAFile},
	}
	if u.options.TokenFile == "" {
		known := u.options.Credentials()
		config.BearerToken, config.BearerTokenFile, config.ExecProvider = known.BearerToken, known.BearerTokenFile, known.ExecProvider
	}

	if config.BearerToken == "" && config.BearerTokenFile == "" && config.ExecProvider == nil {
		return nil, errors.New("the kubeconfig contains no token: set a token file, or use a kubeconfig with a token")
	}

	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("preparing the client of the content server: %w", err)
	}

	client.CheckRedirect = upstream.NoRedirects // the token must reach only this server

	return client, nil
}

// Upload implements Uploader. Only one replica of the bundle provisioner accepts uploads, so Upload tries a few times: each attempt opens
// a new connection, which may lead to another replica. The kind of the error is Conflict if the Bundle already has different content or a
// different source.
func (u *Uploads) Upload(ctx context.Context, bundle string, archive []byte) (waiting string, err error) {
	client, err := u.client()
	if err != nil {
		return "", refusedUpload("cannot be sent to the bundle provisioner: an operator must correct APP_KYMA_BUNDLES_TOKEN_FILE or APP_KYMA_BUNDLES_CA_FILE")
	}

	for range uploadAttempts {
		response, err := u.put(ctx, client, bundle, archive)
		if err != nil {
			return "", err
		}

		waiting, err = response.result()
		if err != nil || waiting == "" || response.status == http.StatusTooManyRequests {
			return waiting, err
		}
	}

	return waiting, nil
}

// uploadResponse is a response from the content server.
type uploadResponse struct {
	status int
	// text is the beginning of the body.
	text string
}

// put sends the archive once, on a new connection.
func (u *Uploads) put(ctx context.Context, client *http.Client, bundle string, archive []byte) (uploadResponse, error) {
	address := u.address.JoinPath("uploads", bundle+".tgz").String()

	request, err := http.NewRequestWithContext(ctx, http.MethodPut, address, bytes.NewReader(archive))
	if err != nil {
		return uploadResponse{}, failure.Wrap(failure.Internal, err, "the address of the content server is invalid")
	}

	request.Close = true

	response, err := client.Do(request)
	if err != nil {
		// The error may contain internal addresses, so only the log shows it.
		return uploadResponse{}, failure.Wrap(failure.Transient, upstream.WithoutURL(err),
			"its content cannot be sent to the bundle provisioner: the content server does not respond").
			WithReason(failure.ReasonSystemUnavailable, failure.ComponentBundles)
	}
	defer response.Body.Close() //nolint:errcheck // It has been read only.

	text, _ := io.ReadAll(io.LimitReader(response.Body, largestResponse)) // The status is sufficient, even if reading the body fails.

	return uploadResponse{response.StatusCode, string(text)}, nil
}

// result returns "" if the server has accepted the content, the reason to wait if it may accept the content later, or an error.
func (r uploadResponse) result() (waiting string, err error) {
	const unsent = "cannot be sent to the bundle provisioner: "

	switch r.status {
	case http.StatusCreated, http.StatusNoContent:
		return "", nil
	case http.StatusServiceUnavailable, http.StatusTooManyRequests, http.StatusNotFound: // The server's cache might not contain a new Bundle yet.
		return "waiting for the bundle provisioner to accept the content", nil
	case http.StatusUnauthorized, http.StatusForbidden:
		return "", r.refused(failure.Transient, unsent+"the content server rejects the token. An operator must bind the token's user to the ClusterRole bundle-uploader")
	case http.StatusRequestEntityTooLarge:
		return "", r.refused(failure.Permanent, "is larger than the bundle provisioner allows: split the component, or ask an operator to "+
			"raise the bundle provisioner's APP_LIMITS_COMPRESSED_BYTES")
	case http.StatusConflict:
		return "", r.refused(failure.Conflict, unsent+"its Bundle has different content or a different source. An operator must delete this Bundle; "+
			"then retry the operation")
	default:
		kind, text := failure.Permanent, "rejects it with"
		if r.status == http.StatusRequestTimeout || r.status >= http.StatusInternalServerError {
			kind, text = failure.Transient, "responds with"
		}

		return "", r.refused(kind, fmt.Sprintf("%sthe content server %s HTTP status %d %s", unsent, text, r.status, http.StatusText(r.status)))
	}
}

// refused returns the error for a rejected upload. Only operators see the body of the response.
func (r uploadResponse) refused(kind failure.Kind, text string) error {
	return failure.New(kind, "the content %s", text).WithReason(failure.ReasonHTTPStatus, failure.ComponentBundles).WithDetail(r.text)
}

// refusedUpload returns the error for an upload that cannot be sent.
func refusedUpload(text string) error {
	return failure.New(failure.Transient, "the content %s", text).WithReason(failure.ReasonConfiguration, failure.ComponentBundles)
}
