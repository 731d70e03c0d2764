package broker_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/url"
	"strings"
	"testing"
)

// unlike returns a text of random characters, which the database cannot compress to the size of an index entry.
func unlike(characters int) string {
	random := rand.New(rand.NewPCG(1, 2))

	var text strings.Builder
	for range characters {
		text.WriteRune(rune(0x4e00 + random.IntN(0x5000)))
	}

	return text.String()
}

// TestTextsThatPostgreSQLRejects checks that the broker rejects texts that PostgreSQL cannot store or index.
func TestTextsThatPostgreSQLRejects(t *testing.T) {
	quoted := func(text string) string {
		encoded, err := json.Marshal(text)
		if err != nil {
			t.Fatal(err)
		}

		return string(encoded)
	}

	cases := map[string]struct {
		reason                    string
		method, id, binding, body string
	}{
		"Application":   {reason: "app_guid is stored", method: "PUT", binding: "one", body: bindOf(`,"app_guid":"a\u0000b"`)},
		"Resource":      {reason: "bind_resource.app_guid is the same field", method: "PUT", binding: "one", body: bindOf(`,"bind_resource":{"app_guid":"a\u0000b"}`)},
		"Predecessor":   {reason: "the predecessor is part of a query", method: "PUT", binding: "one", body: bindOf(`,"predecessor_binding_id":"a\u0000b"`)},
		"Email":         {reason: "the creator is stored", method: "PUT", binding: "one", body: bindOf(`,"context":{"email":"a\u0000b"}`)},
		"LongAccount":   {reason: "accounts are indexed", method: "PUT", id: "new", body: order(with("context", with("globalaccount_id", unlike(3000))))},
		"LongSpace":     {reason: "subaccounts are indexed", method: "PUT", id: "new", body: order(with("space_guid", unlike(3000)))},
		"LongNewOwner":  {reason: "updates can change the account", method: "PATCH", id: instanceID, body: `{"service_id":"` + serviceID + `","context":{"globalaccount_id":` + quoted(unlike(3000)) + `}}`},
		"LongInstance":  {reason: "IDs are keys", method: "PUT", id: unlike(255), body: order()},
		"LongBinding":   {reason: "IDs are keys", method: "PUT", binding: unlike(255), body: bindOf("")},
		"AppsOfAnyKind": {reason: "labels have a limit", method: "PUT", binding: "one", body: bindOf(fmt.Sprintf(`,"app_guid":%q`, strings.Repeat("x", 1000)))},
	}

	onRunning(t, func(b *fixture) {
		b.options.AccountMovement = true
		b.restart()

		for name, test := range cases {
			target := path(url.PathEscape(test.id))
			if test.binding != "" {
				target = bindingOf(instanceID, url.PathEscape(test.binding))
			}

			got := b.do(call{method: test.method, path: target + "?accepts_incomplete=true", body: test.body})
			if got.Status != 400 {
				b.Errorf("%s: %s: want 400, got %d %s", name, test.reason, got.Status, got.Raw)
			}
		}
	})
}
