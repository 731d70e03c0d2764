package gardenclient

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/environment-broker/environment-broker/internal/environment/accountpool"
	"github.com/environment-broker/environment-broker/internal/failure"
)

// The labels of the account pool. They are the same as in the Kyma Environment Broker.
const (
	LabelType     = "hyperscalerType"
	LabelTenant   = "tenantName"
	LabelDirty    = "dirty"
	LabelShared   = "shared"
	LabelInternal = "internal"
	LabelEUAccess = "euAccess"
)

// AnnotationReleased marks an account whose claim was released before the tenant label was written. Its value is the resource
// version that the account had at the time of the release; see Touch.
const AnnotationReleased = "broker.environment-broker.io/released-version"

// labelTrue is the value of a label that is set. A label with any other value counts as not set.
const labelTrue = "true"

// object contains the fields of bindings and Shoots that the client reads.
type object struct {
	Metadata struct {
		Name            string            `json:"name"`
		Labels          map[string]string `json:"labels"`
		ResourceVersion string            `json:"resourceVersion"`
	} `json:"metadata"`
	Spec struct {
		CredentialsBindingName string `json:"credentialsBindingName"`
		SecretBindingName      string `json:"secretBindingName"`
	} `json:"spec"`
}

// account returns the account that a binding represents.
func (o object) account() accountpool.Account {
	set := func(label string) bool { return o.Metadata.Labels[label] == labelTrue }

	return accountpool.Account{
		Name: o.Metadata.Name, Version: o.Metadata.ResourceVersion,
		Type: o.Metadata.Labels[LabelType], Tenant: o.Metadata.Labels[LabelTenant],
		Shared: set(LabelShared), Internal: set(LabelInternal), Dirty: set(LabelDirty), EUAccess: set(LabelEUAccess),
	}
}

type list struct {
	Metadata struct {
		Continue string `json:"continue"`
	} `json:"metadata"`
	Items []object `json:"items"`
}

// list reads one page of the objects that match the selector. An empty selector matches all. next is the continue token of the
// previous page, or empty.
func (c *Client) list(ctx context.Context, of resource, selector, limit, next string) (list, error) {
	var page list

	request := c.request(http.MethodGet, of, "").Param("limit", limit)
	if selector != "" {
		request = request.Param("labelSelector", selector)
	}

	if next != "" {
		request = request.Param("continue", next)
	}

	err := read(ctx, request, &page)

	return page, err
}

// read sends the request and decodes the response. It calls the Error method of the result, because only this method decodes the
// Status object in an error response of the API server.
func read(ctx context.Context, request *rest.Request, into any) error {
	result := request.Do(ctx)
	if err := result.Error(); err != nil {
		return err //nolint:wrapcheck // explain inspects the error
	}

	content, err := result.Raw()
	if err == nil {
		err = json.Unmarshal(content, into)
	}

	return failure.While(err, "decoding the response")
}

// each calls visit for every object that matches the selector. It reads the objects in pages.
func (c *Client) each(ctx context.Context, of resource, selector string, visit func(object)) error {
	next := ""

	for {
		page, err := c.list(ctx, of, selector, strconv.Itoa(pageSize), next)
		if err != nil {
			return err
		}

		for _, item := range page.Items {
			visit(item)
		}

		if next = page.Metadata.Continue; next == "" {
			return nil
		}
	}
}

// Account implements accountpool.Garden.
func (c *Client) Account(ctx context.Context, name string) (accountpool.Account, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()

	var found object

	err := read(ctx, c.request(http.MethodGet, c.options.Kind.resource(), name), &found)

	return found.account(), explain(err, "reading the account %q", name)
}

// Accounts implements accountpool.Garden. It omits bindings without the hyperscalerType label, which do not belong to the pool.
func (c *Client) Accounts(ctx context.Context, accountType string) ([]accountpool.Account, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()

	selector := LabelType
	if accountType != "" {
		selector = labels.Set{LabelType: accountType}.String()
	}

	var accounts []accountpool.Account

	err := c.each(ctx, c.options.Kind.resource(), selector, func(found object) { accounts = append(accounts, found.account()) })

	return accounts, explain(err, "listing the accounts")
}

// SetLabels implements accountpool.Garden.
func (c *Client) SetLabels(ctx context.Context, account accountpool.Account) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()

	// In a merge patch, null removes a label.
	changed := map[string]any{LabelTenant: nil, LabelDirty: nil}
	if account.Tenant != "" {
		changed[LabelTenant] = account.Tenant
	}

	if account.Dirty {
		changed[LabelDirty] = labelTrue
	}

	return explain(c.patch(ctx, account, "labels", changed), "labeling the account %q", account.Name)
}

// Touch implements accountpool.Garden. It sets AnnotationReleased to the current version, so each call changes the annotation.
func (c *Client) Touch(ctx context.Context, account accountpool.Account) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()

	err := c.patch(ctx, account, "annotations", map[string]any{AnnotationReleased: account.Version})

	return explain(err, "annotating the account %q", account.Name)
}

// patch changes a field of the metadata. The API server rejects the patch if the account has changed since it was read.
func (c *Client) patch(ctx context.Context, account accountpool.Account, field string, value any) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"resourceVersion": account.Version, field: value}})
	if err != nil {
		return err //nolint:wrapcheck // the values are strings
	}

	return c.request(http.MethodPatch, c.options.Kind.resource(), account.Name).
		SetHeader("Content-Type", string(types.MergePatchType)).Body(patch).Do(ctx).Error() //nolint:wrapcheck // explain inspects the error
}

// Shoots implements accountpool.Garden. It evaluates both fields of a Shoot that can name an account: a Shoot from before
// Kubernetes 1.34 may still refer to the SecretBinding that has the same name as the CredentialsBinding.
func (c *Client) Shoots(ctx context.Context) (map[string][]string, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()

	shoots := map[string][]string{}

	err := c.each(ctx, resource{core(), "shoots"}, "", func(found object) {
		used := map[string]bool{found.Spec.CredentialsBindingName: true, found.Spec.SecretBindingName: true}
		delete(used, "")

		for name := range used {
			shoots[name] = append(shoots[name], found.Metadata.Name)
		}
	})

	return shoots, explain(err, "listing the Shoots")
}
