package source

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"io"
	"net/http"
	"net/url"
	"os"

	"github.com/environment-broker/environment-broker/bundle/api/v1alpha1"
	"github.com/environment-broker/environment-broker/bundle/archive"
)

// httpSource downloads an archive.
type httpSource struct {
	options Options
	objects objects
}

// Fetch implements Fetcher. The resolved source contains the digest of the archive.
func (s *httpSource) Fetch(ctx context.Context, request Request, into *os.Root) (Result, error) {
	ctx, cancel := context.WithTimeout(ctx, s.options.Timeout)
	defer cancel()

	source := *request.Source.HTTP

	get, err := s.request(ctx, source)
	if err != nil {
		return Result{}, err
	}

	client, err := newClient(source.Auth.InsecureSkipVerify, "")
	if err != nil {
		return Result{}, err
	}
	defer client.CloseIdleConnections()

	response, err := client.Do(get)
	if err != nil {
		return Result{}, unreachable(get.URL.Host, err)
	}
	defer response.Body.Close() //nolint:errcheck // It has been read only.

	switch {
	case response.StatusCode != http.StatusOK:
		return Result{}, rejected(get.URL.Host, response.StatusCode)
	case response.ContentLength > s.options.Limits.CompressedBytes:
		return Result{}, terminal("the archive on %s has %d bytes; at most %d are permitted", get.URL.Host, response.ContentLength,
			s.options.Limits.CompressedBytes)
	}

	source.SHA256, err = extractVerified(ctx, response.Body, into, s.options.Limits, sha256.New(), source.SHA256)
	if err != nil {
		return Result{}, unpacked(err, "the archive on "+get.URL.Host)
	}

	return Result{Resolved: v1alpha1.BundleSource{Type: v1alpha1.SourceTypeHTTP, HTTP: &source}}, nil
}

// request returns the request for the archive, with the credentials from the source's Secret, if any.
func (s *httpSource) request(ctx context.Context, source v1alpha1.HTTPSource) (*http.Request, error) {
	parsed, err := url.Parse(source.URL)

	switch {
	case err != nil || parsed.Scheme != "https" && parsed.Scheme != "http" || parsed.Host == "":
		return nil, terminal("source.http.url is not a valid address: write https://HOST/FILE")
	case parsed.User != nil:
		return nil, terminal("source.http.url contains credentials: move them to a Secret, and name it in source.http.auth.secret")
	}

	request, err := http.NewRequestWithContext(ctx, http.MethodGet, source.URL, nil)
	if err != nil {
		return nil, terminal("source.http.url is not a valid address: write https://HOST/FILE")
	}

	if source.Auth.Secret.Name != "" {
		secret, err := s.objects.secret(ctx, source.Auth.Secret.Name, usernameKey, passwordKey)
		if err != nil {
			return nil, err
		}

		request.SetBasicAuth(string(secret[usernameKey]), string(secret[passwordKey]))
	}

	return request, nil
}

// extractVerified extracts an archive and returns its digest in hexadecimal. An error for an unexpected digest takes precedence
// over faults of the content, because the server has sent a different archive. If the expected digest is empty, any digest is
// accepted.
func extractVerified(ctx context.Context, from io.Reader, into *os.Root, limits archive.Limits, sum hash.Hash, expected string) (string, error) {
	content := io.TeeReader(from, sum)
	extracted := archive.Extract(ctx, content, into, limits)

	if _, err := io.Copy(io.Discard, io.LimitReader(content, limits.CompressedBytes)); err != nil && extracted == nil {
		return "", err
	}

	digest := hex.EncodeToString(sum.Sum(nil))
	if expected != "" && digest != expected && (extracted == nil || Terminal(extracted)) {
		return "", terminal("the archive has the digest %s instead of %s: it was changed after the digest was taken", digest, expected)
	}

	return digest, extracted
}
