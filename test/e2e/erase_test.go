package e2e

import (
	"encoding/base64"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	broker "github.com/environment-broker/environment-broker/broker/service"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/program/replica"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakeedp"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakereconciler"
	"github.com/environment-broker/environment-broker/internal/sandbox/simulator"
	"github.com/environment-broker/environment-broker/internal/secret"
	provisioner "github.com/environment-broker/environment-broker/provisioner/service"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/instanceevents"
	"github.com/environment-broker/environment-broker/test/harness"
)

// customer is a platform whose requests contain the customer's marker in every place where personal data may occur.
type customer struct {
	env

	account, marker string
}

// customer returns a customer with the given account and marker.
func (e env) customer(account, marker string) customer {
	e.Transport = markedTransport(marker)

	return customer{env: e, account: account, marker: marker}
}

// markedTransport adds the marker to the headers that identify the user and the request.
type markedTransport string

func (m markedTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	identity := base64.StdEncoding.EncodeToString([]byte(`{"user_id":"` + string(m) + `"}`))
	request.Header.Set("X-Broker-API-Originating-Identity", string(m)+" "+identity)
	request.Header.Set("X-Broker-API-Request-Identity", string(m))

	return http.DefaultTransport.RoundTrip(request)
}

// order returns an order with the marker in the parameters and in the context.
func (c customer) order(instance string) map[string]any {
	order := harness.Order(harness.PlanPreview)
	order["organization_guid"], order["space_guid"] = c.marker, c.marker
	order["context"] = map[string]any{
		"globalaccount_id": c.account, "subaccount_id": c.marker, "user_id": c.marker, "instance_name": instance + "-" + c.marker,
		"organization_name": c.marker,
	}
	order["parameters"] = map[string]any{"administrators": []string{c.marker + "@example.com"}}

	return order
}

// live creates, changes and uses an instance. Operators intervene, and some requests are rejected.
func (c customer) live(instance string) {
	c.Helper()

	path := harness.InstancePath(instance)

	// The order for this instance is rejected.
	refused := c.order("refused")
	refused["parameters"] = map[string]any{"machineType": c.marker}
	c.Send(http.MethodPut, harness.InstancePath("refused-"+instance)+harness.Incomplete, refused, http.StatusBadRequest)

	// An operator cancels and retries the creation of this instance.
	c.faults(harness.StuckClusters())
	c.Send(http.MethodPut, path+harness.Incomplete, c.order(instance), http.StatusAccepted)
	c.intervene("cancel", c.lastOperation(instance), c.marker)
	c.WaitForEnd(instance)
	c.faults(nil)
	c.intervene("retry", c.lastOperation(instance), c.marker)
	c.WantSucceeded(instance)

	c.Update(instance, map[string]any{"parameters": map[string]any{"administrators": []string{c.marker + "@example.org"}}})
	c.WantSucceeded(instance)
	c.kubeconfig(instance)
	c.ebctl("instance", "label", instance, "team="+c.marker)

	bind := bindingOf(harness.PlanPreview, "view")
	bind["context"] = map[string]any{"user_id": c.marker}
	c.sendSynchronous(http.MethodPut, harness.BindingPath(instance, "binding"), bind, http.StatusCreated, http.StatusOK)
}

// leave deletes the instance while the given systems are unavailable. An operator skips the steps that call them.
func (c customer) leave(instance string, unavailable ...simulator.System) {
	c.Helper()

	for _, system := range unavailable {
		system.Inject(simulator.Fault{Status: http.StatusServiceUnavailable, Times: -1})
		defer system.Reset()
	}

	deletion := c.Delete(instance, harness.PlanPreview)

	for _, step := range []string{"EDP_Deregistration", "Deregister_Cluster", "Check_Cluster_Deregistration"} {
		c.Until("advice to skip "+step, func() bool {
			return strings.Contains(c.explain(deletion), "ebctl operation skip "+deletion+" --step "+step)
		})
		c.intervene("skip", deletion, c.marker, "--step", step)
	}

	c.WantGone(instance)

	// The broker rejects requests for the deleted instance.
	c.Send(http.MethodPatch, harness.InstancePath(instance)+harness.Incomplete, map[string]any{"service_id": harness.ServiceID}, http.StatusNotFound)
}

