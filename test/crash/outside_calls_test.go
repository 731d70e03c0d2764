package crash

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/environment-broker/environment-broker/broker/service"
	"github.com/environment-broker/environment-broker/internal/clients/avs"
	"github.com/environment-broker/environment-broker/internal/clients/edp"
	"github.com/environment-broker/environment-broker/internal/clients/ias"
	"github.com/environment-broker/environment-broker/internal/clients/reconciler"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakeavs"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakeedp"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakeias"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/process/crashtest"
	"github.com/environment-broker/environment-broker/process/upgrading"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/eventlog"
	"github.com/environment-broker/environment-broker/storage/leftovers"
	"github.com/environment-broker/environment-broker/storage/notifications"
)

// edpConfig connects the broker to the simulated EDP behind the proxy.
func edpConfig() edp.Config {
	config := edp.DefaultConfig()
	config.AuthURL, config.AdminURL, config.Secret = "http://edp.example.com", "http://edp.example.com", fakeedp.Secret

	return config
}

// iasConfig connects the broker to the simulated IAS behind the proxy.
func iasConfig() ias.Config {
	config := ias.DefaultConfig()
	config.URL, config.UserID, config.UserSecret = "http://ias.example.com", fakeias.User, fakeias.Secret

	return config
}

// iasOperation returns a name for a call to IAS.
func iasOperation(request *http.Request) string { return "IAS" + request.Method }

// edpOperation returns a name for a call to EDP, which does not contain the names of objects.
func edpOperation(request *http.Request) string {
	name := "EDP" + request.Method

	for _, part := range []string{"token", "metadata", "dataTenants"} {
		if strings.Contains(request.URL.Path, part) {
			return name + part
		}
	}

	return name
}

// avsConfig connects the broker to the simulated AvS behind the proxy.
func avsConfig() avs.Config {
	config := fakeavs.Config("http://avs.example.com")
	config.Tags.Enabled = true

	return config
}

// avsOperation returns a name for a call to AvS, which does not contain the IDs of evaluations.
func avsOperation(request *http.Request) string {
	name := "AvS" + request.Method

	for _, part := range []string{"token", "tag", "child"} {
		if strings.Contains(request.URL.Path, part) {
			return name + part
		}
	}

	return name
}

// reconcilerConfig connects the broker to the simulated Reconciler behind the proxy.
func reconcilerConfig() reconciler.Config {
	config := reconciler.DefaultConfig()
	config.URL = "http://reconciler.example.com"

	return config
}

// reconcilerOperation returns a name for a call to the Reconciler.
func reconcilerOperation(request *http.Request) string { return "Reconciler" + request.Method }

// clusters formats the clusters in the Reconciler with their components. It leaves out their IDs, which are random, and their
// statuses, which depend on the number of calls.
func (f *brokerFixture) clusters() []string {
	found := []string{}

	for _, cluster := range f.reconciler.Clusters() {
		names := []string{}
		for _, component := range cluster.Kyma.Components {
			names = append(names, component.Component)
		}

		found = append(found, cluster.Kyma.Version+" "+strings.Join(names, " "))
	}

	return found
}

// evaluations describes the evaluations in AvS, without their IDs.
type evaluations struct {
	// Recorded lists the evaluations whose IDs are recorded, with their states and tags. A frozen replica can add a tag twice.
	Recorded []string
	// Unknown lists evaluations whose IDs are not recorded and that are not duplicates which a record expects. Missing lists records
	// without an evaluation. Both must be empty.
	Unknown, Missing []string
}

// evaluations compares the evaluations in AvS with the records. A lost response may have left an evaluation whose ID is unknown;
// in the run without faults, there is none.
func (f *brokerFixture) evaluations() evaluations {
	f.Helper()

	left, err := f.leftovers.List(f.Context(), leftovers.Filter{InstanceID: instanceID, Limit: 9})
	if err != nil {
		f.Fatal(err)
	}

	keys := []string{instanceID}
	for _, each := range left {
		keys = append(keys, each.Leftover.Key())
	}

	rows, err := f.objects.OfInstances(f.Context(), keys)
	if err != nil {
		f.Fatal(err)
	}

	var found evaluations

	existing, lifecycles := f.avs.Evaluations(), f.avs.Lifecycles()
	uncertain := map[string]bool{}

	for _, row := range rows {
		evaluation, exists := existing[row.Key]
		kind, _, _ := strings.Cut(row.Kind, " ")

		switch {
		case row.System != environment.SystemAvS:
		case exists:
			found.Recorded = append(found.Recorded, fmt.Sprintf("%s %s %s %v", row.Kind, row.State, lifecycles[row.Key], distinct(evaluation.Tags)))
			delete(existing, row.Key)
		case row.State == environment.OutsideUncertain, row.State == environment.OutsideLeftOver:
			uncertain[kind[:3]] = true
		default:
			found.Missing = append(found.Missing, row.Kind+" "+string(row.State))
		}
	}

	for _, evaluation := range existing {
		if kind := strings.Split(evaluation.Name, "-")[3]; !uncertain[kind] {
			found.Unknown = append(found.Unknown, evaluation.Name)
		}
	}

	return found
}

