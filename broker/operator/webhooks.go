package operator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/environment-broker/environment-broker/broker/events"
	delivery "github.com/environment-broker/environment-broker/broker/webhooks"
	"github.com/environment-broker/environment-broker/internal/clients/webhook"
	"github.com/environment-broker/environment-broker/internal/httpserver"
	"github.com/environment-broker/environment-broker/internal/httpserver/bounds"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
	"github.com/environment-broker/environment-broker/internal/operatorapi/operatorserver"
	"github.com/environment-broker/environment-broker/internal/secret"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/auditlog"
	"github.com/environment-broker/environment-broker/storage/eventlog"
	"github.com/environment-broker/environment-broker/storage/webhooks"
)

const (
	// maxWebhooks is the maximum number of webhooks.
	maxWebhooks = 50
	// maxShown is the maximum number of deliveries that are counted for a webhook. If there are more, the response contains this
	// number.
	maxShown = 1000
	// maxOverlap is the maximum time, in hours, for which the previous secret remains in use.
	maxOverlap = 168

	textWebhook   = `The body is invalid. Send {"url": "https://…", "types": ["operation.failed"], "account": "…"} as JSON.`
	textRotation  = `The body is invalid. Send {"overlapHours": 24} as JSON, with 0 to 168 hours.`
	textReplay    = `The body is invalid. Send {}, {"pending": true} or {"position": 42} as JSON.`
	textNoWebhook = "The webhook does not exist."
	// textUnreadable is the error for changes and tests of a webhook that cannot be decrypted.
	textUnreadable = "The URL and the secrets of the webhook cannot be decrypted. Its database record was changed outside the broker, or its encryption key " +
		"is missing. Restore the key, or delete the webhook and create it again."
)

// ListWebhooks returns all webhooks.
func (a *API) ListWebhooks(r *http.Request) (httpserver.Response, error) {
	all, err := a.Webhooks.List(r.Context())
	if err != nil {
		return httpserver.Response{}, err
	}

	list := operatorapi.WebhookList{Data: make([]operatorapi.Webhook, 0, len(all))}

	for _, each := range all {
		shown, err := a.webhook(r.Context(), each)
		if err != nil {
			return httpserver.Response{}, err
		}

		list.Data = append(list.Data, shown)
	}

	return httpserver.OK(list), nil
}

// GetWebhook returns a webhook.
func (a *API) GetWebhook(r *http.Request) (httpserver.Response, error) {
	found, err := a.findWebhook(r)
	if err != nil {
		return httpserver.Response{}, err
	}

	return a.showWebhook(r.Context(), found)
}

// CreateWebhook adds a webhook. Only the response to this request contains the secret.
func (a *API) CreateWebhook(r *http.Request) (httpserver.Response, error) {
	var order operatorapi.WebhookOrder
	if err := operatorserver.ReadStrictly(r.Body, &order, textWebhook); err != nil {
		return httpserver.Response{}, err
	}

	if err := a.CheckWebhookURL(order.URL); err != nil {
		return httpserver.Response{}, operatorserver.Invalid("url: " + err.Error() + ".")
	}

	if len(order.Account) > bounds.ID || !storage.IsText(order.Account) {
		return httpserver.Response{}, operatorserver.Invalid(fmt.Sprintf("account must be a string of at most %d bytes.", bounds.ID))
	}

	types, err := eventTypes(strings.Join(order.Types, ","))
	if err != nil {
		return httpserver.Response{}, err
	}

	created := webhooks.Webhook{
		ID: uuid.NewString(), URL: secret.String(order.URL), Secrets: webhooks.Secrets{Current: webhook.NewSecret()},
		Filter: eventlog.Filter{Types: types, Account: order.Account}, CreatedAt: storage.At(a.Clock.Now()).Time,
	}

	err = a.DB.InTx(r.Context(), func(tx storage.Tx) error {
		count, err := a.Webhooks.LockCount(r.Context(), tx)
		if err == nil && count >= maxWebhooks {
			err = operatorserver.Conflict(fmt.Sprintf("There can be at most %d webhooks.", maxWebhooks))
		}

		if err == nil {
			err = a.Webhooks.Create(r.Context(), tx, created)
		}

		if err != nil {
			return err
		}

		return a.recordWebhook(r.Context(), tx, created.ID, auditlog.Fields{"change": "created", "types": types, "account": order.Account})
	})
	if err != nil {
		return httpserver.Response{}, err
	}

	return a.showSecret(r.Context(), created.ID)
}

