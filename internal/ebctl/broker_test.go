package ebctl_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/environment-broker/environment-broker/internal/operatorapi"
)

// fakeBroker is a simulated broker that serves the data and faults of a scenario.
type fakeBroker struct {
	scenario   scenario
	routes     *http.ServeMux
	mutex      sync.Mutex
	operations map[string]*playback
	order      []string
	runtimes   []operatorapi.Runtime
	bindings   []operatorapi.Binding
	requests   []string
}

func newFakeBroker(scenario scenario) (*fakeBroker, error) {
	broker := &fakeBroker{
		scenario:   scenario,
		routes:     http.NewServeMux(),
		operations: map[string]*playback{},
		runtimes:   slices.Clone(scenario.Runtimes),
		bindings:   slices.Clone(scenario.Bindings),
	}

	for _, script := range scenario.Operations {
		complete, err := script.complete()
		if err != nil {
			return nil, err
		}

		broker.operations[script.ID] = complete
		broker.order = append(broker.order, script.ID)
	}

	for _, prefix := range []string{"/v2", "/oauth/{platform_region}/v2"} {
		broker.routes.HandleFunc("GET "+prefix+"/catalog", osb(broker.catalog))
		broker.routes.HandleFunc("PUT "+prefix+"/service_instances/{id}", osb(broker.provision))
		broker.routes.HandleFunc("GET "+prefix+"/service_instances/{id}", osb(broker.fetch))
		broker.routes.HandleFunc("PATCH "+prefix+"/service_instances/{id}", osb(broker.update))
		broker.routes.HandleFunc("DELETE "+prefix+"/service_instances/{id}", osb(broker.deprovision))
	}

	const binding = "/v2/service_instances/{id}/service_bindings/{binding}"
	broker.routes.HandleFunc("PUT "+binding, broker.bound(broker.bind))
	broker.routes.HandleFunc("GET "+binding, broker.bound(broker.fetchBinding))
	broker.routes.HandleFunc("DELETE "+binding, broker.bound(broker.unbind))

	broker.routes.HandleFunc("GET /runtimes", broker.listRuntimes)
	broker.routes.HandleFunc("GET /runtimes/{id}", broker.runtime)
	broker.routes.HandleFunc("GET /runtimes/{id}/bindings", broker.listBindings)
	broker.routes.HandleFunc("POST /runtimes/{id}/adminkubeconfig", broker.adminKubeconfig)
	broker.routes.HandleFunc("POST /runtimes/{id}/upgradeKyma", broker.upgrade)
	broker.routes.HandleFunc("POST /runtimes/{id}/upgradeCluster", broker.upgrade)
	broker.routes.HandleFunc("POST /shoots/{name}/adopt", broker.adoptShoot)
	broker.routes.HandleFunc("POST /runtimes/{id}/renewCredentials", broker.renewCredentials)
	broker.routes.HandleFunc("GET /credentials", broker.listCredentials)
	broker.routes.HandleFunc("POST /runtimes/{id}/protect", broker.protect(true))
	broker.routes.HandleFunc("POST /runtimes/{id}/unprotect", broker.protect(false))
	broker.routes.HandleFunc("POST /runtimes/{id}/label", broker.label)
	broker.routes.HandleFunc("POST /runtimes/{id}/upgradeTime", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusOK, operatorapi.UpgradeTime{Time: time.Date(2030, 1, 2, 22, 0, 0, 0, time.UTC)})
	})
	broker.routes.HandleFunc("POST /runtimes/{id}/{verb}", broker.changePlatforms)
	broker.routes.HandleFunc("GET /processes", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusOK, operatorapi.ProcessList{Data: scenario.Processes})
	})
	broker.routes.HandleFunc("GET /jobs", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusOK, operatorapi.JobList{Data: scenario.Jobs})
	})
	broker.routes.HandleFunc("POST /jobs/{name}/run", broker.runJob)
	broker.routes.HandleFunc("GET /quotas", broker.listQuotas)
	broker.routes.HandleFunc("GET /events", broker.listEvents)
	broker.routes.HandleFunc("GET /platforms", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusOK, operatorapi.PlatformList{Data: scenario.Platforms})
	})
	broker.routes.HandleFunc("PUT /expire/service_instance/{id}", broker.expire)
	broker.routes.HandleFunc("GET /catalog", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusOK, operatorapi.Catalog{ETag: "1", Plans: []string{"aws", "trial"}, Problem: scenario.CatalogProblem})
	})
	broker.routes.HandleFunc("GET /status", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusOK, operatorapi.Status{Version: cmp.Or(scenario.Version, "v1.2.3"), Systems: scenario.Systems})
	})
	broker.routes.HandleFunc("GET /configuration", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusOK, operatorapi.Configuration{Data: scenario.Configuration})
	})
	broker.routes.HandleFunc("GET /metrics", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "environment_broker_build_info 1\n") })
	broker.routes.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "ok\n") })
	broker.routes.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "not ready", http.StatusServiceUnavailable)
	})
	broker.routes.HandleFunc("GET /audit", broker.listAudit)
	broker.routes.HandleFunc("GET /audit/{id}", broker.auditEntry)
	broker.routes.HandleFunc("GET /auditchain", broker.auditChain)
	broker.routes.HandleFunc("GET /accounts/{id}", broker.account)
	broker.routes.HandleFunc("POST /accounts/{id}/erase", broker.eraseAccount)
	broker.routes.HandleFunc("POST /leftovers/{id}/{verb}", broker.changeLeftover)
	broker.routes.HandleFunc("GET /cloudaccounts", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusOK, operatorapi.CloudAccountList{Data: scenario.CloudAccounts})
	})
	broker.routes.HandleFunc("POST /cloudaccounts/{name}/release", broker.releaseAccount)
	broker.routes.HandleFunc("POST /cloudaccounts/{name}/cleanup", func(w http.ResponseWriter, r *http.Request) {
		answer(w, http.StatusOK, operatorapi.CloudAccountCleanup{Account: r.PathValue("name"), Attempts: 3, State: "clean", Message: "the account is empty"})
	})
	broker.routes.HandleFunc("GET /differences", broker.listDifferences)
	broker.routes.HandleFunc("POST /differences/restore", broker.restore)
	broker.routeOrchestrations()
	broker.routeWebhooks()
	broker.routes.HandleFunc("GET /operations", broker.listOperations)
	broker.routes.HandleFunc("GET /operations/{id}", broker.operation)
	broker.routes.HandleFunc("POST /operations/{id}/{verb}", broker.intervene)

	return broker, nil
}