// searched is a service's database, in which a test searches for markers.
type searched struct {
	*testing.T

	service string
	db      *storage.DB
	keys    *secret.Keyring
	// sealed contains a function for each sealed column, by table and column. It returns the context to which the value in the row
	// with the given ID is bound.
	sealed map[string]func(id string) string
}

func openSearched(t *testing.T, service string, settings replica.Database) searched {
	t.Helper()

	db, keys := harness.OpenSealed(t, settings)
	sealed := map[string]func(string) string{}

	for _, column := range append(broker.SealedColumns(), provisioner.SealedColumns()...) {
		sealed[column.Table+"."+column.Column] = column.Place
	}

	return searched{T: t, service: service, db: db, keys: keys, sealed: sealed}
}

// tables returns the names of all tables.
func (s searched) tables() []string {
	s.Helper()

	query := `SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name`
	if s.db.Driver() == storage.DriverPostgres {
		query = `SELECT table_name FROM information_schema.tables WHERE table_schema = 'public' ORDER BY table_name`
	}

	tables, err := storage.Select[string](s.Context(), s.db.Reader(), query)
	if err != nil {
		s.Fatal(err)
	}

	return tables
}

// find counts the values that contain the marker, by service, table and column. It decrypts sealed values.
func (s searched) find(marker string, found map[string]int) {
	s.Helper()

	for _, table := range s.tables() {
		rows, err := s.db.Reader().QueryxContext(s.Context(), `SELECT * FROM `+table)
		if err != nil {
			s.Fatal(err)
		}

		for rows.Next() {
			row := map[string]any{}
			if err := rows.MapScan(row); err != nil {
				s.Fatal(err)
			}

			for column, value := range row {
				name, text := table+"."+column, fmt.Sprintf("%s", value)

				if place, sealed := s.sealed[name]; sealed && text != "" {
					plain, err := s.keys.Open(text, place(fmt.Sprintf("%s", row["id"])))
					if err != nil {
						s.Fatalf("opening %s: %v", name, err)
					}

					text = string(plain)
				}

				if strings.Contains(text, marker) {
					found[s.service+" "+name]++
				}
			}
		}

		if err := rows.Close(); err != nil {
			s.Fatal(err)
		}
	}
}

// record records an event whose message contains the marker, because the broker's own messages contain no personal data.
func (s searched) record(instance, marker string) {
	s.Helper()

	store, err := instanceevents.Open(s.Context(), s.db)
	if err == nil {
		err = s.db.InTx(s.Context(), func(tx storage.Tx) error {
			return store.Record(s.Context(), tx, environment.Event{
				InstanceID: instance, System: environment.SystemReconciler, Result: "failed", Message: marker, LastAt: time.Now(),
			})
		})
	}

	if err != nil {
		s.Fatal(err)
	}
}

