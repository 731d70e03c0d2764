package operator_test

import (
	"context"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/environment-broker/environment-broker/broker/operator"
	"github.com/environment-broker/environment-broker/internal/clients/webhook"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/storagetest"
	"github.com/environment-broker/environment-broker/storage/webhooks"
)

// order sends a request with the given body as an admin.
func (b *bench) order(path, body string) reply {
	b.Helper()

	return b.send("admin", http.MethodPost, path, strings.NewReader(body))
}

func TestWebhooks(t *testing.T) {
	storagetest.EachDatabase(t, func(t *testing.T, db *storage.DB) {
		var (
			sent    webhook.Message
			failure error
		)

		b := benchOn(t, db, func(options *operator.Options) {
			options.SendWebhook = func(_ context.Context, message webhook.Message) error {
				sent = message

				return failure
			}
		})

		created := read[operatorapi.WebhookSecret](b, b.want("a webhook", b.order("/webhooks",
			`{"url": "https://example.com/a%2Fb/t0ken?token=t0ken", "types": ["operation.failed"], "account": "ga"}`), http.StatusOK))
		id := created.Webhook.ID
		want := operatorapi.Webhook{ID: id, URL: "https://example.com/a%2Fb/…", Types: []string{"operation.failed"}, Account: "ga", CreatedAt: b.clock.Now()}

		if diff := cmp.Diff(want, created.Webhook); diff != "" || !strings.HasPrefix(created.Secret, "whsec_") {
			t.Errorf("-want +got\n%s", diff)
		}

		for _, path := range []string{"/webhooks", "/webhooks/" + id} {
			if got := b.want("operators", b.do("operator", http.MethodGet, path), http.StatusOK); strings.Contains(got.Raw, "whsec_") || strings.Contains(got.Raw, "t0ken") {
				t.Errorf("%s shows a secret: %s", path, got.Raw)
			}
		}

		// Both secrets sign a message during the rotation.
		rotated := read[operatorapi.WebhookSecret](b, b.want("a rotation", b.order("/webhooks/"+id+"/rotate", `{"overlapHours": 2}`), http.StatusOK))
		if rotated.Secret == created.Secret || rotated.Webhook.PreviousUntil.Sub(b.clock.Now()).Hours() != 2 {
			t.Errorf("rotated: %+v", rotated)
		}

		if got := read[operatorapi.WebhookTest](b, b.want("a test", b.do("operator", http.MethodPost, "/webhooks/"+id+"/test"), http.StatusOK)); !got.Delivered {
			t.Errorf("got %+v", got)
		}

		if len(sent.Secrets) != 2 || sent.Secrets[0].Reveal() != rotated.Secret || sent.Secrets[1].Reveal() != created.Secret ||
			!strings.Contains(string(sent.Body), `"io.github.environment-broker.webhook.test"`) || sent.URL.Reveal() != "https://example.com/a%2Fb/t0ken?token=t0ken" {
			t.Errorf("sent %s", sent.Body)
		}

		if _, err := standardwebhooks.NewWebhook(rotated.Secret); err != nil {
			t.Error(err)
		}

		failure = &webhook.Error{Status: http.StatusTeapot}

		if got := read[operatorapi.WebhookTest](b, b.want("a failed test", b.order("/webhooks/"+id+"/test", ""), http.StatusOK)); got.Delivered || got.Status != http.StatusTeapot {
			t.Errorf("got %+v", got)
		}

		b.undelivered(id)

		deleted := b.want("a deletion", b.do("admin", http.MethodDelete, "/webhooks/"+id), http.StatusOK)
		if read[operatorapi.Webhook](b, deleted).ID != id {
			t.Errorf("got %s", deleted.Raw)
		}

		b.want("a second deletion", b.do("admin", http.MethodDelete, "/webhooks/"+id), http.StatusNotFound)
		b.wantWebhookEntries("deleted", "replayed", "replayed", "replayed", "replayed", "enabled", "tested", "tested", "rotated", "created")
	})
}