// DeleteWebhook removes a webhook.
func (a *API) DeleteWebhook(r *http.Request) (httpserver.Response, error) {
	found, err := a.findWebhook(r)
	if err != nil {
		return httpserver.Response{}, err
	}

	shown, err := a.webhook(r.Context(), found)
	if err != nil {
		return httpserver.Response{}, err
	}

	err = a.DB.InTx(r.Context(), func(tx storage.Tx) error {
		removed, err := a.Webhooks.Delete(r.Context(), tx, found.ID)
		if err == nil && !removed {
			err = operatorserver.NotFound(textNoWebhook)
		}

		if err != nil {
			return err
		}

		return a.recordWebhook(r.Context(), tx, found.ID, auditlog.Fields{"change": "deleted"})
	})

	return httpserver.OK(shown), err
}

// RotateWebhook replaces the secret of a webhook. Messages are also signed with the previous secret until the overlap ends.
func (a *API) RotateWebhook(r *http.Request) (httpserver.Response, error) {
	var order operatorapi.WebhookRotation
	if err := operatorserver.ReadStrictly(r.Body, &order, textRotation); err != nil {
		return httpserver.Response{}, err
	}

	if order.OverlapHours < 0 || order.OverlapHours > maxOverlap {
		return httpserver.Response{}, operatorserver.Invalid(textRotation)
	}

	found, err := a.changeWebhook(r, auditlog.Fields{"change": "rotated", "overlapHours": order.OverlapHours}, func(tx storage.Tx, found webhooks.Webhook) error {
		found.Secrets = webhooks.Secrets{
			Current: webhook.NewSecret(), Previous: found.Secrets.Current,
			PreviousUntil: a.Clock.Now().Add(time.Duration(order.OverlapHours) * time.Hour),
		}

		return a.Webhooks.SetSecrets(r.Context(), tx, found)
	})
	if err != nil {
		return httpserver.Response{}, err
	}

	return a.showSecret(r.Context(), found.ID)
}

// EnableWebhook makes the broker deliver to a disabled webhook again.
func (a *API) EnableWebhook(r *http.Request) (httpserver.Response, error) {
	found, err := a.changeWebhook(r, auditlog.Fields{"change": "enabled"}, func(tx storage.Tx, found webhooks.Webhook) error {
		return a.Webhooks.Enable(r.Context(), tx, found.ID, a.Clock.Now())
	})
	if err == nil {
		found, err = a.Webhooks.Current(r.Context(), found.ID)
	}

	if err != nil {
		return httpserver.Response{}, err
	}

	return a.showWebhook(r.Context(), found)
}

