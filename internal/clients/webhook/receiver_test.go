package webhook_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/environment-broker/environment-broker/internal/clients/webhook"
)

// The listing of docs/operator/events.md begins here.

// verify reports whether a message was signed with the secret in the last five minutes.
func verify(secret string, header http.Header, body []byte) bool {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	if err != nil {
		return false
	}

	id, timestamp := header.Get("webhook-id"), header.Get("webhook-timestamp")

	seconds, err := strconv.ParseInt(timestamp, 10, 64)
	if err != nil || time.Since(time.Unix(seconds, 0)).Abs() > 5*time.Minute {
		return false
	}

	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(id + "." + timestamp + "."))
	mac.Write(body)

	want := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	for signature := range strings.FieldsSeq(header.Get("webhook-signature")) {
		if hmac.Equal([]byte(signature), []byte(want)) {
			return true
		}
	}

	return false
}

// The listing ends here.

// TestListing compares the listing with the documentation, and verifies messages with it.
func TestListing(t *testing.T) {
	source, err := os.ReadFile("receiver_test.go")
	if err != nil {
		t.Fatal(err)
	}

	page, err := os.ReadFile("../../../docs/operator/events.md")
	if err != nil {
		t.Fatal(err)
	}

	_, listing, _ := strings.Cut(string(source), "begins here.\n\n")
	if listing, _, _ = strings.Cut(listing, "\n// The listing ends"); !strings.Contains(string(page), listing) {
		t.Error("the listing of the page differs")
	}

	current, previous, other := webhook.NewSecret(), webhook.NewSecret(), webhook.NewSecret()

	var verified []bool

	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}

		verified = []bool{
			verify(current.Reveal(), r.Header, body), verify(previous.Reveal(), r.Header, body), verify(other.Reveal(), r.Header, body),
			verify(current.Reveal(), r.Header, append(body, ' ')),
		}
	}))
	t.Cleanup(server.Close)

	for _, c := range []struct {
		reason string
		at     time.Time
		want   bool
	}{{"a new message", time.Now(), true}, {"an old message", time.Now().Add(-time.Hour), false}, {"a message of the future", time.Now().Add(time.Hour), false}} {
		sent := message(server.URL, current, previous)
		sent.At = c.at

		if err := webhook.New(loopback(t), timeout).Send(t.Context(), sent); err != nil {
			t.Fatal(err)
		}

		if verified[0] != c.want || verified[1] != c.want || verified[2] || verified[3] {
			t.Errorf("%s: got %v", c.reason, verified)
		}
	}
}