// undelivered stores a dead letter and a pending delivery, and disables the webhook.
func (b *bench) undelivered(id string) {
	b.Helper()
	b.instance("one", process.Failed)
	b.instance("two", process.Failed)
	b.publish()

	current, err := b.webhooks.Current(b.Context(), id)
	if err != nil {
		b.Fatal(err)
	}

	found, last, err := b.eventLog.Read(b.Context(), current.Filter, 0, 9)
	if err == nil {
		_, err = b.webhooks.Hold(b.Context(), id, "replica", b.clock.Now(), b.clock.Now())
	}

	if err == nil {
		_, err = b.webhooks.Add(b.Context(), current, "replica", found, last, b.clock.Now())
	}

	if err == nil {
		err = b.webhooks.Fail(b.Context(), webhooks.Delivery{
			WebhookID: id, Event: found[0], Dead: true, NextAt: b.clock.Now(), Status: http.StatusTeapot, Error: "HTTP status 418 I'm a teapot",
		})
	}

	if err == nil {
		err = b.webhooks.Disable(b.Context(), id, "gone", b.clock.Now())
	}

	if err != nil {
		b.Fatal(err)
	}

	shown := read[operatorapi.Webhook](b, b.want("a list", b.do("operator", http.MethodGet, "/webhooks/"+id), http.StatusOK))
	if shown.Pending != 1 || shown.DeadLetters != 1 || shown.DisabledReason != "gone" || shown.DisabledAt.IsZero() {
		b.Errorf("got %+v", shown)
	}

	dead := read[operatorapi.WebhookDeliveryList](b, b.want("a list", b.do("operator", http.MethodGet, "/webhooks/"+id+"/deliveries?dead=true"), http.StatusOK))
	if dead.Count != 1 || dead.Data[0].Event.Data.InstanceID != "one" || !dead.Data[0].Dead || dead.Data[0].Status != http.StatusTeapot || !dead.Data[0].NextAt.IsZero() {
		b.Errorf("got %+v", dead)
	}

	if pending := read[operatorapi.WebhookDeliveryList](b, b.want("a list", b.do("operator", http.MethodGet, "/webhooks/"+id+"/deliveries"), http.StatusOK)); pending.Count != 1 || pending.Data[0].Event.Data.InstanceID != "two" {
		b.Errorf("got %+v", pending)
	}

	enabled := read[operatorapi.Webhook](b, b.want("enabled", b.do("operator", http.MethodPost, "/webhooks/"+id+"/enable"), http.StatusOK))
	if !enabled.DisabledAt.IsZero() {
		b.Errorf("got %+v", enabled)
	}

	b.want("no dead letter", b.order("/webhooks/"+id+"/replay", `{"position": 999}`), http.StatusNotFound)

	pending := read[operatorapi.WebhookDeliveryList](b, b.want("a list", b.do("operator", http.MethodGet, "/webhooks/"+id+"/deliveries"), http.StatusOK))
	for _, body := range []string{`{"pending": true}`, `{"position": ` + strconv.FormatInt(pending.Data[0].Position, 10) + `}`} {
		if got := read[operatorapi.WebhookReplayed](b, b.want(body, b.order("/webhooks/"+id+"/replay", body), http.StatusOK)); got.Replayed != 1 {
			b.Errorf("%s: replayed %d, want the pending event", body, got.Replayed)
		}
	}

	for _, want := range []int{1, 0} {
		if got := read[operatorapi.WebhookReplayed](b, b.want("a replay", b.order("/webhooks/"+id+"/replay", `{}`), http.StatusOK)); got.Replayed != want {
			b.Errorf("replayed %d, want %d", got.Replayed, want)
		}
	}
}

// wantWebhookEntries checks the changes in the audit log, newest first, and that they contain no secret.
func (b *bench) wantWebhookEntries(want ...string) {
	b.Helper()

	got := b.want("the audit log", b.do("admin", http.MethodGet, "/audit?action=webhook"), http.StatusOK)
	if strings.Contains(got.Raw, "t0ken") || strings.Contains(got.Raw, "whsec_") {
		b.Errorf("the audit log contains a secret: %s", got.Raw)
	}

	changes := map[string]int{}
	for _, entry := range read[operatorapi.AuditList](b, got).Data {
		if change, is := entry.After["change"].(string); is {
			changes[change]++
		}
	}

	for _, change := range want {
		changes[change]--
	}

	for change, count := range changes {
		if count != 0 {
			b.Errorf("%d entries more than expected of %s", count, change)
		}
	}
}