// TestWebhook sends a test message. If the receiver does not accept the message, the response is still 200, and contains the
// error.
func (a *API) TestWebhook(r *http.Request) (httpserver.Response, error) {
	found, err := a.findWebhook(r)
	if err == nil && found.Unreadable {
		err = operatorserver.Conflict(textUnreadable)
	}

	if err != nil {
		return httpserver.Response{}, err
	}

	if err := a.recordWebhook(r.Context(), a.DB.Writer(), found.ID, auditlog.Fields{"change": "tested"}); err != nil {
		return httpserver.Response{}, err
	}

	now := a.Clock.Now()
	event := events.CloudEvent(eventlog.Event{ID: "test-" + uuid.NewString(), Type: "webhook.test", At: now}, a.PublicURL)
	event.Subject = "webhooks/" + found.ID

	body, err := json.Marshal(event)
	if err != nil {
		return httpserver.Response{}, fmt.Errorf("encoding a test message: %w", err)
	}

	err = a.SendWebhook(r.Context(), webhook.Message{
		URL: found.URL, Secrets: delivery.Signing(found.Secrets, now), ID: event.ID, At: now, Body: body,
	})
	if err == nil {
		return httpserver.OK(operatorapi.WebhookTest{Delivered: true, Status: http.StatusOK}), nil
	}

	failed, is := errors.AsType[*webhook.Error](err)
	if !is {
		return httpserver.Response{}, err
	}

	return httpserver.OK(operatorapi.WebhookTest{Status: failed.Status, Error: failed.Error()}), nil
}

// ListWebhookDeliveries returns a page of pending deliveries or of dead letters.
func (a *API) ListWebhookDeliveries(r *http.Request, query operatorserver.Query) (httpserver.Response, error) {
	found, err := a.findWebhook(r)
	if err != nil {
		return httpserver.Response{}, err
	}

	dead, err := query.Bool("dead")
	if err != nil {
		return httpserver.Response{}, err
	}

	after, err := position("after", query.Get("after"))
	if err != nil {
		return httpserver.Response{}, err
	}

	all, err := a.Webhooks.Undelivered(r.Context(), found.ID, dead, after, query.Page.Size+1)
	if err != nil {
		return httpserver.Response{}, err
	}

	list := operatorapi.WebhookDeliveryList{Data: []operatorapi.WebhookDelivery{}, More: len(all) > query.Page.Size}

	for _, each := range all[:min(len(all), query.Page.Size)] {
		shown := operatorapi.WebhookDelivery{
			Position: each.Event.Position, Event: events.CloudEvent(each.Event, a.PublicURL), Attempts: each.Attempts, FirstAt: each.FirstAt,
			Status: each.Status, Error: each.Error, Dead: each.Dead,
		}
		if !each.Dead {
			shown.NextAt = each.NextAt
		}

		list.Data = append(list.Data, shown)
	}

	list.Count = len(list.Data)

	return httpserver.OK(list), nil
}

// ReplayWebhook makes dead letters or pending deliveries of a webhook due immediately. The request selects which ones.
func (a *API) ReplayWebhook(r *http.Request) (httpserver.Response, error) {
	var order operatorapi.WebhookReplay
	if err := operatorserver.ReadStrictly(r.Body, &order, textReplay); err != nil {
		return httpserver.Response{}, err
	}

	if order.Position < 0 || order.Position > 0 && order.Pending {
		return httpserver.Response{}, operatorserver.Invalid(textReplay)
	}

	replayed := 0

	_, err := a.changeWebhook(r, auditlog.Fields{"change": "replayed", "position": order.Position, "pending": order.Pending}, func(tx storage.Tx, found webhooks.Webhook) error {
		var err error

		replayed, err = a.Webhooks.Replay(r.Context(), tx, found.ID, webhooks.Replayed{Position: order.Position, Pending: order.Pending}, a.Clock.Now())
		if err == nil && replayed == 0 && order.Position > 0 {
			err = operatorserver.NotFound("The webhook has no undelivered event at this position: it has received the event, or its filter excludes the event.")
		}

		return err
	})

	return httpserver.OK(operatorapi.WebhookReplayed{Replayed: replayed}), err
}

// findWebhook returns the webhook that the request path names, even if it cannot be decrypted.
func (a *API) findWebhook(r *http.Request) (webhooks.Webhook, error) {
	id, err := operatorserver.Segment(r, "webhook_id")
	if err != nil {
		return webhooks.Webhook{}, err
	}

	found, err := a.Webhooks.Current(r.Context(), id)

	switch {
	case errors.Is(err, storage.ErrNotFound):
		err = operatorserver.NotFound(textNoWebhook)
	case errors.Is(err, webhooks.ErrUnreadable):
		err = nil
	}

	return found, err
}