// notifications returns the actions in the notifications about upgrades. Every notification event must be complete. In a racy run,
// a fault can delay an upgrade so much that it is preempted before it begins.
func (f *brokerFixture) notifications(racy bool) []string {
	f.Helper()
	f.addMessages()

	actions, err := storage.Select[string](f.Context(), f.db.Reader(), `SELECT action FROM notifications ORDER BY event_id, number`)
	if err != nil {
		f.Fatal(err)
	}

	if len(actions) > 0 && !slices.Equal(actions, []string{"create", "begin", "finish"}) {
		f.Errorf("the messages about the upgrade are %v", actions)
	}

	if racy {
		return nil
	}

	return actions
}

// addMessages creates notifications from the recorded events.
func (f *brokerFixture) addMessages() {
	f.Helper()

	now := time.Now()
	if _, err := f.eventLog.Publish(f.Context(), now); err != nil {
		f.Fatal(err)
	}

	held, err := f.messages.Hold(f.Context(), "test", now, now.Add(time.Minute))
	if err != nil || !held {
		f.Fatalf("held %t, %v", held, err)
	}

	for position, last := int64(-1), int64(0); position != last; {
		position = last

		var found []eventlog.Event
		if found, last, err = f.eventLog.Read(f.Context(), notifications.Selected(), position, 100); err != nil {
			f.Fatal(err)
		}

		if added, err := f.messages.Add(f.Context(), "test", found, position, last); err != nil || !added {
			f.Fatalf("added %t, %v", added, err)
		}
	}
}

// proxiedNotifications records notifications through the proxy of a replica.
type proxiedNotifications struct {
	upgrading.Notifications

	proxy *crashtest.Proxy
}

func (n proxiedNotifications) Announce(ctx context.Context, by process.Record) error {
	return proxiedRows{proxy: n.proxy}.call(ctx, "Announce", func(ctx context.Context) error { return n.Notifications.Announce(ctx, by) })
}

// distinct returns the classes of the tags, sorted and without duplicates.
func distinct(tags []avs.Tag) []string {
	classes := map[string]bool{}
	for _, tag := range tags {
		classes[strconv.FormatInt(tag.ClassID, 10)] = true
	}

	return slices.Sorted(maps.Keys(classes))
}

// mayLose returns the step that may be left over, because it cannot remove an evaluation whose ID never arrived. This can happen
// in racy runs, in which the instance is created while faults are injected.
func mayLose(racy bool) []string {
	if racy {
		return []string{"De-provision_AVS_Evaluations"}
	}

	return nil
}

// proxiedObjects accesses the records of objects in other systems through the proxy of a replica.
type proxiedObjects struct {
	service.Objects

	proxy *crashtest.Proxy
}

func (o proxiedObjects) rows() proxiedRows { return proxiedRows{proxy: o.proxy} }

func (o proxiedObjects) FindObject(ctx context.Context, instanceID, system, kind string) (environment.OutsideObject, error) {
	return readRow(ctx, o.rows(), "FindObject", func(ctx context.Context) (environment.OutsideObject, error) {
		return o.Objects.FindObject(ctx, instanceID, system, kind)
	})
}

func (o proxiedObjects) ObjectsIn(ctx context.Context, instanceID, system string) ([]environment.OutsideObject, error) {
	return readRow(ctx, o.rows(), "ObjectsIn", func(ctx context.Context) ([]environment.OutsideObject, error) {
		return o.Objects.ObjectsIn(ctx, instanceID, system)
	})
}

func (o proxiedObjects) SetObject(ctx context.Context, by process.Record, object environment.OutsideObject) error {
	return o.rows().call(ctx, "SetObject", func(ctx context.Context) error { return o.Objects.SetObject(ctx, by, object) })
}

func (o proxiedObjects) RemoveObject(ctx context.Context, by process.Record, object environment.OutsideObject) error {
	return o.rows().call(ctx, "RemoveObject", func(ctx context.Context) error { return o.Objects.RemoveObject(ctx, by, object) })
}

func (o proxiedObjects) Sharing(ctx context.Context, object environment.OutsideObject) ([]environment.OutsideObject, error) {
	return readRow(ctx, o.rows(), "Sharing", func(ctx context.Context) ([]environment.OutsideObject, error) {
		return o.Objects.Sharing(ctx, object)
	})
}
