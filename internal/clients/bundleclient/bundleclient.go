package bundleclient

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/environment-broker/environment-broker/bundle/api/v1alpha1"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/httpserver/bounds"
)

const (
	// callTimeout limits the duration of each call.
	callTimeout = 10 * time.Second
	// maxBytes limits the size of a response. Kubernetes limits an object to about 1.5 MiB, and a BundleDeployment with its history
	// is below 300 KiB.
	maxBytes = 32 << 20
	// maxBundles is the maximum number of Bundles that Deployment reads for a BundleDeployment.
	maxBundles = 50

	deployments = "bundledeployments"
	bundles     = "bundles"

	textMissing = "The BundleDeployment does not exist."
)

// LabelRuntime is the label with which the Provisioner names the runtime of a BundleDeployment.
const LabelRuntime = "provisioner.environment-broker.io/runtime"

// Client reads Bundles and BundleDeployments. It reads the kubeconfig file for each call, so that a rotated kubeconfig is used
// immediately. It is safe for concurrent use. Its errors are of type *failure.Error and never quote a response.
type Client struct {
	// KubeconfigPath is the path of the kubeconfig file. Its user needs the verbs get and list for both kinds.
	KubeconfigPath string
	// Wrap, if set, wraps the transport of all calls, for a concurrency limit and a circuit breaker.
	Wrap func(http.RoundTripper) http.RoundTripper
}

// Query selects a page of BundleDeployments.
type Query struct {
	// RuntimeID selects the BundleDeployments of a runtime. If it is empty, all are selected.
	RuntimeID string
	// Continue is Page.Continue of the previous page. It is empty for the first page.
	Continue string
	// Limit is the maximum number of BundleDeployments on the page.
	Limit int
}

// Page is a page of BundleDeployments, sorted by name.
type Page struct {
	Deployments []v1alpha1.BundleDeployment
	// Continue selects the next page. It is empty on the last page.
	Continue string
}

// Deployments returns a page of BundleDeployments. The error is of kind Invalid if the query is invalid or the page has expired.
func (c *Client) Deployments(ctx context.Context, query Query) (Page, error) {
	selector := ""

	if query.RuntimeID != "" {
		found, err := labels.ValidatedSelectorFromSet(labels.Set{LabelRuntime: query.RuntimeID})
		if err != nil {
			return Page{}, failure.New(failure.Invalid, "The runtime ID is not a valid label value.")
		}

		selector = found.String()
	}

	var found v1alpha1.BundleDeploymentList

	err := c.get(ctx, &found, func(request *rest.Request) *rest.Request {
		return request.Resource(deployments).Param("limit", strconv.Itoa(query.Limit)).Param("continue", query.Continue).Param("labelSelector", selector)
	})

	return Page{Deployments: found.Items, Continue: found.Continue}, err
}

