package ebctl

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
)

const (
	// transferTimeout limits each download or upload.
	transferTimeout = 10 * time.Minute
	// transferAttempts is the maximum number of requests if the server responds with 503. transferPause is the time between two
	// requests.
	transferAttempts = 5
	transferPause    = 2 * time.Second
)

// contentFlags contains the credentials for the content server of a bundle provisioner.
type contentFlags struct{ token, caFile string }

// add adds the --token and --ca-file flags. This --token flag hides the global one, so that a token for the broker is never sent
// to another server.
func (f *contentFlags) add(command *cobra.Command) {
	command.Flags().StringVar(&f.token, "token", "", "a bearer token for the content server (default: the token of the kubeconfig)")
	command.Flags().StringVar(&f.caFile, "ca-file", "", "a file with the CA certificates for the content server (default: the system's CA certificates)")
}

// contentError is an error response of a content server.
type contentError struct {
	status int
	text   string
}

func (e *contentError) Error() string {
	return fmt.Sprintf("the content server responded with status %d: %s", e.status, e.text)
}

// contentStatus returns a function that reports whether an error is a contentError with one of the given statuses.
func contentStatus(statuses ...int) func(error) bool {
	return func(err error) bool {
		response, ok := errors.AsType[*contentError](err)

		return ok && slices.Contains(statuses, response.status)
	}
}

// callContent downloads the content at the given address or, if upload is not nil, uploads that file to the address. It returns
// the body of the response. A replica that does not have the content, or does not accept uploads, responds with 503. callContent
// then tries again; it sends at most transferAttempts requests.
func (s *session) callContent(ctx context.Context, cluster clusterFlags, server contentFlags, address string, upload *os.File) (io.ReadCloser, error) {
	target, err := url.Parse(address)
	if err != nil || target.Scheme != "https" || target.Host == "" {
		return nil, fmt.Errorf("%q is not an https address, so no token is sent to it", address)
	}

	config, err := s.contentConfig(cluster, server)
	if err != nil {
		return nil, err
	}

	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, usage("the client configuration for the content server is invalid: %w", err)
	}

	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse } // the token is for this server only

	for attempt := 1; ; attempt++ {
		body, err := send(ctx, client, target, upload)
		if !contentStatus(http.StatusServiceUnavailable)(err) || attempt == transferAttempts {
			return body, err
		}

		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-s.Clock.After(transferPause):
		}
	}
}

// contentConfig returns the client configuration for the content server, with the token from --token or, by default, from the
// kubeconfig. It fails if there is no token.
func (s *session) contentConfig(cluster clusterFlags, server contentFlags) (*rest.Config, error) {
	config := &rest.Config{
		BearerToken: server.token, Timeout: transferTimeout, UserAgent: "ebctl/" + s.Version,
		TLSClientConfig: rest.TLSClientConfig{CAFile: server.caFile},
	}
	if server.token != "" {
		return config, nil
	}

	loaded, err := s.loader(cluster).ClientConfig()
	if err != nil {
		return nil, usage("set --token, or a kubeconfig with a token: %w", err)
	}

	config.BearerToken, config.BearerTokenFile, config.ExecProvider = loaded.BearerToken, loaded.BearerTokenFile, loaded.ExecProvider
	if config.BearerToken == "" && config.BearerTokenFile == "" && config.ExecProvider == nil {
		return nil, usage("the kubeconfig has no token: set --token")
	}

	return config, nil
}

// send sends one request. The caller closes the body.
func send(ctx context.Context, client *http.Client, target *url.URL, upload *os.File) (io.ReadCloser, error) {
	method, size, content := http.MethodGet, int64(0), io.Reader(nil)

	if upload != nil {
		info, err := upload.Stat()
		if err != nil {
			return nil, fmt.Errorf("reading the upload: %w", err)
		}

		method, size, content = http.MethodPut, info.Size(), io.NewSectionReader(upload, 0, info.Size())
	}

	request, err := http.NewRequestWithContext(ctx, method, target.String(), content)
	if err != nil {
		return nil, fmt.Errorf("preparing a request: %w", err)
	}

	request.ContentLength = size

	response, err := client.Do(request)
	if _, unknown := errors.AsType[x509.UnknownAuthorityError](err); unknown {
		return nil, fmt.Errorf("calling the content server: %w: set --ca-file to a file with the CA certificate of the server", err)
	}

	if err != nil {
		return nil, fmt.Errorf("calling the content server: %w", err)
	}

	switch response.StatusCode {
	case http.StatusOK, http.StatusCreated, http.StatusNoContent:
		return response.Body, nil
	}

	defer func() { _ = response.Body.Close() }()

	const maxText = 1 << 10

	text, _ := io.ReadAll(io.LimitReader(response.Body, maxText))

	return nil, &contentError{response.StatusCode, strconv.Quote(strings.TrimSpace(string(text)))}
}
