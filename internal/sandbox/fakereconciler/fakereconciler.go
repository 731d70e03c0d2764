// Package fakereconciler simulates the API of Kyma's Reconciler, for tests and the sandbox.
package fakereconciler

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/environment-broker/environment-broker/internal/clients/reconciler"
	"github.com/environment-broker/environment-broker/internal/sandbox/simulator"
)

// MaxBody is the maximum size of a request body, in bytes.
const MaxBody = 100_000

type registration struct {
	cluster reconciler.Cluster
	state   reconciler.State
	// frozen means that status requests do not advance the state.
	frozen bool
}

// Reconciler is a simulated Reconciler. Each status request advances the status of a cluster by one step: from reconcile_pending
// to reconciling to ready or, during a removal, from delete_pending to deleting to unknown. The simulator does not connect to any
// cluster. It is safe for concurrent use.
type Reconciler struct {
	*simulator.Base

	// registrations contains the clusters, keyed by runtime ID. The lock in Base guards it.
	registrations map[string]*registration
	versions      int64
	quick         bool
}

// New returns a Reconciler without clusters.
func New() *Reconciler {
	r := &Reconciler{Base: simulator.NewBase("reconciler"), registrations: map[string]*registration{}}
	r.Mux.Handle("POST /v1/clusters", r.Handle("applyCluster", r.apply))
	r.Mux.Handle("PUT /v1/clusters", r.Handle("applyCluster", r.apply))
	r.Mux.Handle("GET /v1/clusters/{id}/configs/{version}/status", r.Handle("getStatus", r.existing(r.status)))
	r.Mux.Handle("GET /v1/clusters/{id}/status", r.Handle("getStatus", r.existing(r.status)))
	r.Mux.Handle("DELETE /v1/clusters/{id}", r.Handle("deleteCluster", r.existing(r.remove)))

	return r
}

// Quick makes the first status request for a cluster complete the cluster's installation or removal, for tests that use the real
// clock.
func (r *Reconciler) Quick() *Reconciler {
	r.quick = true

	return r
}

// Clusters returns the registered clusters, keyed by runtime ID. They contain secrets.
func (r *Reconciler) Clusters() map[string]reconciler.Cluster {
	found := map[string]reconciler.Cluster{}

	r.Locked(func() {
		for id, each := range r.registrations {
			found[id] = each.cluster
		}
	})

	return found
}

// States returns the states of the registered clusters, keyed by runtime ID.
func (r *Reconciler) States() map[string]reconciler.State {
	found := map[string]reconciler.State{}

	r.Locked(func() {
		for id, each := range r.registrations {
			found[id] = each.state
		}
	})

	return found
}

// Freeze sets the status of a cluster and keeps it until a request changes the cluster.
func (r *Reconciler) Freeze(runtimeID string, status reconciler.Status, failures ...reconciler.Failure) {
	r.Locked(func() {
		if found := r.registrations[runtimeID]; found != nil {
			found.state.Status, found.state.Failures, found.frozen = status, failures, true
		}
	})
}

// Holds implements simulator.System.
func (r *Reconciler) Holds() []string {
	var lines []string

	r.Locked(func() {
		for _, id := range slices.Sorted(maps.Keys(r.registrations)) {
			found := r.registrations[id]
			names := make([]string, 0, len(found.cluster.Kyma.Components))

			for _, component := range found.cluster.Kyma.Components {
				names = append(names, component.Component)
			}

			lines = append(lines, fmt.Sprintf("cluster %s (%s): Kyma %s with %s, version %d %s", id, found.cluster.Runtime.Name,
				found.cluster.Kyma.Version, strings.Join(names, ", "), found.state.ConfigurationVersion, found.state.Status))
		}
	})

	return lines
}

func problem(w http.ResponseWriter, status int, text string) {
	simulator.WriteJSON(w, status, map[string]string{"error": text})
}

