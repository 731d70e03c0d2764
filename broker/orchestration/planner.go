package orchestration

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/environment-broker/environment-broker/broker/upgrade"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/environment/fleet"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/instances"
)

const (
	// planPage is the number of instances that one query reads.
	planPage = 1000

	textGone       = "The instance no longer exists."
	textUnreadable = "The instance cannot be read. Its database record was changed outside the broker, or its encryption key is missing."
	textNoWindow   = "No maintenance window is known: neither the catalog's policy nor the plan has one, and the Shoot's window has not been read."
)

// Planner selects the targets of orchestrations. It writes nothing. It is stateless and safe for concurrent use. All fields are required.
type Planner struct {
	Upgrader upgrade.Upgrader
	// StateOf derives the state of a runtime from the runtime's newest operation. fleet.Target.State selects runtimes by this
	// state.
	StateOf func(newest process.Record) string
	// ShootWindows returns the stored maintenance windows of Shoots, keyed by instance ID. It omits unknown windows.
	ShootWindows func(ctx context.Context, tx storage.Tx, instanceIDs []string) (map[string]fleet.WindowTimes, error)
	// Upgraded returns the targets of an orchestration whose upgrades have succeeded or failed.
	Upgraded func(ctx context.Context, tx storage.Tx, orchestrationID string) ([]environment.Target, error)
}

// targets returns a target for each selected instance, with its wave.
func (p Planner) targets(ctx context.Context, orchestration environment.Orchestration) ([]environment.Target, error) {
	targets, err := p.all(ctx, orchestration)
	if err != nil {
		return nil, err
	}

	return targets, p.assignWaves(ctx, orchestration, targets)
}

// assignWaves sets the waves of the pending targets. Targets that are left out get no wave.
func (p Planner) assignWaves(ctx context.Context, orchestration environment.Orchestration, targets []environment.Target) error {
	var (
		strategy = orchestration.Parameters.Strategy
		pending  []*environment.Target
		members  []fleet.Member
	)

	for i := range targets {
		if targets[i].State == environment.TargetPending {
			pending = append(pending, &targets[i])
			members = append(members, fleet.Member{InstanceID: targets[i].InstanceID})
		}
	}

	if strategy.ByLabel() {
		for page := range slices.Chunk(members, planPage) {
			ids := make([]string, 0, len(page))
			for _, member := range page {
				ids = append(ids, member.InstanceID)
			}

			labels, err := p.Upgrader.Instances.Labels(ctx, p.reader(), ids...)
			if err != nil {
				return err
			}

			for i := range page {
				page[i].Labels = labels[page[i].InstanceID]
			}
		}
	}

	for i, wave := range fleet.Assign(strategy.Waves, orchestration.ID, members) {
		pending[i].Wave = wave
	}

	return nil
}

// all returns a target for each selected instance, without setting the waves.
func (p Planner) all(ctx context.Context, orchestration environment.Orchestration) ([]environment.Target, error) {
	var (
		targets  []environment.Target
		selector = fleet.NewSelector(orchestration.Parameters.Targets, orchestration.ID)
		filter   = instances.Filter{Limit: planPage}
	)

	undone, err := p.undone(ctx, orchestration)
	if err != nil {
		return nil, err
	}

	selects := func(candidate fleet.Candidate) bool {
		_, upgraded := undone[candidate.InstanceID]

		return upgraded || undone == nil && selector.Selects(candidate)
	}

	for {
		page, err := p.Upgrader.Instances.List(ctx, filter)
		if err != nil {
			return nil, err
		}

		selected, err := p.selected(ctx, orchestration, selects, undone, page)
		if err != nil {
			return nil, err
		}

		targets = append(targets, selected...)

		if len(page) < planPage {
			return targets, nil
		}

		last := page[len(page)-1].Instance
		filter.Before, filter.BeforeID = last.CreatedAt, last.ID
	}
}