// Requests returns all requests that the broker has received, each as a line with method, path, query and body.
func (b *fakeBroker) Requests() []string {
	b.mutex.Lock()
	defer b.mutex.Unlock()

	return slices.Clone(b.requests)
}

// ServeHTTP implements http.Handler. It serves one request at a time.
func (b *fakeBroker) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b.mutex.Lock()
	defer b.mutex.Unlock()

	w.Header().Set("Date", cmp.Or(b.scenario.Date, "Fri, 01 May 2026 10:05:00 GMT"))

	if err := b.record(r); err != nil {
		refuse(w, http.StatusBadRequest, "BadRequest", err.Error())

		return
	}

	if b.scenario.Username != "" || b.scenario.Password != "" {
		username, password, _ := r.BasicAuth()
		if username != b.scenario.Username || password != b.scenario.Password {
			refuse(w, http.StatusUnauthorized, "Unauthorized", "credentials are missing or wrong")

			return
		}
	}

	for _, fault := range b.scenario.Faults {
		if fault.Call == r.Method+" "+r.URL.Path {
			fault.answer(w)

			return
		}
	}

	b.routes.ServeHTTP(w, r)
}

func (b *fakeBroker) record(r *http.Request) error {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return fmt.Errorf("reading the body: %w", err)
	}

	r.Body = io.NopCloser(bytes.NewReader(body))
	b.requests = append(b.requests, strings.TrimSpace(r.Method+" "+r.URL.RequestURI()+" "+string(body)))

	return nil
}

