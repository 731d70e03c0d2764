package reconciler

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/upstream/restclient"
)

// maxBody is the maximum size of an encoded cluster that the Reconciler accepts, in bytes.
const maxBody = 100_000

// Client calls the Reconciler. It is safe for concurrent use.
type Client struct {
	rest *restclient.Client
	url  string
}

// New returns a client that sends its requests through the transport. The configuration must be valid.
func New(config Config, transport http.RoundTripper) *Client {
	return &Client{url: strings.TrimSuffix(config.URL, "/") + "/v1/clusters", rest: restclient.New(restclient.Options{
		Title: "the Reconciler", Component: failure.ComponentReconciler, Settings: "APP_RECONCILER_URL",
		Transport: transport, Timeout: config.Timeout,
	})}
}

// Probe returns an error unless the Reconciler responds.
func (c *Client) Probe(ctx context.Context) error { return c.rest.Probe(ctx, c.url) }

// Apply registers the cluster or changes its configuration. It returns a state with the versions that the Reconciler has
// assigned. Apply is idempotent. The error is transient if the Reconciler does not accept the kubeconfig, because a new runtime
// might not respond yet. If the cluster has no components or is larger than the Reconciler accepts, Apply does not send a request,
// and the error is permanent.
func (c *Client) Apply(ctx context.Context, cluster Cluster) (State, error) {
	if len(cluster.Kyma.Components) == 0 {
		return State{}, failure.New(failure.Permanent,
			"the plan installs no Kyma components, but the Reconciler requires at least one: an operator must correct the catalog").
			WithReason(failure.ReasonInternal, failure.ComponentReconciler)
	}

	encoded, err := json.Marshal(cluster)
	if err != nil {
		return State{}, failure.Wrap(failure.Internal, err, "encoding a cluster for the Reconciler")
	}

	if len(encoded) > maxBody {
		return State{}, failure.New(failure.Permanent,
			"the Kyma configuration has %d bytes, but the Reconciler accepts only %d: an operator must remove overrides or components",
			len(encoded), maxBody).WithReason(failure.ReasonInternal, failure.ComponentReconciler)
	}

	var applied State

	err = c.rest.Do(ctx, restclient.Request{
		Method: http.MethodPost, URL: c.url, Action: "accept the Kyma configuration", Body: json.RawMessage(encoded), Into: &applied,
	})

	switch {
	case rejectsKubeconfig(err):
		return State{}, failure.Wrap(failure.Transient, err, "the Reconciler cannot reach the runtime with its kubeconfig").
			WithReason(failure.ReasonClusterUnreachable, failure.ComponentReconciler)
	case err != nil:
		return State{}, err
	case applied.ConfigurationVersion <= 0:
		return State{}, incomplete("accept the Kyma configuration", "version")
	}

	return applied, nil
}

// Find returns the state of one version of a cluster's configuration. If the Reconciler does not know the version, the error is
// of kind failure.NotFound.
func (c *Client) Find(ctx context.Context, runtimeID string, version int64) (State, error) {
	const action = "return the state of the runtime"

	var found State

	err := c.rest.Do(ctx, restclient.Request{
		Method: http.MethodGet, URL: c.address(runtimeID) + "/configs/" + strconv.FormatInt(version, 10) + "/status", Action: action, Into: &found,
	})
	if err == nil && found.Status == "" {
		err = incomplete(action, "status")
	}

	return found, err
}

// Remove starts the removal of Kyma and of the registration. The returned state contains the version of the configuration whose
// state the caller must await. If the Reconciler does not know the cluster, the state is Deleted.
func (c *Client) Remove(ctx context.Context, runtimeID string) (State, error) {
	const action = "remove the runtime"

	var removing State

	err := c.rest.Do(ctx, restclient.Request{Method: http.MethodDelete, URL: c.address(runtimeID), Action: action, Into: &removing})

	switch {
	case failure.Is(err, failure.NotFound):
		return State{Cluster: runtimeID, Status: Deleted}, nil
	case err == nil && removing.ConfigurationVersion <= 0:
		err = incomplete(action, "version")
	}

	return removing, err
}

// address returns the URL of a cluster.
func (c *Client) address(runtimeID string) string { return c.url + "/" + url.PathEscape(runtimeID) }

// incomplete returns the error for a response that lacks a field.
func incomplete(action, field string) error {
	return failure.New(failure.Transient, "the Reconciler could not %s: its response has no %s", action, field).
		WithReason(failure.ReasonHTTPStatus, failure.ComponentReconciler)
}

// rejectsKubeconfig reports whether the error means that the Reconciler could not reach the runtime with the kubeconfig.
func rejectsKubeconfig(err error) bool {
	status, is := errors.AsType[*restclient.StatusError](err)

	return is && status.Status == http.StatusBadRequest && strings.Contains(status.Body, "kubeconfig not accepted")
}
