package fakedirector

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"reflect"
	"regexp"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/program/atomicfile"
)

// Director's rules for names, label keys and the length of descriptions in characters. The names that the broker generates for
// runtimes must match namePattern.
const (
	namePattern        = `^[a-z.-][a-z0-9.-]{0,35}$`
	labelPattern       = `^[a-zA-Z0-9_]+$`
	longestDescription = 2000
)

// execute runs an operation for a tenant. Validation has already ensured that the operation exists and that its arguments have
// the types in the schema.
func (d *Director) execute(tenant, operation string, arguments map[string]any) (any, error) {
	d.mutex.Lock()
	defer d.mutex.Unlock()

	if d.unknownTenants[tenant] {
		return nil, refuse(TenantNotFound, "there is no tenant %q", tenant)
	}

	id, _ := arguments["id"].(string)
	input, _ := arguments["in"].(map[string]any)

	runtime := d.find(tenant, id)

	switch {
	case operation == "runtime":
		return runtimeValue(runtime), nil
	case operation == "runtimes":
		return d.list(tenant, arguments["filter"])
	case operation == "registerRuntime":
		runtime = &Runtime{ID: uuid.NewString(), Tenant: tenant, Condition: "INITIAL", CreatedAt: d.options.Now()}
	case runtime == nil:
		return nil, refuse(NotFound, "there is no runtime %q of this tenant", id)
	case operation == "requestOneTimeTokenForRuntime":
		return d.oneTimeToken(runtime)
	}

	if err := d.change(operation, runtime, input); err != nil {
		return nil, err
	}

	return runtimeValue(runtime), d.store()
}

// change runs an operation that registers, updates or unregisters a runtime. If the input is invalid, nothing changes.
func (d *Director) change(operation string, runtime *Runtime, input map[string]any) error {
	if operation == "unregisterRuntime" { // this also invalidates its one-time tokens
		d.runtimes = slices.DeleteFunc(d.runtimes, func(each *Runtime) bool { return each == runtime })

		return nil
	}

	if err := d.set(runtime, input); err != nil {
		return err
	}

	if operation == "registerRuntime" {
		d.runtimes = append(d.runtimes, runtime)
	}

	return nil
}

// find returns the tenant's runtime with the given ID, or nil. Runtimes of other tenants are not visible, even with the correct
// ID.
func (d *Director) find(tenant, id string) *Runtime {
	for _, runtime := range d.runtimes {
		if runtime.Tenant == tenant && runtime.ID == id {
			return runtime
		}
	}

	return nil
}

// list returns all of the tenant's runtimes that match the filters, on a single page. It ignores the requested page size: clients
// that read multiple pages can also handle one.
func (d *Director) list(tenant string, filters any) (any, error) {
	found := []any{}

	for _, runtime := range d.runtimes {
		matches, err := matches(runtime, filters)
		if err != nil {
			return nil, err
		}

		if runtime.Tenant == tenant && matches {
			found = append(found, runtimeValue(runtime))
		}
	}

	return map[string]any{
		"data": found, "totalCount": len(found),
		"pageInfo": map[string]any{"startCursor": "", "endCursor": "", "hasNextPage": false},
	}, nil
}

// matches reports whether a runtime matches all filters. A filter without a query matches any runtime that has the filter's
// label. A query is a JSON value, to which the label's value must be equal.
func matches(runtime *Runtime, filters any) (bool, error) {
	list, isList := filters.([]any)
	if !isList && filters != nil {
		list = []any{filters} // GraphQL accepts a value as a list of one
	}

	for _, each := range list {
		filter, _ := each.(map[string]any)
		key, _ := filter["key"].(string)
		value, labeled := runtime.Labels[key]
		query, queried := filter["query"].(string)

		var wanted any

		if queried {
			if err := json.Unmarshal([]byte(query), &wanted); err != nil {
				return false, refuse(InvalidData, "the query of a filter is not JSON")
			}
		}

		if !labeled || queried && !reflect.DeepEqual(value, wanted) {
			return false, nil
		}
	}

	return true, nil
}