// answer writes the error response of the fault.
func (f fault) answer(w http.ResponseWriter) {
	if f.Cut {
		panic(http.ErrAbortHandler)
	}

	if f.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(f.RetryAfter))
	}

	w.WriteHeader(f.Status)
	io.WriteString(w, f.Body)
}

func answer(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) //nolint:errchkjson // all test data can be encoded
}

func refuse(w http.ResponseWriter, status int, code, description string) {
	answer(w, status, operatorapi.Error{Code: code, Description: description})
}

// unknownValue is a plan and a kind of operations that the fake broker rejects as unknown.
const unknownValue = "unknown"

func (b *fakeBroker) listRuntimes(w http.ResponseWriter, r *http.Request) {
	if !acceptsOnly(w, r.URL.Query(), "instance_id", "name", "account", "subaccount", "region", "platform", "plan", "state", "leftovers", "labels", "protected", "versions",
		"provider", "shoot", "runtime", "subscription_account", "shared_with", "maintenance_version", "kind", "expired", "expires_before", "since", "until",
		"operation", "operation_state", "problem", "service", "dashboard_url", "suspended", "kubernetes_version", "kyma_version", "updated_since", "updated_before",
		"search", "anywhere", "sort") {
		return
	}

	var chosen []operatorapi.Runtime

	for _, runtime := range b.runtimes {
		if r.URL.Query().Get("protected") == "true" && !runtime.DeletionProtection {
			continue
		}

		if (runtime.Leftover.ID != "") == (r.URL.Query().Get("leftovers") == "true") && matches(r.URL.Query(), map[string]string{
			"instance_id": runtime.InstanceID, "name": runtime.Name, "account": runtime.GlobalAccountID, "subaccount": runtime.SubAccountID,
			"region": runtime.Region, "platform": runtime.Platform, "plan": runtime.ServicePlanName, "state": string(runtime.Status.State),
		}) {
			runtime.Parameters, runtime.Resolved = nil, nil
			if r.URL.Query().Get("versions") != "true" {
				runtime.KubernetesVersion, runtime.KymaVersion = "", ""
			}

			chosen = append(chosen, runtime)
		}
	}

	if plan := r.URL.Query().Get("plan"); plan == unknownValue {
		refuse(w, http.StatusBadRequest, "BadRequest", fmt.Sprintf("The plan %q is unknown. Use one of: aws, trial.", plan))

		return
	}

	data, page := paged(chosen, r.URL.Query(), b.scenario.PageSize)
	answer(w, http.StatusOK, operatorapi.RuntimeList{Data: data, Page: page})
}

func (b *fakeBroker) runtime(w http.ResponseWriter, r *http.Request) {
	index := b.find(r.PathValue("id"))
	if index < 0 {
		refuse(w, http.StatusNotFound, "NotFound", "there is no such instance")

		return
	}

	answer(w, http.StatusOK, b.runtimes[index])
}

// upgrade accepts an upgrade with the response of the scenario.
func (b *fakeBroker) upgrade(w http.ResponseWriter, r *http.Request) {
	var wanted operatorapi.Upgrade
	if err := json.NewDecoder(r.Body).Decode(&wanted); err != nil {
		refuse(w, http.StatusBadRequest, "BadRequest", err.Error())

		return
	}

	accepted := b.scenario.Upgrade
	accepted.DryRun = wanted.DryRun
	answer(w, http.StatusAccepted, accepted)
}

func (b *fakeBroker) adoptShoot(w http.ResponseWriter, r *http.Request) {
	var wanted operatorapi.ShootAdoption
	if err := json.NewDecoder(r.Body).Decode(&wanted); err != nil {
		refuse(w, http.StatusBadRequest, "BadRequest", err.Error())

		return
	}

	adopted := b.scenario.Adopted
	adopted.DryRun, adopted.ShootName = wanted.DryRun, r.PathValue("name")
	answer(w, http.StatusOK, adopted)
}

