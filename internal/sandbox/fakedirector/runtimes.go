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

	"github.com/google/uuid"

	"github.com/environment-broker/environment-broker/internal/atomicfile"
)

// The rules of Director for names, descriptions (in bytes) and keys of labels. A name that the Provisioner derives must match them.
const (
	namePattern        = `^[a-z.-][a-z0-9.-]{0,35}$`
	labelPattern       = `^[a-zA-Z0-9_]+$`
	longestDescription = 2000
)

// execute executes an operation of the schema for a tenant. Validation has ensured that the operation exists and its arguments
// have the types of the schema.
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
		return shown(runtime), nil
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

	return shown(runtime), d.store()
}

// change performs an operation that changes the list of runtimes or one of them. Nothing has changed if the input is invalid.
func (d *Director) change(operation string, runtime *Runtime, input map[string]any) error {
	if operation == "unregisterRuntime" { // its one-time tokens become invalid with it
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

// find returns a runtime of the tenant, nil if the tenant has none with the ID. Runtimes of other tenants are invisible, even
// with the right ID.
func (d *Director) find(tenant, id string) *Runtime {
	for _, runtime := range d.runtimes {
		if runtime.Tenant == tenant && runtime.ID == id {
			return runtime
		}
	}

	return nil
}

// list returns the tenant's runtimes that match all filters, on one page. It ignores the size of the page that the client wants: a
// client that can read several pages can also read one.
func (d *Director) list(tenant string, filters any) (any, error) {
	found := []map[string]any{}

	for _, runtime := range d.runtimes {
		matches, err := fits(runtime, filters)
		if err != nil {
			return nil, err
		}

		if runtime.Tenant == tenant && matches {
			found = append(found, shown(runtime))
		}
	}

	return map[string]any{
		"data": found, "totalCount": len(found),
		"pageInfo": map[string]any{"startCursor": "", "endCursor": "", "hasNextPage": false},
	}, nil
}

// fits reports whether a runtime matches all filters. A filter without a query matches every runtime with the label. The query of a
// filter is JSON, and matches a label with an equal value.
func fits(runtime *Runtime, filters any) (bool, error) {
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

// set validates the input and then stores all of it in the runtime. It replaces name, description and labels: labels that the input
// omits are lost, as in Director. The condition stays unless the input has one.
func (d *Director) set(runtime *Runtime, input map[string]any) error {
	name, _ := input["name"].(string)
	description, _ := input["description"].(string)
	labels, _ := input["labels"].(map[string]any)

	if !regexp.MustCompile(namePattern).MatchString(name) {
		return refuse(InvalidData, "name=cannot be %q: up to 36 of a-z, 0-9, - and ., not a digit first", name)
	}

	if len(description) > longestDescription {
		return refuse(InvalidData, "description=has more than %d characters", longestDescription)
	}

	for key := range labels {
		if !regexp.MustCompile(labelPattern).MatchString(key) {
			return refuse(InvalidData, "labels=key %q has other characters than letters, digits and underscores", key)
		}
	}

	runtime.Name, runtime.Description, runtime.Labels = name, description, labels

	if condition, given := input["statusCondition"].(string); given {
		runtime.Condition = condition
	}

	runtime.ConditionAt = d.options.Now()

	return nil
}

// shown returns a runtime in the form of the schema, nil for nil.
func shown(runtime *Runtime) map[string]any {
	if runtime == nil {
		return nil
	}

	return map[string]any{
		"id": runtime.ID, "name": runtime.Name, "description": runtime.Description, "labels": runtime.Labels,
		"status":   map[string]any{"condition": runtime.Condition, "timestamp": runtime.ConditionAt.UTC().Format(time.RFC3339)},
		"metadata": map[string]any{"creationTimestamp": runtime.CreatedAt.UTC().Format(time.RFC3339)},
	}
}

// store writes all runtimes to the file, if Options has one. The caller holds the mutex.
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

// restore reads the file that store has written. A damaged file is an error: starting without it would lose the registrations and
// the next change would overwrite the file.
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

	if err != nil {
		return fmt.Errorf("reading the registered runtimes from %s: %w", d.options.File, err)
	}

	return nil
}

// oneTimeLifetime is the validity of a one-time token.
const oneTimeLifetime = time.Hour

// OneTimeToken is a token with which an agent connects once.
type OneTimeToken struct {
	Token     string    `json:"token"`
	ExpiresAt time.Time `json:"expiresAt"`
	Spent     bool      `json:"spent"`
}

// oneTimeToken issues a token. Earlier tokens of the runtime stay valid, so a step that is repeated after a crash may request another
// token without invalidating one that an agent has already read.
func (d *Director) oneTimeToken(runtime *Runtime) (any, error) {
	given := OneTimeToken{Token: rand.Text() + rand.Text(), ExpiresAt: d.options.Now().Add(oneTimeLifetime)}
	runtime.OneTimeTokens = append(runtime.OneTimeTokens, given)

	return map[string]any{
		"token": given.Token, "connectorURL": d.options.ConnectorURL, "used": false, "expiresAt": given.ExpiresAt.UTC().Format(time.RFC3339),
	}, d.store()
}

// Connect simulates the Connector, which exchanges the one-time tokens of agents. A token is valid once, for an hour. It stays
// spent after a restart.
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

// Synchronize is the periodic call of connected agents. The simulated Director has no applications for them.
func (*Director) Synchronize(context.Context) error { return nil }