// changeWebhook changes the webhook that the request path names, and records the change in the audit log, in one transaction. It
// returns the webhook before the change.
func (a *API) changeWebhook(r *http.Request, after auditlog.Fields, change func(tx storage.Tx, found webhooks.Webhook) error) (webhooks.Webhook, error) {
	id, err := operatorserver.Segment(r, "webhook_id")
	if err != nil {
		return webhooks.Webhook{}, err
	}

	var found webhooks.Webhook

	err = a.DB.InTx(r.Context(), func(tx storage.Tx) error {
		var err error

		found, err = a.Webhooks.Lock(r.Context(), tx, id)

		switch {
		case errors.Is(err, storage.ErrNotFound):
			err = operatorserver.NotFound(textNoWebhook)
		case errors.Is(err, webhooks.ErrUnreadable):
			err = operatorserver.Conflict(textUnreadable)
		case err == nil:
			err = change(tx, found)
		}

		if err != nil {
			return err
		}

		return a.recordWebhook(r.Context(), tx, id, after)
	})

	return found, err
}

// recordWebhook adds an entry to the audit log, with the webhook's ID as its operation ID. The entry contains neither the URL nor
// a secret.
func (a *API) recordWebhook(ctx context.Context, tx storage.Tx, id string, after auditlog.Fields) error {
	return a.Recorder.Record(ctx, tx, auditlog.Entry{Action: auditlog.ActionWebhook, OperationID: id, Status: http.StatusOK, After: after})
}

// showSecret returns the response to a request that has created a secret: the webhook with the secret.
func (a *API) showSecret(ctx context.Context, id string) (httpserver.Response, error) {
	found, err := a.Webhooks.Current(ctx, id)
	if err != nil {
		return httpserver.Response{}, err
	}

	shown, err := a.webhook(ctx, found)

	return httpserver.OK(operatorapi.WebhookSecret{Webhook: shown, Secret: found.Secrets.Current.Reveal()}), err
}

func (a *API) showWebhook(ctx context.Context, found webhooks.Webhook) (httpserver.Response, error) {
	shown, err := a.webhook(ctx, found)

	return httpserver.OK(shown), err
}

// webhook converts a webhook to its form in the API.
func (a *API) webhook(ctx context.Context, found webhooks.Webhook) (operatorapi.Webhook, error) {
	shown := operatorapi.Webhook{
		ID: found.ID, URL: shownURL(found.URL), Types: []string{}, Account: found.Filter.Account, CreatedAt: found.CreatedAt,
		DeliveredAt: found.DeliveredAt, DisabledAt: found.DisabledAt, DisabledReason: found.DisabledReason, MissedAt: found.MissedAt,
		Position: found.Position,
	}

	for _, each := range found.Filter.Types {
		shown.Types = append(shown.Types, string(each))
	}

	if found.Secrets.Previous != "" && a.Clock.Now().Before(found.Secrets.PreviousUntil) {
		shown.PreviousUntil = found.Secrets.PreviousUntil
	}

	var err error
	if shown.Pending, err = a.Webhooks.Count(ctx, found.ID, false, maxShown); err != nil {
		return shown, err
	}

	shown.DeadLetters, err = a.Webhooks.Count(ctx, found.ID, true, maxShown)

	return shown, err
}

// shownURL returns a URL without its user, its query, and its path after the first segment, because these parts may contain a token. The
// URL of a webhook that cannot be decrypted is empty.
func shownURL(address secret.String) string {
	parsed, err := url.Parse(address.Reveal())
	if err != nil || address == "" {
		return ""
	}

	path := parsed.EscapedPath()
	if first, rest, more := strings.Cut(strings.TrimPrefix(path, "/"), "/"); more && rest != "" {
		path = "/" + first + "/…"
	}

	return parsed.Scheme + "://" + parsed.Host + path
}
