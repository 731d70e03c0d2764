package operator

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/environment-broker/environment-broker/internal/httpserver"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage/instances"
)

// listRuntimes answers GET /runtimes.
func (a *api) listRuntimes(r *http.Request) (httpserver.Answer, error) {
	values, page, err := readQuery(r.URL.RawQuery, "instance_id", "account", "subaccount", "region", "plan", "state")
	if err != nil {
		return httpserver.Answer{}, err
	}

	filter := instances.Filter{
		InstanceID:      values.Get("instance_id"),
		GlobalAccountID: values.Get("account"),
		SubAccountID:    values.Get("subaccount"),
		Region:          values.Get("region"),
		Plan:            values.Get("plan"),
		Before:          page.before,
		BeforeID:        page.beforeID,
		Offset:          page.offset,
		Limit:           page.size + 1,
	}

	if state := values.Get("state"); state != "" {
		if filter, err = inState(filter, operatorapi.RuntimeState(state)); err != nil {
			return httpserver.Answer{}, err
		}
	}

	listed, err := a.Instances.List(r.Context(), filter)
	if err != nil {
		return httpserver.Answer{}, err
	}

	listed, shown := pageOf(listed, page.size, func(entry instances.Listed) (time.Time, string) {
		return entry.Instance.CreatedAt, entry.Instance.ID
	})

	list := operatorapi.RuntimeList{Data: []operatorapi.Runtime{}, Page: shown}
	for _, entry := range listed {
		list.Data = append(list.Data, a.runtime(entry))
	}

	if page.total {
		total, err := a.Instances.Count(r.Context(), filter)
		if err != nil {
			return httpserver.Answer{}, err
		}

		list.TotalCount = &total
	}

	return httpserver.OK(list), nil
}

// inState narrows the filter to a state of runtimes.
func inState(filter instances.Filter, state operatorapi.RuntimeState) (instances.Filter, error) {
	var known []string

	for _, meaning := range meanings() {
		if meaning.state == state {
			filter.Kinds, filter.States = meaning.kinds, meaning.states
			filter.Suspended = state == operatorapi.RuntimeSuspended // it says no more than the operation, and has an index

			if state == operatorapi.RuntimeDeprovisioning {
				// A deletion that succeeded has removed its instance before: to look for it is to go through all that there were.
				filter.States = slices.DeleteFunc(slices.Clone(meaning.states), process.State.Terminal)
			}

			return filter, nil
		}

		known = append(known, string(meaning.state))
	}

	return filter, invalid(fmt.Sprintf("The state %q is not known. Use %s.", state, strings.Join(known, ", ")))
}