// set validates the input and then stores it in the runtime. It replaces name, description and labels; labels that are missing
// from the input are removed, as in Director. The condition stays unchanged unless the input has one.
func (d *Director) set(runtime *Runtime, input map[string]any) error {
	name, _ := input["name"].(string)
	description, _ := input["description"].(string)
	labels, _ := input["labels"].(map[string]any)

	if !regexp.MustCompile(namePattern).MatchString(name) {
		return refuse(InvalidData, "name=%q is invalid: use up to 36 of the characters a-z, 0-9, - and ., and do not start with a digit", name)
	}

	if utf8.RuneCountInString(description) > longestDescription {
		return refuse(InvalidData, "description=has more than %d characters", longestDescription)
	}

	for key := range labels {
		if !regexp.MustCompile(labelPattern).MatchString(key) {
			return refuse(InvalidData, "labels=key %q contains characters other than letters, digits and underscores", key)
		}
	}

	runtime.Name, runtime.Description, runtime.Labels = name, description, labels

	if condition, given := input["statusCondition"].(string); given {
		runtime.Condition = condition
	}

	runtime.ConditionAt = d.options.Now()

	return nil
}

// runtimeValue returns a runtime as a value of the Runtime type in the schema, or nil if runtime is nil.
func runtimeValue(runtime *Runtime) map[string]any {
	if runtime == nil {
		return nil
	}

	return map[string]any{
		"id": runtime.ID, "name": runtime.Name, "description": runtime.Description, "labels": runtime.Labels,
		"status":   map[string]any{"condition": runtime.Condition, "timestamp": runtime.ConditionAt.UTC().Format(time.RFC3339)},
		"metadata": map[string]any{"creationTimestamp": runtime.CreatedAt.UTC().Format(time.RFC3339)},
	}
}

// store writes all runtimes to Options.File, if set. The caller must hold the mutex.
func (d *Director) store() error {
	if d.options.File == "" {
		return nil
	}

	text, err := json.Marshal(d.runtimes)
	if err != nil {
		return fmt.Errorf("encoding the registered runtimes: %w", err)
	}

	return atomicfile.Write(d.options.File, text)
}

// restore reads the runtimes from Options.File, if it is set and the file exists. A damaged file is an error, because a Director
// that started without its registrations would overwrite the file at the next change.
func (d *Director) restore() error {
	if d.options.File == "" {
		return nil
	}

	text, err := os.ReadFile(d.options.File)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}

	if err == nil {
		err = json.Unmarshal(text, &d.runtimes)
	}

	return failure.While(err, "reading the registered runtimes from %s", d.options.File)
}

// oneTimeLifetime is how long a one-time token is valid.
const oneTimeLifetime = time.Hour

// OneTimeToken is a token with which an agent can connect once.
type OneTimeToken struct {
	Token     string    `json:"token"`
	ExpiresAt time.Time `json:"expiresAt"`
	Spent     bool      `json:"spent"`
}

// oneTimeToken issues a token for the runtime. Earlier tokens stay valid: a step that runs again after a crash can request
// another token without invalidating a token that an agent has already read.
func (d *Director) oneTimeToken(runtime *Runtime) (any, error) {
	given := OneTimeToken{Token: rand.Text() + rand.Text(), ExpiresAt: d.options.Now().Add(oneTimeLifetime)}
	runtime.OneTimeTokens = append(runtime.OneTimeTokens, given)

	return map[string]any{
		"token": given.Token, "connectorURL": d.options.ConnectorURL, "used": false, "expiresAt": given.ExpiresAt.UTC().Format(time.RFC3339),
	}, d.store()
}

// Connect simulates the Connector: it exchanges a one-time token of an agent. A token can be exchanged once, within an hour. A
// spent token stays spent across restarts.
func (d *Director) Connect(_ context.Context, url, token string) error {
	d.mutex.Lock()
	defer d.mutex.Unlock()

	if url != d.options.ConnectorURL {
		return errors.New("there is no Connector at " + url)
	}

	for _, runtime := range d.runtimes {
		found := slices.IndexFunc(runtime.OneTimeTokens, func(each OneTimeToken) bool { return each.Token == token })
		if found < 0 {
			continue
		}

		known := &runtime.OneTimeTokens[found]
		if known.Spent || d.options.Now().After(known.ExpiresAt) {
			break
		}

		known.Spent = true

		return d.store()
	}

	return errors.New("the token is invalid or expired")
}

// Synchronize accepts a call from a connected agent. It does nothing, because the simulated Director has no applications.
func (*Director) Synchronize(context.Context) error { return nil }
