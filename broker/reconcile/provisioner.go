package reconcile

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
	"github.com/environment-broker/environment-broker/internal/upstream"
)

const (
	// maxResponse is the maximum size of a response from the Provisioner, in bytes.
	maxResponse = 8 << 20
	// callTimeout limits one call. The Provisioner ends a page of differences before this time.
	callTimeout = 35 * time.Second
)

// Provisioner is a client for our Provisioner's operator API. It is safe for concurrent use. Errors carry a failure.Kind.
type Provisioner struct {
	base *url.URL
	http *http.Client
}

// NewProvisioner returns a client. address is the URL of the Provisioner's GraphQL API, including the broker's user and password.
// The URL of the operator API is the same without the last path segment.
func NewProvisioner(address *url.URL, transport http.RoundTripper) *Provisioner {
	base := *address
	base.Path, base.RawPath, base.RawQuery = path.Dir(path.Clean("/"+address.Path)), "", ""

	return &Provisioner{base: &base, http: &http.Client{Transport: transport, CheckRedirect: upstream.NoRedirects}}
}

// Runtimes returns a page of the runtimes that are not deleted, newest first.
func (p *Provisioner) Runtimes(ctx context.Context, cursor string) (operatorapi.RuntimeList, error) {
	query := url.Values{"page_size": {strconv.Itoa(pageSize)}}
	if cursor != "" {
		query.Set("cursor", cursor)
	}

	return get[operatorapi.RuntimeList](ctx, p, "/runtimes", query)
}

// Existing returns which of the given runtimes exist and are not deleted. It accepts at most pageSize IDs.
func (p *Provisioner) Existing(ctx context.Context, ids []string) (map[string]bool, error) {
	existing := map[string]bool{}
	if len(ids) == 0 {
		return existing, nil
	}

	list, err := get[operatorapi.RuntimeList](ctx, p, "/runtimes", url.Values{
		"ids": {strings.Join(ids, ",")}, "page_size": {strconv.Itoa(pageSize)},
	})
	for _, runtime := range list.Data {
		existing[runtime.RuntimeID] = true
	}

	return existing, err
}

// Runtime returns a runtime with its client data.
func (p *Provisioner) Runtime(ctx context.Context, id string) (operatorapi.Runtime, error) {
	return get[operatorapi.Runtime](ctx, p, "/runtimes/"+url.PathEscape(id), nil)
}

// Differences returns a page of the differences that the Provisioner finds.
func (p *Provisioner) Differences(ctx context.Context, cursor string, limit int) (operatorapi.DifferenceList, error) {
	query := url.Values{"page_size": {strconv.Itoa(min(limit, pageSize))}}
	if cursor != "" {
		query.Set("cursor", cursor)
	}

	return get[operatorapi.DifferenceList](ctx, p, "/differences", query)
}

// get sends a GET request and decodes the JSON response.
func get[Body any](ctx context.Context, p *Provisioner, route string, query url.Values) (body Body, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()

	address := p.base.JoinPath(route)
	address.RawQuery = query.Encode()

	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address.String(), nil)
	if err != nil {
		return body, failure.Wrap(failure.Permanent, upstream.WithoutURL(err), "the request to the Provisioner is invalid")
	}

	response, err := p.http.Do(request)
	if err != nil {
		if typed, is := errors.AsType[*failure.Error](err); is {
			return body, typed // from the circuit breaker
		}

		return body, unanswered(upstream.WithoutURL(err))
	}
	defer response.Body.Close() //nolint:errcheck // only read

	content, err := io.ReadAll(io.LimitReader(response.Body, maxResponse+1))
	if err == nil && len(content) > maxResponse {
		err = fmt.Errorf("more than %d bytes", maxResponse)
	}

	if err != nil {
		return body, unanswered(err)
	}

	if response.StatusCode != http.StatusOK {
		return body, refused(response.StatusCode)
	}

	if err := json.Unmarshal(content, &body); err != nil {
		return body, failure.New(failure.Permanent, "the Provisioner has no operator API: its response is not JSON").
			WithReason(failure.ReasonHTTPStatus, failure.ComponentProvisioner)
	}

	return body, nil
}

func unanswered(cause error) error {
	return failure.Wrap(failure.Transient, cause, "the Provisioner did not respond").WithReason(failure.ReasonHTTPStatus, failure.ComponentProvisioner)
}

// refused returns the error for a response with a status other than 200.
func refused(status int) error {
	err := failure.New(failure.Permanent,
		"the Provisioner has no operator API that lists differences (HTTP status %d): it is a Kyma Provisioner or an earlier release", status)

	switch {
	case status == http.StatusUnauthorized:
		err = failure.New(failure.Permanent,
			"the Provisioner rejects the credentials of the broker: correct APP_PROVISIONER_USER and APP_PROVISIONER_PASSWORD")
	case status == http.StatusForbidden:
		err = failure.New(failure.Permanent, "the user in APP_PROVISIONER_USER needs the operator role at the Provisioner, in addition to osb")
	case status >= http.StatusInternalServerError, status == http.StatusTooManyRequests:
		err = failure.New(failure.Transient, "the Provisioner responded with HTTP status %d", status)
	}

	return err.WithReason(failure.ReasonHTTPStatus, failure.ComponentProvisioner)
}