// protect returns a handler that changes the deletion protection of a runtime.
func (b *fakeBroker) protect(on bool) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		index := b.find(r.PathValue("id"))
		if index < 0 {
			refuse(w, http.StatusNotFound, "NotFound", "there is no such instance")

			return
		}

		b.runtimes[index].DeletionProtection = on
		answer(w, http.StatusOK, operatorapi.InstanceProtection{InstanceID: b.runtimes[index].InstanceID, DeletionProtection: on})
	}
}

func (b *fakeBroker) label(w http.ResponseWriter, r *http.Request) {
	var change operatorapi.LabelChange

	index := b.find(r.PathValue("id"))
	if err := json.NewDecoder(r.Body).Decode(&change); err != nil || index < 0 {
		refuse(w, http.StatusBadRequest, "BadRequest", "the body or the instance is invalid")

		return
	}

	labels := map[string]string{}
	maps.Copy(labels, b.runtimes[index].Labels)
	maps.Copy(labels, change.Set)

	for _, name := range change.Remove {
		delete(labels, name)
	}

	b.runtimes[index].Labels = labels
	answer(w, http.StatusOK, operatorapi.InstanceLabels{InstanceID: b.runtimes[index].InstanceID, Labels: labels})
}

func (b *fakeBroker) changePlatforms(w http.ResponseWriter, r *http.Request) {
	var change operatorapi.PlatformChange
	if err := json.NewDecoder(r.Body).Decode(&change); err != nil || change.Reason == "" {
		refuse(w, http.StatusBadRequest, "BadRequest", "the body is invalid")

		return
	}

	index := b.find(r.PathValue("id"))
	if index < 0 {
		refuse(w, http.StatusNotFound, "NotFound", "there is no such instance")

		return
	}

	changed := &b.runtimes[index]

	switch r.PathValue("verb") {
	case "grant":
		changed.SharedWith = append(changed.SharedWith, change.Platform)
	case "revoke":
		changed.SharedWith = slices.DeleteFunc(changed.SharedWith, func(name string) bool { return name == change.Platform })
	case "move":
		changed.Platform = change.Platform
	default:
		refuse(w, http.StatusNotFound, "NotFound", "there is no such path")

		return
	}

	answer(w, http.StatusOK, operatorapi.InstancePlatforms{
		InstanceID: changed.InstanceID, Platform: changed.Platform, SharedWith: changed.SharedWith,
	})
}

// changeLeftover starts a cleanup, whose ID contains the ID of the leftover, or removes the leftover.
func (b *fakeBroker) changeLeftover(w http.ResponseWriter, r *http.Request) {
	index := slices.IndexFunc(b.runtimes, func(each operatorapi.Runtime) bool { return each.Leftover.ID == r.PathValue("id") })
	if index < 0 {
		refuse(w, http.StatusNotFound, "NotFound", "there is no such leftover")

		return
	}

	left := b.runtimes[index]

	if r.PathValue("verb") == "cleanup" {
		answer(w, http.StatusAccepted, operatorapi.Operation{ID: "cleanup-of-" + left.Leftover.ID, Kind: "cleanup", InstanceID: left.InstanceID})

		return
	}

	b.runtimes = slices.Delete(b.runtimes, index, index+1)
	answer(w, http.StatusOK, left.Leftover)
}

// releaseAccount releases an account if it is dirty.
func (b *fakeBroker) releaseAccount(w http.ResponseWriter, r *http.Request) {
	for _, account := range b.scenario.CloudAccounts {
		if account.Name == r.PathValue("name") && account.State == operatorapi.CloudAccountStateDirty {
			answer(w, http.StatusOK, account)

			return
		}
	}

	refuse(w, http.StatusConflict, "Conflict", "Only dirty accounts can be released.")
}

