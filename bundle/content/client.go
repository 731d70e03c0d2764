package content

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"k8s.io/client-go/rest"

	"github.com/environment-broker/environment-broker/bundle/archive"
)

// ErrUnavailable reports a failure that may be temporary: the server does not respond, does not have the content yet, or denies
// the client access.
var ErrUnavailable = errors.New("the content is not available at the moment")

const defaultPause = 10 * time.Second

// ClientOptions configures a Client.
type ClientOptions struct {
	// Token authenticates the client. TokenFile is the path of a file with a token, which is read again when it changes. Set exactly
	// one of the two.
	Token, TokenFile string
	// CA contains the CA certificates for the server in PEM form. CAFile is the path of a file with such certificates. If both are
	// empty, the system's CA certificates apply.
	CA     []byte
	CAFile string
	// Timeout limits a call, including the transfer of the content. It is required.
	Timeout time.Duration
	// Pause is the time between calls to a server that does not respond. The default is 10 seconds.
	Pause time.Duration
	// Limits applies to the content. CompressedBytes is required. Other fields that are zero have the defaults of package archive.
	Limits archive.Limits
}

// Client uploads the content of Bundles, and fetches it from provisioners, including provisioners of other projects.
type Client struct {
	http    *http.Client
	timeout time.Duration
	limits  archive.Limits
}

// NewClient returns a Client without calling a server. It returns an error if TokenFile or CAFile cannot be read.
func NewClient(options ClientOptions) (*Client, error) {
	connection, err := rest.HTTPClientFor(&rest.Config{
		BearerToken: options.Token, BearerTokenFile: options.TokenFile,
		TLSClientConfig: rest.TLSClientConfig{CAData: options.CA, CAFile: options.CAFile},
	})
	if err != nil {
		return nil, fmt.Errorf("creating the client for the content server: %w", err)
	}

	connection.Transport = &breakers{
		next: connection.Transport, pause: cmp.Or(options.Pause, defaultPause), servers: map[string]http.RoundTripper{},
	}
	// The client sends its token, so it must not follow redirects to other servers.
	connection.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

	return &Client{http: connection, timeout: options.Timeout, limits: options.Limits}, nil
}

// Close closes idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Fetch writes the content of a Bundle into a folder. If digest is not empty, the content must have this digest. For Bundles of
// other provisioners, which do not report a digest, digest is empty. The error wraps ErrUnavailable if a later call may succeed,
// except for an interrupted transfer. After an error, the folder may contain a part of the content.
func (c *Client) Fetch(ctx context.Context, contentURL, digest string, into *os.Root) error {
	address, err := url.Parse(contentURL)
	if err != nil || address.Scheme != "https" || address.Host == "" {
		return errors.New("the contentURL is not an https address, so no token is sent to it")
	}

	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()

	request, err := http.NewRequestWithContext(ctx, http.MethodGet, contentURL, nil)
	if err != nil {
		return fmt.Errorf("preparing a request for content: %w", err)
	}

	response, err := c.http.Do(request)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	defer func() { _ = response.Body.Close() }()

	if response.StatusCode != http.StatusOK {
		return problem(response)
	}

	hash := sha256.New()
	// Extract reads the archive to its end. Data after the archive also counts for the digest.
	body := io.TeeReader(io.LimitReader(response.Body, c.limits.CompressedBytes+1), hash)

	if err := archive.Extract(ctx, body, into, c.limits); err != nil {
		return fmt.Errorf("extracting the content: %w", err)
	}

	if _, err := io.Copy(io.Discard, body); err != nil {
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}

	if got := "sha256:" + hex.EncodeToString(hash.Sum(nil)); digest != "" && got != digest {
		return fmt.Errorf("the content server sent content with the digest %s, but the Bundle's status says %s: check contentURL and any proxy in between",
			got, digest)
	}

	return nil
}

// Upload sends an archive to the server with the given address, as the content of a Bundle whose source is an upload. created is
// false if the server already has the same content.
func (c *Client) Upload(ctx context.Context, server, bundle string, content io.Reader, size int64) (created bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()

	request, err := http.NewRequestWithContext(ctx, http.MethodPut, UploadURL(server, bundle), content)
	if err != nil {
		return false, fmt.Errorf("preparing an upload: %w", err)
	}

	request.ContentLength = size

	response, err := c.http.Do(request)
	if err != nil {
		return false, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	defer func() { _ = response.Body.Close() }()

	switch response.StatusCode {
	case http.StatusCreated:
		return true, nil
	case http.StatusNoContent:
		return false, nil
	default:
		return false, problem(response)
	}
}

// problem converts a response whose status is not a success to an error.
func problem(response *http.Response) error {
	const maxText = 1 << 10

	text, _ := io.ReadAll(io.LimitReader(response.Body, maxText))
	err := fmt.Errorf("the content server responded with status %d: %s", response.StatusCode, strconv.Quote(strings.TrimSpace(string(text))))

	if response.StatusCode >= http.StatusInternalServerError || response.StatusCode == http.StatusNotFound ||
		response.StatusCode == http.StatusUnauthorized || response.StatusCode == http.StatusForbidden {
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}

	return err
}