// apply registers a cluster. If the cluster is registered already, apply compares the two, except their kubeconfigs, and assigns
// new versions to the parts that differ.
func (r *Reconciler) apply(w http.ResponseWriter, request *http.Request) {
	if request.ContentLength > MaxBody {
		problem(w, http.StatusRequestEntityTooLarge, "the request is too large")

		return
	}

	var cluster reconciler.Cluster
	if err := json.NewDecoder(request.Body).Decode(&cluster); err != nil || cluster.RuntimeID == "" {
		problem(w, http.StatusBadRequest, "Failed to unmarshal JSON payload")

		return
	}

	if config, err := clientcmd.Load([]byte(cluster.Kubeconfig)); err != nil || len(config.Clusters) == 0 {
		problem(w, http.StatusBadRequest, "kubeconfig not accepted: it names no cluster")

		return
	}

	if len(cluster.Kyma.Components) == 0 {
		problem(w, http.StatusInternalServerError, "Failed to create or update cluster entity: component list is empty")

		return
	}

	found := r.registrations[cluster.RuntimeID]
	if found == nil {
		found = &registration{state: reconciler.State{Cluster: cluster.RuntimeID}}
		r.registrations[cluster.RuntimeID] = found
	}

	sameRuntime := found.cluster.Runtime == cluster.Runtime && found.cluster.Metadata == cluster.Metadata
	sameKyma := reflect.DeepEqual(found.cluster.Kyma, cluster.Kyma)

	if sameRuntime {
		cluster.Kubeconfig = found.cluster.Kubeconfig
	} else {
		r.versions++
		found.state.ClusterVersion = r.versions
	}

	if !sameRuntime || !sameKyma {
		r.versions++
		found.state.ConfigurationVersion = r.versions
	}

	found.cluster, found.frozen = cluster, false
	found.state.Status, found.state.Failures = reconciler.Pending, nil
	r.respond(w, found)
}

// existing returns a handler that passes the cluster named in the path to execute.
func (r *Reconciler) existing(execute func(w http.ResponseWriter, request *http.Request, found *registration)) http.HandlerFunc {
	return func(w http.ResponseWriter, request *http.Request) {
		found := r.registrations[request.PathValue("id")]
		if found == nil {
			problem(w, http.StatusNotFound, "Could not retrieve cluster state")

			return
		}

		execute(w, request, found)
	}
}

func (r *Reconciler) status(w http.ResponseWriter, request *http.Request, found *registration) {
	if version := request.PathValue("version"); version != "" {
		if number, err := strconv.ParseInt(version, 10, 64); err != nil || number != found.state.ConfigurationVersion {
			problem(w, http.StatusNotFound, "Could not retrieve cluster state")

			return
		}
	}

	if !found.frozen {
		found.state.Status = next(found.state.Status)
	}

	if !found.frozen && r.quick {
		found.state.Status = next(found.state.Status)
	}

	if found.state.Status == reconciler.Deleted && !found.frozen {
		delete(r.registrations, found.state.Cluster)
		problem(w, http.StatusNotFound, "Could not retrieve cluster state")

		return
	}

	r.respond(w, found)
}

// next returns the status that follows the given one.
func next(status reconciler.Status) reconciler.Status {
	switch status {
	case reconciler.Pending:
		return reconciler.Reconciling
	case reconciler.Reconciling:
		return reconciler.Ready
	case reconciler.DeletePending:
		return reconciler.Deleting
	case reconciler.Deleting:
		return reconciler.Deleted
	default:
		return status
	}
}

func (r *Reconciler) remove(w http.ResponseWriter, _ *http.Request, found *registration) {
	found.state.Status, found.state.Failures, found.frozen = reconciler.DeletePending, nil, false
	r.respond(w, found)
}

func (r *Reconciler) respond(w http.ResponseWriter, found *registration) {
	state := found.state
	state.StatusURL = fmt.Sprintf("/v1/clusters/%s/configs/%d/status", state.Cluster, state.ConfigurationVersion)
	simulator.WriteJSON(w, http.StatusOK, state)
}
