package kyma

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/upstream"
)

const (
	// CallTimeout limits each call to the control plane.
	CallTimeout = 15 * time.Second
	// maxObjects and maxBytes limit the size of a list that is read from the control plane. Kubernetes limits each object to about
	// 1 MiB.
	maxObjects = 100
	maxBytes   = 16 << 20
)

// ControlPlane reads ConfigMaps and Secrets in the control-plane cluster. It reads the kubeconfig file for every call, so that a
// rotated kubeconfig takes effect immediately. It is safe for concurrent use.
//
// As an http.RoundTripper, it sends requests of other clients to the control plane.
type ControlPlane struct {
	// KubeconfigPath is the file with the kubeconfig. The user in it needs the verbs get and list for ConfigMaps and Secrets.
	KubeconfigPath string
	// Namespace contains the overrides and the configuration of plans. The ConfigMap with the accounts' versions can be in another
	// namespace.
	Namespace string
	// Wrap, if set, wraps the transport of all calls, for a concurrency limit and a circuit breaker.
	Wrap func(http.RoundTripper) http.RoundTripper
}

// Check returns an error unless the kubeconfig can be read and contains an allowed address (see checkAddress). It does not
// contact the control plane.
func (c *ControlPlane) Check() error {
	_, _, err := c.client()

	return err
}

// Probe requests the version of the API server. Package upstream calls it during outages.
func (c *ControlPlane) Probe(ctx context.Context) error {
	_, err := c.get(ctx, "/version", nil, new(map[string]any))

	return err
}

// configMap returns the data of a ConfigMap, or nil if it does not exist.
func (c *ControlPlane) configMap(ctx context.Context, namespace, name string) (map[string]string, error) {
	var found corev1.ConfigMap

	_, err := c.get(ctx, "/api/v1/namespaces/"+url.PathEscape(namespace)+"/configmaps/"+url.PathEscape(name), nil, &found)

	return found.Data, err
}

// configMaps returns the ConfigMaps that the label selector matches, sorted by name as the API server lists them.
func (c *ControlPlane) configMaps(ctx context.Context, selector string) ([]corev1.ConfigMap, error) {
	var found corev1.ConfigMapList
	if err := c.list(ctx, "configmaps", selector, &found); err != nil {
		return nil, err
	}

	return found.Items, tooMany(found.Continue, "ConfigMaps", selector)
}

// secrets is like configMaps, but returns Secrets.
func (c *ControlPlane) secrets(ctx context.Context, selector string) ([]corev1.Secret, error) {
	var found corev1.SecretList
	if err := c.list(ctx, "secrets", selector, &found); err != nil {
		return nil, err
	}

	return found.Items, tooMany(found.Continue, "Secrets", selector)
}

func tooMany(next, kind, selector string) error {
	if next == "" {
		return nil
	}

	return refused("the control plane has more than %d %s with the labels %s: remove some of them", maxObjects, kind, selector)
}

func (c *ControlPlane) list(ctx context.Context, kind, selector string, into any) error {
	found, err := c.get(ctx, "/api/v1/namespaces/"+url.PathEscape(c.Namespace)+"/"+kind,
		url.Values{"labelSelector": {selector}, "limit": {strconv.Itoa(maxObjects)}}, into)
	if err == nil && !found {
		return away(nil, "it does not know %s", kind)
	}

	return err
}

// get sends a GET request and decodes the response. It returns false if the object does not exist. Errors never quote the
// response, because it can contain secrets.
func (c *ControlPlane) get(ctx context.Context, path string, query url.Values, into any) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, CallTimeout)
	defer cancel()

	client, address, err := c.connect()
	if err != nil {
		return false, err
	}

	address = address.JoinPath(path)
	address.RawQuery = query.Encode()

	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address.String(), http.NoBody)
	if err != nil {
		return false, away(nil, "its address is invalid")
	}

	request.Header.Set("Accept", "application/json")

	response, err := client.Do(request)
	if err != nil {
		if ferr, ok := errors.AsType[*failure.Error](err); ok { // from the circuit breaker
			return false, ferr
		}

		return false, away(err, "it does not respond")
	}

	defer func() { _ = response.Body.Close() }()

	return decode(response, into)
}

// RoundTrip sends the request to the control plane: it replaces the scheme and the host of its URL, and adds the credentials. All
// errors except network errors carry a failure.Kind.
func (c *ControlPlane) RoundTrip(request *http.Request) (*http.Response, error) {
	client, address, err := c.connect()
	if err != nil {
		if request.Body != nil {
			_ = request.Body.Close()
		}

		return nil, err
	}

	sent := request.Clone(request.Context())
	sent.URL.Scheme, sent.URL.Host, sent.Host = address.Scheme, address.Host, address.Host
	sent.URL.Path, sent.URL.RawPath = strings.TrimSuffix(address.Path, "/")+request.URL.Path, ""

	return client.Transport.RoundTrip(sent) //nolint:wrapcheck // of a transport
}