// auditChain serves each record on a page of its own, and then the rows without a record.
func (b *fakeBroker) auditChain(w http.ResponseWriter, r *http.Request) {
	chain, number := b.scenario.sealedChain(), 0
	_, _ = fmt.Sscan(r.URL.Query().Get("position"), &number)

	page := operatorapi.AuditChainPage{Records: []operatorapi.AuditRecord{}, Unchained: b.scenario.AuditUnchained}
	if len(chain) > 0 {
		page.Head = operatorapi.AuditChainHead{Number: int64(len(chain)), Hash: chain[len(chain)-1].Hash}
	}

	if number < len(chain) {
		page.Records, page.Unchained, page.Next = chain[number:number+1], nil, strconv.Itoa(number+1)
	}

	answer(w, http.StatusOK, page)
}

func (b *fakeBroker) auditEntry(w http.ResponseWriter, r *http.Request) {
	for _, entry := range b.scenario.Audit {
		if entry.ID == r.PathValue("id") {
			answer(w, http.StatusOK, entry)

			return
		}
	}

	refuse(w, http.StatusNotFound, "NotFound", "there is no such entry")
}

// account returns the data of an account. An account that the scenario does not contain has no data.
func (b *fakeBroker) account(w http.ResponseWriter, r *http.Request) {
	for _, account := range b.scenario.Accounts {
		if account.AccountID == r.PathValue("id") {
			answer(w, http.StatusOK, account)

			return
		}
	}

	answer(w, http.StatusOK, operatorapi.Account{AccountID: r.PathValue("id")})
}

func (b *fakeBroker) eraseAccount(w http.ResponseWriter, r *http.Request) {
	if len(b.scenario.Erasures) == 0 {
		refuse(w, http.StatusNotFound, "NotFound", "There is no data of the account.")

		return
	}

	erased := b.scenario.Erasures[0]
	erased.AccountID, b.scenario.Erasures = r.PathValue("id"), b.scenario.Erasures[1:]
	answer(w, http.StatusOK, erased)
}

// pageAt returns the page at a cursor, which is the number of the page, and the cursor of the next page.
func pageAt[Page any](pages []Page, cursor string) (page Page, next string) {
	number, _ := strconv.Atoi(cursor) // 0 for the first page
	if number < len(pages) {
		page = pages[number]
	}

	if number+1 < len(pages) {
		next = strconv.Itoa(number + 1)
	}

	return page, next
}

func (b *fakeBroker) listDifferences(w http.ResponseWriter, r *http.Request) {
	list, next := pageAt(b.scenario.Differences, r.URL.Query().Get("cursor"))
	list.Cursor, list.Count = next, len(list.Data)
	answer(w, http.StatusOK, list)
}

func (b *fakeBroker) restore(w http.ResponseWriter, r *http.Request) {
	var wanted operatorapi.Restore
	if err := json.NewDecoder(r.Body).Decode(&wanted); err != nil {
		refuse(w, http.StatusBadRequest, "BadRequest", err.Error())

		return
	}

	page, next := pageAt(b.scenario.Restorations, wanted.Cursor)
	page.Cursor = next
	answer(w, http.StatusOK, page)
}

func (b *fakeBroker) listOperations(w http.ResponseWriter, r *http.Request) {
	if !acceptsOnly(w, r.URL.Query(), "instance_id", "kind", "state", "account", "region", "stuck", "since") {
		return
	}

	if kind := r.URL.Query().Get("kind"); kind == unknownValue {
		refuse(w, http.StatusBadRequest, "BadRequest", fmt.Sprintf("The kind %q is unknown. Use one of: provision, update.", kind))

		return
	}

	var chosen []operatorapi.Operation

	for _, id := range b.order {
		frame := b.operations[id].current()
		if frame.fault != nil {
			frame.fault.answer(w)
			b.operations[id].asked++

			return
		}

		if b.scenario.ListsAdvance {
			b.operations[id].asked++
		}

		operation := frame.operation
		operation.Timeline, operation.Why, operation.Attempt = nil, "", 0

		if since, err := time.Parse(time.RFC3339, r.URL.Query().Get("since")); err == nil && operation.CreatedAt.Before(since) {
			continue
		}

		if r.URL.Query().Get("stuck") == "true" && operation.Problem.Message == "" {
			continue
		}

		if matches(r.URL.Query(), map[string]string{
			"instance_id": operation.InstanceID, "kind": operation.Kind, "state": string(operation.State),
		}) {
			chosen = append(chosen, operation)
		}
	}

	data, page := paged(chosen, r.URL.Query(), b.scenario.PageSize)
	answer(w, http.StatusOK, operatorapi.OperationList{Data: data, Page: page})
}