// TestEraseLeavesNoPersonalData searches every column of both databases for the personal data of an erased account.
func TestEraseLeavesNoPersonalData(t *testing.T) {
	t.Parallel()

	harness.EachDatabase(t, func(t *testing.T, database harness.Database) {
		var settings replica.Database

		tenants, installer := fakeedp.New(), fakereconciler.New().Quick()
		server := httptest.NewServer(simulator.NewHandler(tenants, installer))
		t.Cleanup(server.Close)

		e := start(t, database, 100*time.Millisecond, func(broker *broker.Config, provisioner *provisioner.Config) {
			settings = provisioner.Database
			broker.Kyma.Version, broker.Kyma.Installer = "1.0.0", environment.InstallerReconciler
			broker.Reconciler.URL, broker.Gardener.ShootDomain = server.URL+"/reconciler", "example.com"
			broker.EDP.AuthURL, broker.EDP.AdminURL = server.URL+"/edp", server.URL+"/edp"
			broker.EDP.Namespace, broker.EDP.Secret = fakeedp.Namespace, fakeedp.Secret
		})
		services := []searched{openSearched(t, "broker", e.services.Settings.Database), openSearched(t, "provisioner", settings)}

		find := func(marker string) map[string]int {
			found := map[string]int{}
			for _, service := range services {
				service.find(marker, found)
			}

			return found
		}

		erased, other := e.customer("erased-account", "m4rk3d"), e.customer("other-account", "0th3r")
		planted := map[string]int{}

		for _, customer := range []customer{erased, other} {
			instance := strings.ReplaceAll(customer.account, "account", "instance")

			customer.live(instance)
			services[0].record(instance, customer.marker)
			maps.Copy(planted, find(erased.marker))
			customer.leave(instance, tenants, installer)
			maps.Copy(planted, find(erased.marker))
			customer.ebctl("leftover", "confirm", instance, "--reason", customer.marker, "--yes")
		}

		// Without markers in each of these columns before the erasure, the test would prove less than it should.
		for _, column := range []string{
			"broker operations.payload", "broker operations.audit", "broker operations.ordered_by", "broker timeline.message",
			"broker audit.entry", "broker audit.ordered_by", "broker instances.request", "broker bindings.created_by",
			"broker instance_labels.value", "broker instance_events.message", "broker outside_configurations.configuration",
			"broker outside_objects.object_key", "broker leftovers.subaccount_id", "provisioner operations.payload", "provisioner operations.audit",
			"provisioner runtimes.configuration", "provisioner runtimes.subaccount",
		} {
			if planted[column] == 0 {
				t.Errorf("%s contains no personal data: got %v", column, slices.Sorted(maps.Keys(planted)))
			}
		}

		e.Until("published events of both accounts", func() bool {
			return find(erased.account)["broker events.account"] > 0 && find(other.account)["broker events.account"] > 0 &&
				find("account")["broker new_events.account"] == 0
		})

		kept, keptEvents := find(other.marker), find(other.account)["broker events.account"]
		behind := platform{e.Client}
		behind.URL = e.services.Proxy.URL

		for range 2 { // a second erasure changes nothing
			e.ebctl("account", "erase", erased.account)
			behind.ebctl("provisioner", "account", "erase", erased.account)
		}

		if left := find(erased.marker); len(left) != 0 {
			t.Errorf("the databases still contain personal data: %v", left)
		}

		if left := find(erased.account); left["broker events.account"] != 0 || left["broker new_events.account"] != 0 {
			t.Errorf("the database still contains events of the account: %v", left)
		}

		if left := find(other.account)["broker events.account"]; left != keptEvents {
			t.Errorf("%d events of the other account are left, want %d", left, keptEvents)
		}

		if diff := cmp.Diff(kept, find(other.marker)); diff != "" {
			t.Errorf("the data of the other account has changed: -want +got\n%s", diff)
		}

		if listed := e.ebctl("audit", "list", "--action", "erase", "-o", "jsonpath={.data[*].accountID}"); strings.TrimSpace(listed) != erased.account {
			t.Errorf("want one entry of the erasure, got %q", listed)
		}

		e.Until("hash chains that list the erasure", func() bool {
			return strings.Contains(e.ebctl("audit", "verify"), erased.account) &&
				strings.Contains(behind.ebctl("provisioner", "audit", "verify"), erased.account)
		})

		// The account can be used again.
		erased.Send(http.MethodPut, harness.InstancePath("erased-instance")+harness.Incomplete, erased.order("erased-instance"), http.StatusAccepted)
		erased.WantSucceeded("erased-instance")
	})
}
