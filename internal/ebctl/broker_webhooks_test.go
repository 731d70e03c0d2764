package ebctl_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"

	"github.com/environment-broker/environment-broker/internal/operatorapi"
)

func (b *fakeBroker) routeWebhooks() {
	b.routes.HandleFunc("GET /webhooks", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusOK, operatorapi.WebhookList{Data: b.scenario.Webhooks})
	})
	b.routes.HandleFunc("POST /webhooks", func(w http.ResponseWriter, r *http.Request) {
		var order operatorapi.WebhookOrder

		_ = json.NewDecoder(r.Body).Decode(&order)

		answer(w, http.StatusOK, operatorapi.WebhookSecret{
			Webhook: operatorapi.Webhook{ID: "new", URL: order.URL, Types: order.Types, Account: order.Account}, Secret: "whsec_c2VjcmV0",
		})
	})
	b.routes.HandleFunc("GET /webhooks/{id}", b.onWebhook(func(webhook operatorapi.Webhook) any { return webhook }))
	b.routes.HandleFunc("DELETE /webhooks/{id}", b.onWebhook(func(webhook operatorapi.Webhook) any { return webhook }))
	b.routes.HandleFunc("POST /webhooks/{id}/enable", b.onWebhook(func(webhook operatorapi.Webhook) any { return webhook }))
	b.routes.HandleFunc("POST /webhooks/{id}/rotate", b.onWebhook(func(webhook operatorapi.Webhook) any {
		return operatorapi.WebhookSecret{Webhook: webhook, Secret: "whsec_bmV3"}
	}))
	b.routes.HandleFunc("POST /webhooks/{id}/replay", b.onWebhook(func(webhook operatorapi.Webhook) any {
		return operatorapi.WebhookReplayed{Replayed: webhook.DeadLetters}
	}))
	b.routes.HandleFunc("POST /webhooks/{id}/test", b.onWebhook(func(webhook operatorapi.Webhook) any {
		if webhook.DisabledReason != "" {
			return operatorapi.WebhookTest{Status: http.StatusGone, Error: "HTTP status 410 Gone"}
		}

		return operatorapi.WebhookTest{Delivered: true, Status: http.StatusOK}
	}))
	b.routes.HandleFunc("GET /webhooks/{id}/deliveries", func(w http.ResponseWriter, r *http.Request) {
		list := operatorapi.WebhookDeliveryList{Data: []operatorapi.WebhookDelivery{}}

		after, _ := strconv.ParseInt(r.URL.Query().Get("after"), 10, 64)

		// One delivery per page.
		for _, each := range b.scenario.Deliveries {
			if each.Dead != (r.URL.Query().Get("dead") == "true") || each.Position <= after {
				continue
			}

			if list.More = len(list.Data) > 0; list.More {
				break
			}

			list.Data = append(list.Data, each)
		}

		list.Count = len(list.Data)
		answer(w, http.StatusOK, list)
	})
}

// onWebhook returns the handler that responds with the result for the webhook in the path.
func (b *fakeBroker) onWebhook(respond func(operatorapi.Webhook) any) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		at := slices.IndexFunc(b.scenario.Webhooks, func(webhook operatorapi.Webhook) bool { return webhook.ID == r.PathValue("id") })
		if at < 0 {
			refuse(w, http.StatusNotFound, "NotFound", "The webhook does not exist.")

			return
		}

		answer(w, http.StatusOK, respond(b.scenario.Webhooks[at]))
	}
}
