package operator_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/labels"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/storagetest"
)

// post sends a body to a path of an instance as the user operator.
func (b *bench) post(instance, path, body string) reply {
	b.Helper()
	b.clock.SetTime(b.clock.Now().Add(time.Second)) // orders the entries of the audit log

	return b.send("operator", "POST", "/runtimes/"+instance+"/"+path, strings.NewReader(body))
}

func TestProtection(t *testing.T) {
	storagetest.EachDatabase(t, func(t *testing.T, db *storage.DB) {
		b := benchOn(t, db)
		b.instance("one", process.Succeeded, func(instance *environment.Instance) {
			instance.Request.Parameters = json.RawMessage(`{"name":"mine","deletionProtection":false}`)
		})
		b.instance("two", process.Succeeded)

		for range 2 { // a repeated request changes nothing
			got := b.want("a protection", b.post("one", "protect", `{"reason":"an exhibition"}`), http.StatusOK)
			if shown := read[operatorapi.InstanceProtection](b, got); !shown.DeletionProtection || shown.InstanceID != "one" {
				b.Errorf("the response: %s", got.Raw)
			}
		}

		shown := list[operatorapi.Runtime](b, "/runtimes/one")
		if parameters := fmt.Sprint(shown.Parameters); !shown.DeletionProtection || !strings.Contains(parameters, "deletionProtection:true") {
			b.Errorf("protected %t, parameters %s", shown.DeletionProtection, parameters)
		}

		if found := list[operatorapi.RuntimeList](b, "/runtimes?protected=true"); len(found.Data) != 1 || found.Data[0].InstanceID != "one" {
			b.Errorf("protected instances: %+v", found.Data)
		}

		b.want("the end", b.post("one", "unprotect", `{"reason":"it has ended"}`), http.StatusOK)
		b.want("a protection without a parameter", b.post("two", "protect", `{"reason":"x"}`), http.StatusOK)

		if shown := list[operatorapi.Runtime](b, "/runtimes/two"); !shown.DeletionProtection || shown.Parameters != nil {
			b.Errorf("instance two: protected %t, parameters %v", shown.DeletionProtection, shown.Parameters)
		}

		b.want("no reason", b.post("one", "protect", `{"reason":" "}`), http.StatusBadRequest)
		b.want("an unknown field", b.post("one", "protect", `{"why":"x"}`), http.StatusBadRequest)
		b.want("no instance", b.post("none", "protect", `{"reason":"x"}`), http.StatusNotFound)
		b.want("leftovers", b.do("viewer", "GET", "/runtimes?leftovers=true&protected=true"), http.StatusBadRequest)

		if diff := cmp.Diff([]string{
			"protect 200 an exhibition map[deletionProtection:false] -> map[deletionProtection:true]",
			"unprotect 200 it has ended map[deletionProtection:true] -> map[deletionProtection:false]",
			"protect 400  map[] -> map[]", "protect 400  map[] -> map[]",
		}, b.changesOf("one")); diff != "" {
			b.Errorf("audit log: -want +got\n%s", diff)
		}
	})
}

// changesOf returns the entries of the audit log of an instance, without its creation.
func (b *bench) changesOf(instance string) []string {
	b.Helper()

	var lines []string

	for _, entry := range b.audit("?instance_id=" + instance) {
		if entry.Action != environment.KindProvision {
			lines = append(lines, fmt.Sprintf("%s %d %s %v -> %v", entry.Action, entry.Status, entry.Reason, entry.Before, entry.After))
		}
	}

	return lines
}

func TestLabels(t *testing.T) {
	storagetest.EachDatabase(t, func(t *testing.T, db *storage.DB) {
		b := benchOn(t, db)
		for _, id := range []string{"one", "two", "three"} {
			b.instance(id, process.Succeeded)
		}

		set := func(instance, body string) map[string]string {
			return read[operatorapi.InstanceLabels](b, b.want(body, b.post(instance, "label", body), http.StatusOK)).Labels
		}

		set("one", `{"set":{"ring":"canary","team":"a"}}`)
		set("one", `{"set":{"ring":"canary"}}`) // changes nothing
		set("two", `{"set":{"ring":"rest","example.com/team":""}}`)

		if got := set("one", `{"set":{"ring":"early"},"remove":["team","missing"]}`); !cmp.Equal(got, map[string]string{"ring": "early"}) {
			b.Errorf("labels after a change: %v", got)
		}

		if got := list[operatorapi.Runtime](b, "/runtimes/two").Labels; !cmp.Equal(got, map[string]string{"ring": "rest", "example.com/team": ""}) {
			b.Errorf("labels of two: %v", got)
		}

		for selector, want := range map[string]string{
			"": "three two one", "ring": "two one", "ring=early": "one", "ring,example.com/team=": "two", "ring=canary": "", "team": "",
		} {
			ids := []string{}
			for _, shown := range list[operatorapi.RuntimeList](b, "/runtimes?labels="+selector).Data {
				ids = append(ids, shown.InstanceID)
			}

			if got := strings.Join(ids, " "); got != want {
				b.Errorf("instances with the labels %q: %q, want %q", selector, got, want)
			}
		}

		many := map[string]string{}
		for i := range labels.Max {
			many[fmt.Sprint("name", i)] = "x"
		}

		body, err := json.Marshal(map[string]any{"set": many})
		if err != nil {
			b.Fatal(err)
		}

		b.want("too many labels", b.post("one", "label", string(body)), http.StatusConflict)
		b.want("no change", b.post("one", "label", `{}`), http.StatusBadRequest)
		b.want("an invalid name", b.post("one", "label", `{"set":{"a b":"x"}}`), http.StatusBadRequest)
		b.want("an invalid value", b.post("one", "label", `{"set":{"a":"b c"}}`), http.StatusBadRequest)
		b.want("a long name", b.post("one", "label", `{"set":{"`+strings.Repeat("a", 1000)+`":""}}`), http.StatusBadRequest)

		both := b.want("a label in set and remove", b.post("one", "label", `{"set":{"ring":"late"},"remove":["ring"]}`), http.StatusBadRequest)
		if !strings.Contains(both.Raw, "The label ring is in both set and remove.") {
			b.Errorf("a label that is set and removed: %s", both.Raw)
		}

		b.want("no instance", b.post("none", "label", `{"set":{"a":"b"}}`), http.StatusNotFound)
		b.want("an invalid selector", b.do("viewer", "GET", "/runtimes?labels=a,,b"), http.StatusBadRequest)

		if got := list[operatorapi.Runtime](b, "/runtimes/one").Labels; !cmp.Equal(got, map[string]string{"ring": "early"}) {
			b.Errorf("labels after rejected changes: %v", got)
		}

		if diff := cmp.Diff([]string{
			"label 200  map[labels:<nil>] -> map[labels:map[ring:canary team:a]]",
			"label 200  map[labels:map[ring:canary team:a]] -> map[labels:map[ring:early]]", "label 409  map[] -> map[]",
			"label 400  map[] -> map[]", "label 400  map[] -> map[]", "label 400  map[] -> map[]", "label 400  map[] -> map[]", "label 400  map[] -> map[]",
		}, b.changesOf("one")); diff != "" {
			b.Errorf("audit log: -want +got\n%s", diff)
		}

		b.drop("one")

		if found, err := b.instances.Labels(b.Context(), db.Reader(), "one", "two"); err != nil || len(found) != 1 {
			b.Errorf("labels after the deletion of an instance: %v, %v", found, err)
		}
	})
}