// TestUnreadableWebhook checks that a webhook whose content cannot be decrypted is listed and can be deleted, and that others can be created.
func TestUnreadableWebhook(t *testing.T) {
	b := newBench(t)
	created := read[operatorapi.WebhookSecret](b, b.want("a webhook", b.order("/webhooks", `{"url": "https://example.com"}`), http.StatusOK))
	path := "/webhooks/" + created.Webhook.ID

	if _, err := storage.Exec(t.Context(), b.db.Writer(), `UPDATE webhooks SET content = 'changed'`); err != nil {
		t.Fatal(err)
	}

	b.clock.SetTime(b.clock.Now().Add(time.Minute))
	b.want("another webhook", b.order("/webhooks", `{"url": "https://example.com"}`), http.StatusOK)

	listed := read[operatorapi.WebhookList](b, b.want("the list", b.do("operator", http.MethodGet, "/webhooks"), http.StatusOK))
	if len(listed.Data) != 2 || listed.Data[0].ID != created.Webhook.ID || listed.Data[0].URL != "" {
		t.Errorf("got %+v", listed)
	}

	for _, change := range []string{"/test", "/enable", "/replay"} {
		if got := b.want(change, b.order(path+change, `{}`), http.StatusConflict); !strings.Contains(got.Raw, "cannot be decrypted") {
			t.Errorf("got %s", got.Raw)
		}
	}

	b.want("the webhook", b.do("operator", http.MethodGet, path), http.StatusOK)
	b.want("a deletion", b.do("admin", http.MethodDelete, path), http.StatusOK)
}

func TestInvalidWebhooks(t *testing.T) {
	b := newBench(t)

	for body, want := range map[string]string{
		`{`:                                                  "The body is invalid",
		`{"url": "https://example.com", "a": 1}`:             "The body is invalid",
		`{"url": "ftp://example.com"}`:                       "url: the URL must begin with https://.",
		`{"url": "https://u:p@example.com"}`:                 "url: the URL must not contain credentials",
		`{"url": "http://example.com"}`:                      "url: the URL must begin with https://, because APP_WEBHOOK_NETWORKS allows no network.",
		`{"url": "https://10.0.0.1"}`:                        "url: the address is neither public nor in an allowed network.",
		`{"url": "https://example.com", "types": ["other"]}`: "is unknown",
		`{"url": "https://example.com", "account": "` + strings.Repeat("a", 5000) + `"}`: "account must be a string",
		`{"url": "https://example.com", "account": "a\u0000"}`:                           "account must be a string",
	} {
		if got := b.want(body, b.order("/webhooks", body), http.StatusBadRequest); !strings.Contains(got.Raw, want) {
			t.Errorf("%.60s: got %s", body, got.Raw)
		}
	}

	for range 50 {
		b.want("a webhook", b.order("/webhooks", `{"url": "https://example.com"}`), http.StatusOK)
	}

	b.want("too many", b.order("/webhooks", `{"url": "https://example.com"}`), http.StatusConflict)

	for body, path := range map[string]string{
		`{"overlapHours": 169}`: "rotate", `{"position": -1}`: "replay", `{"position": 1, "pending": true}`: "replay", `{"pending": "all"}`: "replay",
	} {
		b.want(body, b.send("admin", http.MethodPost, "/webhooks/x/"+path, io.NopCloser(strings.NewReader(body))), http.StatusBadRequest)
	}
}

// TestConcurrentWebhooks adds more webhooks at the same time than the database has connections, and than there can be.
func TestConcurrentWebhooks(t *testing.T) {
	storagetest.EachDatabase(t, func(t *testing.T, db *storage.DB) {
		b := benchOn(t, db)

		var (
			statuses [60]int
			running  sync.WaitGroup
		)

		for i := range statuses {
			running.Go(func() { statuses[i] = b.order("/webhooks", `{"url": "https://example.com"}`).Status })
		}

		running.Wait()

		counts := map[int]int{}
		for _, status := range statuses {
			counts[status]++
		}

		if diff := cmp.Diff(map[int]int{http.StatusOK: 50, http.StatusConflict: 10}, counts); diff != "" {
			t.Errorf("statuses: -want +got\n%s", diff)
		}
	})
}