// connect returns a client with the current kubeconfig, and the address of the API server.
func (c *ControlPlane) connect() (*http.Client, *url.URL, error) {
	client, config, err := c.client()
	if err != nil {
		return nil, nil, failure.Wrap(failure.Transient, err,
			"the kubeconfig of the control plane cannot be used: an operator must correct APP_CONTROL_PLANE_KUBECONFIG_PATH").
			WithReason(failure.ReasonConfiguration, failure.ComponentControlPlane)
	}

	address, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, nil, away(nil, "its address is invalid")
	}

	return client, address, nil
}

// decode decodes a response from the API server. It returns false if the API server says that the object does not exist.
func decode(response *http.Response, into any) (bool, error) {
	switch {
	case response.StatusCode == http.StatusNotFound:
		return false, checkMissing(response.Body)
	case response.StatusCode == http.StatusBadRequest:
		return false, refused("the control plane rejects the labels of the plan or of the version: use shorter names")
	case response.StatusCode == http.StatusUnauthorized || response.StatusCode == http.StatusForbidden:
		return false, failure.New(failure.Transient, "the control plane rejects the credentials with status %d: an operator must correct "+
			"APP_CONTROL_PLANE_KUBECONFIG_PATH, or allow its user to get and list ConfigMaps and Secrets", response.StatusCode).
			WithReason(failure.ReasonHTTPStatus, failure.ComponentControlPlane)
	case response.StatusCode != http.StatusOK:
		return false, away(nil, "it responds with status %d", response.StatusCode)
	}

	content, err := io.ReadAll(io.LimitReader(response.Body, maxBytes+1))

	switch {
	case err != nil:
		return false, away(err, "its response was interrupted")
	case len(content) > maxBytes:
		return false, refused("a response from the control plane has more than %d bytes: remove overrides", maxBytes)
	case json.Unmarshal(content, into) != nil:
		return false, away(nil, "its response is not a Kubernetes object")
	default:
		return true, nil
	}
}

// checkMissing returns an error unless the body of a response with the status 404 is that of an API server. The page of a proxy does not
// prove that an object is missing.
func checkMissing(body io.Reader) error {
	const maxStatus = 64 << 10

	content, err := io.ReadAll(io.LimitReader(body, maxStatus))
	if err != nil {
		return away(err, "its response was interrupted")
	}

	var status metav1.Status
	if json.Unmarshal(content, &status) != nil || status.Kind != "Status" {
		return away(nil, "it responds with status 404, but not like an API server")
	}

	return nil
}

// client returns a client with the current kubeconfig. client-go shares the connections of equal kubeconfigs.
func (c *ControlPlane) client() (*http.Client, *rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", c.KubeconfigPath)
	if err != nil {
		return nil, nil, fmt.Errorf("reading the kubeconfig of the control plane from %s: %w", c.KubeconfigPath, err)
	}

	if err := c.checkAddress(config); err != nil {
		return nil, nil, fmt.Errorf("using the kubeconfig of the control plane from %s: %w", c.KubeconfigPath, err)
	}

	transport, err := rest.TransportFor(config)
	if err != nil {
		return nil, nil, fmt.Errorf("using the kubeconfig of the control plane from %s: %w", c.KubeconfigPath, err)
	}

	if c.Wrap != nil {
		transport = c.Wrap(transport)
	}

	return &http.Client{Transport: transport, CheckRedirect: upstream.NoRedirects}, config, nil
}

// checkAddress rejects an address without TLS. client-go sends no credentials to such an address, so each call would fail with
// 401 or 403. For simulators, it accepts an address of the local machine if the kubeconfig has no credentials.
func (c *ControlPlane) checkAddress(config *rest.Config) error {
	address, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return errors.New("its server is not a valid address")
	}

	if address.Scheme == "https" || address.Scheme == "http" && loopback(address.Hostname()) && !c.hasCredentials() {
		return nil
	}

	return fmt.Errorf("its server is %s://%s: use an https address, because credentials are never sent without TLS", address.Scheme, address.Host)
}

func loopback(host string) bool {
	ip := net.ParseIP(host)

	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// hasCredentials reports whether a user in the kubeconfig has credentials. It reads the file again, because the rest.Config for an
// address without TLS omits the credentials.
func (c *ControlPlane) hasCredentials() bool {
	content, err := clientcmd.LoadFromFile(c.KubeconfigPath)
	if err != nil {
		return true
	}

	for _, user := range content.AuthInfos {
		texts := []string{user.ClientCertificate, user.ClientKey, user.Token, user.TokenFile, user.Username, user.Password}
		if strings.Join(texts, "") != "" || len(user.ClientCertificateData) > 0 || user.Exec != nil || user.AuthProvider != nil {
			return true
		}
	}

	return false
}

// away returns a transient error for a control plane that does not respond as expected, so that the engine retries the step.
func away(cause error, format string, args ...any) error {
	return failure.Wrap(failure.Transient, cause, "the control plane with the Kyma configuration is unavailable: "+format, args...).
		WithReason(failure.ReasonHTTPStatus, failure.ComponentControlPlane)
}

// refused returns a permanent error for a configuration that an operator must correct.
func refused(format string, args ...any) error {
	return failure.New(failure.Permanent, format, args...).WithReason(failure.ReasonConfiguration, failure.ComponentControlPlane)
}
