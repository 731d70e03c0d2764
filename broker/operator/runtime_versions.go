package operator

import (
	"context"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/environment/fleet"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
	"github.com/environment-broker/environment-broker/internal/operatorapi/operatorserver"
	"github.com/environment-broker/environment-broker/storage/instances"
)

const (
	// versionBatch is the number of instances that are decrypted at once. maxDecrypted is the maximum number of decrypted instances
	// per request. With this limit, a search for a version that no instance has takes only a fraction of a second.
	versionBatch = 100
	maxDecrypted = 2000
)

// versionFilter selects instances by their versions. An empty version matches all instances.
type versionFilter struct{ kubernetes, kyma string }

// versionsOf returns the version filter of the query. It rejects a query for a total or a numbered page, because counting would
// require decrypting the requests of all instances.
func versionsOf(query operatorserver.Query) (versionFilter, error) {
	wanted := versionFilter{query.Get(kubernetesFilter), query.Get(kymaFilter)}

	if wanted != (versionFilter{}) && (query.Page.Total || query.Page.Offset > 0) {
		return wanted, operatorserver.Invalid("kubernetes_version and kyma_version cannot be combined with total or page. Use the cursor of the previous page.")
	}

	return wanted, nil
}

// listByVersion returns a page of the runtimes that the filter selects and that have the wanted versions. The versions are part
// of the encrypted requests, so it decrypts the selected instances until the page is full, but at most maxDecrypted of them. A
// page with a cursor can therefore have few entries, or none. A request that cannot be decrypted matches no version.
func (a *API) listByVersion(ctx context.Context, page operatorserver.Page, filter instances.Filter, wanted versionFilter) (operatorapi.RuntimeList, error) {
	list := operatorapi.RuntimeList{Data: []operatorapi.Runtime{}}
	filter.Limit = versionBatch + 1

	for decrypted := 0; decrypted < maxDecrypted; decrypted += versionBatch {
		found, err := a.Instances.List(ctx, filter)
		if err != nil {
			return operatorapi.RuntimeList{}, err
		}

		batch := found[:min(len(found), versionBatch)]

		shown := make([]operatorapi.Runtime, 0, len(batch))
		for _, listed := range batch {
			shown = append(shown, a.runtime(listed))
		}

		if err := a.addVersions(ctx, shown); err != nil {
			return operatorapi.RuntimeList{}, err
		}

		for i, listed := range batch {
			filter = filter.After(listed.Instance)

			if !fleet.IsVersion(wanted.kubernetes, shown[i].KubernetesVersion) || !fleet.IsVersion(wanted.kyma, shown[i].KymaVersion) {
				continue
			}

			if list.Data = append(list.Data, shown[i]); len(list.Data) == page.Size {
				return listUntil(list, filter, i+1 < len(found)), nil
			}
		}

		if len(found) <= versionBatch {
			return listUntil(list, filter, false), nil
		}
	}

	return listUntil(list, filter, true), nil
}

// listUntil sets the count of a list. If more is true, it also sets the cursor for the next page, which starts after the last
// instance that the search has checked. filter contains that position.
func listUntil(list operatorapi.RuntimeList, filter instances.Filter, more bool) operatorapi.RuntimeList {
	if list.Count = len(list.Data); more {
		list.Cursor = filter.Cursor().String()
	}

	return list
}

// addVersions sets the versions of the runtimes whose orders can be decrypted.
func (a *API) addVersions(ctx context.Context, shown []operatorapi.Runtime) error {
	ids := make([]string, 0, len(shown))
	for _, runtime := range shown {
		ids = append(ids, runtime.InstanceID)
	}

	ordered, err := a.clusters(ctx, ids)

	for i := range shown {
		setVersions(&shown[i], ordered[shown[i].InstanceID])
	}

	return err
}

// clusters returns the cluster configuration in the request of each instance, keyed by instance ID. It omits instances whose
// requests cannot be decrypted.
func (a *API) clusters(ctx context.Context, ids []string) (map[string]environment.Cluster, error) {
	complete, _, err := a.Instances.GetAll(ctx, a.DB.Reader(), ids)
	ordered := make(map[string]environment.Cluster, len(complete))

	for id, instance := range complete {
		ordered[id] = instance.Request.Cluster
	}

	return ordered, err
}