func (b *fakeBroker) listAudit(w http.ResponseWriter, r *http.Request) {
	if !acceptsOnly(w, r.URL.Query(), "instance_id", "user", "action", "since", "until") {
		return
	}

	var chosen []operatorapi.AuditEntry

	for _, entry := range b.scenario.Audit {
		if matches(r.URL.Query(), map[string]string{
			"instance_id": entry.InstanceID, "user": cmp.Or(entry.By.Originator, entry.By.User), "action": entry.Action,
		}) {
			chosen = append(chosen, entry)
		}
	}

	data, page := paged(chosen, r.URL.Query(), b.scenario.PageSize)
	answer(w, http.StatusOK, operatorapi.AuditList{Data: data, Page: page})
}

func (b *fakeBroker) operation(w http.ResponseWriter, r *http.Request) {
	script, found := b.operations[r.PathValue("id")]
	if !found {
		refuse(w, http.StatusNotFound, "NotFound", "there is no operation "+r.PathValue("id"))

		return
	}

	present := script.current()
	script.asked++

	if present.fault != nil {
		present.fault.answer(w)

		return
	}

	answer(w, http.StatusOK, present.operation)
}

func (b *fakeBroker) adminKubeconfig(w http.ResponseWriter, r *http.Request) {
	if b.find(r.PathValue("id")) < 0 {
		refuse(w, http.StatusNotFound, "NotFound", "there is no instance "+r.PathValue("id"))

		return
	}

	answer(w, http.StatusOK, b.scenario.Kubeconfig)
}

// listCredentials lists the credentials of all instances or of one.
func (b *fakeBroker) listCredentials(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	if !acceptsOnly(w, query, "instance_id") {
		return
	}

	chosen := slices.DeleteFunc(slices.Clone(b.scenario.Credentials), func(credential operatorapi.Credential) bool {
		return !matches(query, map[string]string{"instance_id": credential.InstanceID})
	})

	var list operatorapi.CredentialList

	list.Data, list.Page = paged(chosen, query, b.scenario.PageSize)
	answer(w, http.StatusOK, list)
}

// renewCredentials returns the credentials of an instance, or 409 if it has none.
func (b *fakeBroker) renewCredentials(w http.ResponseWriter, r *http.Request) {
	var wanted operatorapi.CredentialRenewal
	if err := json.NewDecoder(r.Body).Decode(&wanted); err != nil {
		refuse(w, http.StatusBadRequest, "BadRequest", err.Error())

		return
	}

	chosen := slices.DeleteFunc(slices.Clone(b.scenario.Credentials), func(credential operatorapi.Credential) bool {
		return credential.InstanceID != r.PathValue("id")
	})

	if len(chosen) == 0 {
		refuse(w, http.StatusConflict, "Conflict", "No other system has a kubeconfig for the runtime.")

		return
	}

	answer(w, http.StatusAccepted, operatorapi.CredentialRenewals{DryRun: wanted.DryRun, Data: chosen})
}

// acceptsOnly reports whether the query contains only the given filters and paging parameters. If not, it responds with 400.
func acceptsOnly(w http.ResponseWriter, query url.Values, filters ...string) bool {
	for name := range query {
		if name != "cursor" && name != "page_size" && name != "total" && !slices.Contains(filters, name) {
			refuse(w, http.StatusBadRequest, "BadRequest", "The parameter "+name+" is not known.")

			return false
		}
	}

	return true
}

