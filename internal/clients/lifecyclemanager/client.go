package lifecyclemanager

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/environment-broker/environment-broker/internal/clients/clusterclient"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/secret"
	"github.com/environment-broker/environment-broker/internal/upstream/restclient"
)

const (
	// fieldManager owns the fields that the broker sets in server-side apply.
	fieldManager = "environment-broker"

	contentApply = "application/apply-patch+yaml"
	contentMerge = "application/merge-patch+json"
	// keyKubeconfig is the key of the kubeconfig in the Secret.
	keyKubeconfig = "config"
	// annotationExpiry is the annotation with the expiry of the kubeconfig in the Secret. It is missing if the expiry is unknown.
	annotationExpiry = "environment-broker.io/kubeconfig-expires-at"
	// host is a placeholder for the host in request URLs. The transport replaces it with the control plane's host.
	host = "http://control-plane"
	// textUnserved is the body of an API server's response to a request for a kind that it does not serve.
	textUnserved = "404 page not found"
)

// Client applies and deletes the objects in the control plane that belong to runtimes. It is safe for concurrent use.
type Client struct{ rest *restclient.Client }

// New returns a client that sends its requests through the transport. The transport must replace the host of each request with
// the control plane's host, and add credentials. timeout limits each call.
func New(transport http.RoundTripper, timeout time.Duration) *Client {
	return &Client{restclient.New(restclient.Options{
		Title: "the control plane", Component: failure.ComponentControlPlane,
		Settings:  "APP_CONTROL_PLANE_KUBECONFIG_PATH and the permissions of its user",
		Transport: transport, Timeout: timeout,
	})}
}

// ApplySecret creates or replaces the Secret with the kubeconfig of the runtime.
func (c *Client) ApplySecret(ctx context.Context, objects Objects, kubeconfig secret.String) error {
	return c.apply(ctx, objects.Secret, objects.secretObject(map[string][]byte{keyKubeconfig: []byte(kubeconfig.Reveal())}, expiryOf(kubeconfig)),
		"write the Secret with the kubeconfig of the runtime")
}

// RenewSecret replaces the kubeconfig in an existing Secret, and sets its labels. If there is none, the error is of kind
// failure.NotFound. Unlike ApplySecret, RenewSecret never recreates a Secret that an operation has just deleted.
func (c *Client) RenewSecret(ctx context.Context, ref Ref, instance environment.Instance, kubeconfig secret.String) error {
	return c.merge(ctx, ref, "renew the kubeconfig of the runtime", map[string]any{
		"metadata": map[string]any{"annotations": expiryOf(kubeconfig), "labels": labelsOf(instance)},
		"data":     map[string][]byte{keyKubeconfig: []byte(kubeconfig.Reveal())},
	})
}

// LabelKyma sets the labels of the runtime's Kyma resource, and leaves all else as it is. It succeeds if the resource does not exist.
func (c *Client) LabelKyma(ctx context.Context, ref Ref, instance environment.Instance) error {
	err := c.merge(ctx, ref, "label the Kyma resource of the runtime", map[string]any{"metadata": map[string]any{"labels": labelsOf(instance)}})
	if failure.Is(err, failure.NotFound) {
		return nil
	}

	return err
}

// do sends the request. If the API server does not serve the kind of the object, the error is of kind failure.NotFound, because the
// object does not exist. For such a request, an API server returns plain text instead of JSON.
func (c *Client) do(ctx context.Context, request restclient.Request) error {
	err := c.rest.Do(ctx, request)

	status, is := errors.AsType[*restclient.StatusError](err)
	if is && status.Status == http.StatusNotFound && strings.TrimSpace(status.Body) == textUnserved {
		return failure.Wrap(failure.NotFound, err, "%s", failure.Of(err).Text).WithReason(failure.ReasonHTTPStatus, failure.ComponentControlPlane)
	}

	return err
}

// merge changes the given fields of an existing object.
func (c *Client) merge(ctx context.Context, ref Ref, action string, fields any) error {
	return c.do(ctx, restclient.Request{
		Method: http.MethodPatch, URL: host + ref.path(), ContentType: contentMerge, Action: action, Body: fields, Into: &json.RawMessage{},
	})
}

// expiryOf returns the annotation with the kubeconfig's expiry, or no annotation if the expiry is unknown.
func expiryOf(kubeconfig secret.String) map[string]string {
	annotations := map[string]string{}
	if _, until := clusterclient.Validity(kubeconfig); !until.IsZero() {
		annotations[annotationExpiry] = until.Format(time.RFC3339)
	}

	return annotations
}

// ApplyKyma creates or replaces the Kyma resource of the runtime. It keeps fields that only other clients have set.
func (c *Client) ApplyKyma(ctx context.Context, objects Objects) error {
	return c.apply(ctx, objects.Kyma, objects.kymaObject(), "apply the Kyma resource of the runtime")
}

// apply creates or changes an object by server-side apply. If the API server does not know the kind or the namespace, the error is
// transient, because an operator can install Lifecycle Manager.
func (c *Client) apply(ctx context.Context, ref Ref, object any, action string) error {
	err := c.do(ctx, restclient.Request{
		Method: http.MethodPatch, URL: host + ref.path() + "?" + url.Values{"fieldManager": {fieldManager}, "force": {"true"}}.Encode(),
		ContentType: contentApply, Action: action, Body: object, Into: &json.RawMessage{},
	})

	switch {
	case failure.Is(err, failure.NotFound):
		return failure.Wrap(failure.Transient, err, "the control plane has no %s or no namespace %s: an operator must install Lifecycle Manager, "+
			"or correct the Kyma template", ref.Resource.GroupResource(), ref.Namespace).
			WithReason(failure.ReasonHTTPStatus, failure.ComponentControlPlane)
	case failure.Is(err, failure.Conflict):
		return failure.Wrap(failure.Transient, err, "the control plane could not %s: the object was changed at the same time", action).
			WithReason(failure.ReasonHTTPStatus, failure.ComponentControlPlane)
	default:
		return err
	}
}

// Delete deletes the object. It succeeds if the object does not exist. An object with finalizers still exists for some time.
func (c *Client) Delete(ctx context.Context, ref Ref) error {
	err := c.do(ctx, restclient.Request{
		Method: http.MethodDelete, URL: host + ref.path(), Action: "delete " + describe(ref), Into: &json.RawMessage{},
	})
	if failure.Is(err, failure.NotFound) {
		return nil
	}

	return err
}

// Status returns the status of the Kyma resource. If it does not exist, the error is of kind failure.NotFound.
func (c *Client) Status(ctx context.Context, kyma Ref) (Status, error) {
	var raw json.RawMessage

	err := c.do(ctx, restclient.Request{
		Method: http.MethodGet, URL: host + kyma.path(), Action: "read the Kyma resource of the runtime", Into: &raw,
	})
	if err != nil {
		return Status{}, err
	}

	return decodeStatus(raw)
}