// selected returns the targets in a page of instances. undone contains the upgrades to roll back, or is nil.
func (p Planner) selected(ctx context.Context, orchestration environment.Orchestration, selects func(fleet.Candidate) bool,
	undone map[string]environment.Target, page []instances.Listed,
) ([]environment.Target, error) {
	candidates, err := p.candidates(ctx, orchestration.Parameters.Targets, page)
	if err != nil {
		return nil, err
	}

	var (
		targets []environment.Target
		pending []string
		shoots  map[string]fleet.WindowTimes
	)

	if orchestration.Parameters.Strategy.MaintenanceWindow {
		ids := make([]string, 0, len(page))
		for _, listed := range page {
			ids = append(ids, listed.Instance.ID)
		}

		if shoots, err = p.ShootWindows(ctx, p.reader(), ids); err != nil {
			return nil, err
		}
	}

	for i, listed := range page {
		if !selects(candidates[i]) {
			continue
		}

		target := p.target(orchestration, listed)
		if err := p.addWindow(&target, orchestration.Parameters.Strategy, candidates[i], listed.Instance.PlanID, shoots[target.InstanceID]); err != nil {
			return nil, err
		}

		if target.State == environment.TargetPending {
			pending = append(pending, target.InstanceID)
		}

		targets = append(targets, target)
	}

	return targets, p.addVersionsOf(ctx, orchestration, undone, targets, pending)
}

// addVersionsOf sets the versions before and after the upgrade or rollback on each pending target; pending lists their instance
// IDs. It leaves out targets that cannot be upgraded or rolled back.
func (p Planner) addVersionsOf(ctx context.Context, orchestration environment.Orchestration, undone map[string]environment.Target,
	targets []environment.Target, pending []string,
) error {
	complete, unreadable, err := p.Upgrader.Instances.GetAll(ctx, p.reader(), pending)
	if err != nil {
		return err
	}

	for i := range targets {
		if target := &targets[i]; target.State == environment.TargetPending && addReadable(target, complete, unreadable) {
			upgraded, undo := undone[target.InstanceID]
			if !undo {
				p.addVersions(target, orchestration, complete[target.InstanceID])
			} else if err := p.addRollback(ctx, target, complete[target.InstanceID], upgraded); err != nil {
				return err
			}
		}
	}

	return nil
}

// addWindow adds the maintenance window and its next occurrence to the target. If the target cannot start in a window, addWindow
// leaves it out.
func (p Planner) addWindow(target *environment.Target, strategy fleet.Strategy, candidate fleet.Candidate, planID string, shoot fleet.WindowTimes) error {
	if !strategy.MaintenanceWindow || target.State != environment.TargetPending {
		return nil
	}

	window, err := p.Upgrader.Catalog.Window(candidate, planID, shoot)
	if err != nil {
		return err
	}

	target.Window = window.String()
	target.NotBefore, target.NotAfter = occurrence(window, strategy.ScheduleTime)

	switch {
	case window.IsZero():
		target.State, target.Description = environment.TargetLeftOut, textNoWindow
	case !strategy.Deadline.IsZero() && !target.NotBefore.Before(strategy.Deadline):
		target.State, target.Description = environment.TargetLeftOut,
			"The next maintenance window begins at "+target.NotBefore.Format(time.RFC3339)+", after the deadline."
	}

	return nil
}

// occurrence returns the remainder of the current occurrence of the window, or the next occurrence if the window is closed. If
// the window is zero, notAfter is zero.
func occurrence(window fleet.Window, now time.Time) (notBefore, notAfter time.Time) {
	begin, end := window.Next(now)
	if begin.Before(now) {
		begin = now
	}

	return begin, end
}

// addReadable reports whether complete contains the target's instance. If not, the instance was deleted or cannot be decrypted,
// and addReadable leaves the target out.
func addReadable(target *environment.Target, complete map[string]environment.Instance, unreadable map[string]error) bool {
	_, found := complete[target.InstanceID]

	switch {
	case unreadable[target.InstanceID] != nil:
		target.State, target.Description = environment.TargetLeftOut, textUnreadable
	case !found:
		target.State, target.Description = environment.TargetLeftOut, textGone
	}

	return target.State == environment.TargetPending
}