// matches reports whether an entry with these fields matches the filters in the query.
func matches(query url.Values, fields map[string]string) bool {
	for name, value := range fields {
		if wanted := query.Get(name); wanted != "" && wanted != value {
			return false
		}
	}

	return true
}

// paged returns the entries of the page at the query's cursor. The page contains the total number of entries if the query
// requests it.
func paged[T any](entries []T, query url.Values, size int) ([]T, operatorapi.Page) {
	begin, _ := strconv.Atoi(query.Get("cursor"))
	begin = min(begin, len(entries))
	end := len(entries)

	var cursor string

	if given, err := strconv.Atoi(query.Get("page_size")); err == nil && (size == 0 || given < size) {
		size = given
	}

	if size > 0 && begin+size < end {
		end = begin + size
		cursor = strconv.Itoa(end)
	}

	page := operatorapi.Page{Count: end - begin, Cursor: cursor}

	if total := len(entries); query.Get("total") == "true" {
		page.TotalCount = &total
	}

	return append([]T{}, entries[begin:end]...), page
}

// intervene accepts the interventions that the scenario allows and responds to all others with 409.
func (b *fakeBroker) intervene(w http.ResponseWriter, r *http.Request) {
	id, verb := r.PathValue("id"), r.PathValue("verb")

	script, found := b.operations[id]
	if !found {
		refuse(w, http.StatusNotFound, "NotFound", "there is no operation "+id)

		return
	}

	var wanted operatorapi.Intervention

	decoder := json.NewDecoder(r.Body)
	decoder.DisallowUnknownFields()

	if err := decoder.Decode(&wanted); err != nil || wanted.Reason == "" || wanted.Step != "" && verb == "cancel" {
		refuse(w, http.StatusBadRequest, "BadRequest", "reason is missing, or the body cannot be read")

		return
	}

	allowed := slices.IndexFunc(b.scenario.Interventions, func(each allowedIntervention) bool {
		return each.Operation == id && each.Verb == verb
	})
	if allowed < 0 {
		refuse(w, http.StatusConflict, "Conflict", "there is nothing to "+verb)

		return
	}

	if successor := b.scenario.Interventions[allowed].Successor; successor != "" {
		script = b.operations[successor]
	}

	shown := script.current().operation
	shown.Timeline, shown.Why, shown.Attempt = nil, "", 0

	answer(w, http.StatusAccepted, shown)
}

// runJob returns the newest run of the job. If it is held, the order must confirm the number of due items, and the returned run has
// changed all of them.
func (b *fakeBroker) runJob(w http.ResponseWriter, r *http.Request) {
	at := slices.IndexFunc(b.scenario.Jobs, func(job operatorapi.Job) bool { return job.Name == r.PathValue("name") })
	if at < 0 {
		refuse(w, http.StatusNotFound, "NotFound", "There is no job with this name.")

		return
	}

	var order operatorapi.JobOrder

	_ = json.NewDecoder(r.Body).Decode(&order)

	job := b.scenario.Jobs[at]

	switch run := job.LastRun; {
	case !run.Held || order.DryRun:
		answer(w, http.StatusOK, run)
	case order.Confirm < run.Due:
		refuse(w, http.StatusConflict, "Conflict", fmt.Sprintf("%d %s are due, more than the limit of %d.", run.Due, job.Items, job.Limit))
	default:
		run.Held, run.Changed, run.Left = false, run.Due, 0
		answer(w, http.StatusOK, run)
	}
}

// listQuotas returns the quotas with the groups of the requested account.
func (b *fakeBroker) listQuotas(w http.ResponseWriter, r *http.Request) {
	list := operatorapi.QuotaList{}

	for _, quota := range b.scenario.Quotas {
		if name := r.URL.Query().Get("name"); name != "" && name != quota.Name {
			continue
		}

		if account := r.URL.Query().Get("account"); account != "" {
			quota.Groups = slices.DeleteFunc(slices.Clone(quota.Groups), func(group operatorapi.QuotaGroup) bool { return group.Account != account })
		}

		list.Data = append(list.Data, quota)
	}

	answer(w, http.StatusOK, list)
}