// Deployment returns a BundleDeployment and at most 50 of the Bundles that it has created, the newest first. The error is of
// kind NotFound if the BundleDeployment does not exist.
func (c *Client) Deployment(ctx context.Context, name string) (v1alpha1.BundleDeployment, []v1alpha1.Bundle, error) {
	var deployment v1alpha1.BundleDeployment

	if len(rest.IsValidPathSegmentName(name)) > 0 { // client-go sends no request
		return v1alpha1.BundleDeployment{}, nil, failure.New(failure.NotFound, textMissing)
	}

	if err := c.get(ctx, &deployment, func(request *rest.Request) *rest.Request { return request.Resource(deployments).Name(name) }); err != nil {
		return v1alpha1.BundleDeployment{}, nil, err
	}

	owner := labels.Set{v1alpha1.LabelOwnerKind: v1alpha1.KindBundleDeployment, v1alpha1.LabelOwnerName: name}

	var made v1alpha1.BundleList

	err := c.get(ctx, &made, func(request *rest.Request) *rest.Request {
		return request.Resource(bundles).Param("limit", strconv.Itoa(maxBundles)).Param("labelSelector", owner.String())
	})

	// The labels do not prove that the BundleDeployment created a Bundle: anybody who may create Bundles can set them.
	owned := slices.DeleteFunc(made.Items, func(bundle v1alpha1.Bundle) bool { return !metav1.IsControlledBy(&bundle, &deployment) })
	slices.SortStableFunc(owned, func(a, b v1alpha1.Bundle) int {
		return cmp.Or(b.CreationTimestamp.Compare(a.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})

	return deployment, owned, err
}

// Probe requests the version of the API server. Package upstream calls it during outages.
func (c *Client) Probe(ctx context.Context) error {
	return c.call(ctx, func(ctx context.Context, client *rest.RESTClient) error {
		return client.Get().AbsPath("/version").Do(ctx).Error()
	})
}

// get sends the GET request that build completes, and decodes the response.
func (c *Client) get(ctx context.Context, into runtime.Object, build func(*rest.Request) *rest.Request) error {
	return c.call(ctx, func(ctx context.Context, client *rest.RESTClient) error {
		return build(client.Get()).MaxRetries(0).Do(ctx).Into(into)
	})
}

// call runs do with a client for the current kubeconfig. It limits the duration and explains the error.
func (c *Client) call(ctx context.Context, do func(context.Context, *rest.RESTClient) error) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()

	client, err := c.client()
	if err != nil {
		return failure.Wrap(failure.Transient, err, "The kubeconfig of the Bundle API server cannot be used: an operator must correct "+
			"APP_CONSOLE_BUNDLES_KUBECONFIG_PATH.").WithReason(failure.ReasonConfiguration, failure.ComponentBundles)
	}

	return explain(do(ctx, client))
}

// client returns a client with the current kubeconfig. client-go shares the connections of equal kubeconfigs.
func (c *Client) client() (*rest.RESTClient, error) {
	config, err := clientcmd.BuildConfigFromFlags("", c.KubeconfigPath)
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig from %s: %w", c.KubeconfigPath, err)
	}

	if address, _, err := rest.DefaultServerUrlFor(config); err != nil || address.Scheme != "https" {
		return nil, fmt.Errorf("the server in the kubeconfig %s does not have an https address", c.KubeconfigPath)
	}

	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("preparing the Kubernetes client: %w", err)
	}

	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"}) // for the Status objects in errors

	config.Timeout, config.QPS = callTimeout, -1 // Wrap limits the calls
	config.WarningHandler = rest.NoWarnings{}
	config.APIPath, config.GroupVersion = "/apis", &v1alpha1.GroupVersion
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	config.Wrap(bounds.Responses(maxBytes))

	if c.Wrap != nil {
		config.Wrap(c.Wrap)
	}

	client, err := rest.RESTClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("using the kubeconfig %s: %w", c.KubeconfigPath, err)
	}

	return client, nil
}

// explain converts err to an error for the user of the console. It does not quote the response.
func explain(err error) error {
	if err == nil {
		return nil
	}

	if found, ok := errors.AsType[*failure.Error](err); ok { // from the circuit breaker
		return found
	}

	_, tooLarge := errors.AsType[*bounds.ResponseError](err)

	transient := func(format string, args ...any) error {
		return failure.Wrap(failure.Transient, err, format, args...).WithReason(failure.ReasonHTTPStatus, failure.ComponentBundles)
	}

	switch status, _ := errors.AsType[*apierrors.StatusError](err); {
	case tooLarge:
		return transient("The response of the Bundle API server has more than %d bytes.", maxBytes)
	case status == nil:
		return transient("The Bundle API server does not respond.")
	case apierrors.IsNotFound(err) && status.ErrStatus.Details != nil && status.ErrStatus.Details.Name != "":
		return failure.Wrap(failure.NotFound, err, textMissing)
	case apierrors.IsNotFound(err):
		return transient("The Bundle API server does not know the kind BundleDeployment: the bundle provisioner is not installed.")
	case apierrors.IsResourceExpired(err), apierrors.IsGone(err), apierrors.IsBadRequest(err):
		return failure.Wrap(failure.Invalid, err, "This page of the list has expired. Start again with the first page.")
	case apierrors.IsUnauthorized(err), apierrors.IsForbidden(err):
		return transient("The Bundle API server rejects the credentials with status %d: an operator must correct "+
			"APP_CONSOLE_BUNDLES_KUBECONFIG_PATH, or allow its user to get and list Bundles and BundleDeployments.", status.ErrStatus.Code)
	default:
		return transient("The Bundle API server responds with status %d.", status.ErrStatus.Code)
	}
}
