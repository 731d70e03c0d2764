package avs

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/upstream/restclient"
)

// Client calls AvS. It is safe for concurrent use.
type Client struct {
	rest   *restclient.Client
	config Config
	api    string
}

// New returns a client that sends its requests through the transport. The configuration must be valid.
func New(config Config, transport http.RoundTripper) *Client {
	return &Client{config: config, api: strings.TrimSuffix(config.API, "/"), rest: restclient.New(restclient.Options{
		Title: "AvS", Component: failure.ComponentAvS,
		Settings:  "APP_AVS_OAUTH_TOKEN_ENDPOINT, APP_AVS_OAUTH_CLIENT_ID, APP_AVS_OAUTH_USERNAME and APP_AVS_OAUTH_PASSWORD",
		Transport: transport, Timeout: config.Timeout,
		Grant: &restclient.Grant{
			URL: config.TokenURL, Type: "password", ClientID: config.ClientID, Username: config.Username, Password: config.Password,
		},
	})}
}

// Probe returns an error unless AvS responds.
func (c *Client) Probe(ctx context.Context) error { return c.rest.Probe(ctx, c.api) }

// CreateInternal creates the internal evaluation of the cluster and returns its ID. Each call creates another evaluation. After
// an error, restclient.NotExecuted reports whether it is certain that no evaluation was created.
func (c *Client) CreateInternal(ctx context.Context, cluster Cluster) (id string, err error) {
	definition := c.definition(cluster.name("int"), cluster, c.config.Internal)
	if c.trial(cluster.PlanName) {
		definition.TesterAccessID, definition.GroupID, definition.ParentID = c.config.Trial.AccessID, c.config.Trial.GroupID, c.config.Trial.ParentID
	}

	return c.create(ctx, definition)
}

// CreateExternal creates the external evaluation of the cluster and returns its ID. As with CreateInternal, each call creates
// another evaluation.
func (c *Client) CreateExternal(ctx context.Context, cluster Cluster) (id string, err error) {
	definition := c.definition(cluster.name("ext"), cluster, c.config.External)
	definition.CheckType, definition.URL = "HTTPSGET", "https://healthz."+cluster.Domain+"/healthz/ready"

	return c.create(ctx, definition)
}

// Find returns the evaluation. If it does not exist, the error is of kind failure.NotFound.
func (c *Client) Find(ctx context.Context, id string) (Evaluation, error) {
	var found Evaluation

	err := c.rest.Do(ctx, restclient.Request{Method: http.MethodGet, URL: c.address(id), Action: "find the evaluation", Into: &found})

	return found, err
}

// Tag adds the tags to the evaluation, except those that it already has.
func (c *Client) Tag(ctx context.Context, id string, tags []Tag) error {
	evaluation, err := c.Find(ctx, id)
	if err != nil {
		return err
	}

	for _, tag := range tags {
		if evaluation.has(tag) {
			continue
		}

		if err := c.rest.Do(ctx, restclient.Request{
			Method: http.MethodPost, URL: c.address(id) + "/tag", Action: "tag the evaluation", Body: tag,
		}); err != nil {
			return err
		}
	}

	return nil
}

// SetLifecycle sets the state of the evaluation.
func (c *Client) SetLifecycle(ctx context.Context, id string, lifecycle Lifecycle) error {
	return c.rest.Do(ctx, restclient.Request{
		Method: http.MethodPut, URL: c.address(id) + "/lifecycle", Action: "change the state of the evaluation", Body: lifecycle,
	})
}

// Remove removes an evaluation. planName is the plan of the instance, and internal reports whether the evaluation is an internal
// one. Remove succeeds if the evaluation does not exist.
func (c *Client) Remove(ctx context.Context, id, planName string, internal bool) error {
	parent := c.config.ParentID
	if internal && c.trial(planName) {
		parent = c.config.Trial.ParentID
	}

	for _, address := range []string{c.address(strconv.FormatInt(parent, 10)) + "/child/" + url.PathEscape(id), c.address(id)} {
		err := c.rest.Do(ctx, restclient.Request{Method: http.MethodDelete, URL: address, Action: "remove the evaluation"})
		if err != nil && !failure.Is(err, failure.NotFound) && !isNoChild(err) {
			return err
		}
	}

	return nil
}

// TagsOf returns the tags that describe a cluster.
func (c *Client) TagsOf(shootName, seedName, region string) []Tag {
	classes := c.config.Tags

	return []Tag{{Content: shootName, ClassID: classes.ShootName}, {Content: seedName, ClassID: classes.SeedName}, {Content: region, ClassID: classes.Region}}
}

func (c *Client) create(ctx context.Context, definition Definition) (string, error) {
	var created Evaluation

	err := c.rest.Do(ctx, restclient.Request{
		Method: http.MethodPost, URL: c.api, Action: "create the evaluation", Body: definition, Into: &created,
	})
	if err == nil && created.ID == 0 {
		err = failure.New(failure.Transient, "AvS could not create the evaluation: its response has no ID").
			WithReason(failure.ReasonHTTPStatus, failure.ComponentAvS)
	}

	return strconv.FormatInt(created.ID, 10), err
}

// trial reports whether the settings for trials apply to the internal evaluations of the plan.
func (c *Client) trial(planName string) bool {
	trial := c.config.Trial

	return (planName == "trial" || planName == "free") && trial.AccessID != 0 && trial.GroupID != 0 && trial.ParentID != 0
}

// address returns the URL of an evaluation.
func (c *Client) address(id string) string { return c.api + "/" + url.PathEscape(id) }

// isNoChild reports whether AvS rejected a removal because the evaluation is not, or is no longer, a child of the given parent.
// This happens when a removal is repeated.
func isNoChild(err error) bool {
	status, is := errors.AsType[*restclient.StatusError](err)

	return is && status.Status == http.StatusBadRequest && strings.Contains(status.Body, "does not contain subevaluation")
}