// addVersions sets the versions before and after the upgrade on the target, or leaves the target out if the upgrade would be
// rejected.
func (p Planner) addVersions(target *environment.Target, orchestration environment.Orchestration, instance environment.Instance) {
	versions, err := p.Upgrader.Preview(instance, upgrade.Order{Kind: orchestration.Kind, Version: version(orchestration.Kind, orchestration.Parameters)})
	if err != nil {
		target.State, target.Description = environment.TargetLeftOut, failure.Of(err).Text

		return
	}

	target.FromVersion, target.ToVersion = versions.From, versions.To
}

// candidates returns a fleet.Candidate for each instance, with the fields that fleet.Targets can select by. It reads the labels
// only if targets selects by label, and decrypts the versions only if targets selects by version.
func (p Planner) candidates(ctx context.Context, targets fleet.Targets, page []instances.Listed) (_ []fleet.Candidate, err error) {
	var (
		labels   map[string]map[string]string
		complete map[string]environment.Instance
		ids      = make([]string, 0, len(page))
	)

	for _, listed := range page {
		ids = append(ids, listed.Instance.ID)
	}

	if targets.ByLabel() {
		if labels, err = p.Upgrader.Instances.Labels(ctx, p.reader(), ids...); err != nil {
			return nil, err
		}
	}

	if targets.ByVersion() {
		if complete, _, err = p.Upgrader.Instances.GetAll(ctx, p.reader(), ids); err != nil {
			return nil, err
		}
	}

	candidates := make([]fleet.Candidate, 0, len(page))

	for _, listed := range page {
		instance, cluster := listed.Instance, complete[listed.Instance.ID].Request.Cluster
		candidate := fleet.Candidate{
			GlobalAccount: instance.GlobalAccountID, SubAccount: instance.SubAccountID, Region: instance.Region, RuntimeID: instance.RuntimeID,
			PlanName: instance.PlanName, Shoot: instance.ShootName, InstanceID: instance.ID, State: p.StateOf(listed.Operation),
			KubernetesVersion: cluster.KubernetesVersion, Labels: labels[instance.ID],
		}

		if cluster.Kyma != nil {
			candidate.KymaVersion = cluster.Kyma.Version
		}

		candidates = append(candidates, candidate)
	}

	return candidates, nil
}

func (p Planner) reader() storage.Tx { return p.Upgrader.DB.Reader() }

// target returns the target for the instance. If the instance cannot be upgraded, the target is left out.
func (p Planner) target(orchestration environment.Orchestration, listed instances.Listed) environment.Target {
	target := environment.Target{
		OrchestrationID: orchestration.ID, InstanceID: listed.Instance.ID, OperationID: uuid.NewString(), State: environment.TargetPending,
		Provider: listed.Instance.Provider, Region: listed.Instance.Region, NotBefore: orchestration.Parameters.Strategy.ScheduleTime,
	}

	if why := p.obstacle(orchestration.Kind, listed); why != "" {
		target.State, target.Description = environment.TargetLeftOut, why
	}

	return target
}

// obstacle says why the instance cannot be upgraded, or returns an empty string if it can.
func (p Planner) obstacle(kind string, listed instances.Listed) string {
	instance, newest := listed.Instance, listed.Operation
	plan, known := p.Upgrader.Catalog.ByID(instance.PlanID)

	switch {
	case instance.Provider == "":
		return "The cluster belongs to the tenant, who also upgrades it."
	case newest.Kind == environment.KindDeprovision, newest.Kind == environment.KindSuspend && !newest.NeverStarted():
		return "The runtime is being removed or was removed."
	case instance.Suspended:
		return "The instance is suspended and has no runtime."
	case slices.Contains([]string{environment.KindProvision, environment.KindResume}, newest.Kind) && newest.State != process.Succeeded,
		instance.RuntimeID == "":
		return "The runtime is not complete."
	case !known:
		return fmt.Sprintf("The catalog no longer has plan %s.", instance.PlanName)
	case kind == environment.KindUpgradeKyma && !plan.InstallsKyma():
		return fmt.Sprintf("Plan %s does not install Kyma.", instance.PlanName)
	default:
		return ""
	}
}
