package fleet

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

const (
	// maxTargets is the maximum number of entries in Targets.Include and in Targets.Exclude.
	maxTargets = 100
	// maxWorkers is the maximum number of instances that an orchestration upgrades at once.
	maxWorkers = 1000
	// maxDelay is the longest time from the order of an orchestration until its start or its deadline.
	maxDelay = 90 * 24 * time.Hour

	// StrategyParallel is the only supported value of Strategy.Type.
	StrategyParallel = "parallel"
	// ScheduleImmediate starts upgrades immediately.
	ScheduleImmediate = "immediate"
	// ScheduleNow has the same effect as ScheduleImmediate.
	ScheduleNow = "now"
)

// Parameters is the order for an orchestration. Its JSON form is compatible with Kyma Environment Broker, and is also the stored
// form.
type Parameters struct {
	Targets  Targets  `json:"targets"`
	Strategy Strategy `json:"strategy,omitzero"`
	// DryRun makes all upgrades dry runs: they describe what they would do and call no other system.
	DryRun bool `json:"dryRun,omitempty"`
	// Kyma contains the version for upgrades of Kyma, and Kubernetes the version for upgrades of clusters. Nil means the default.
	Kyma       *Kyma       `json:"kyma,omitempty"`
	Kubernetes *Kubernetes `json:"kubernetes,omitempty"`

	// Kyma Environment Broker sets these fields in responses, and its clients send them back. They are ignored.
	RetryOperation    json.RawMessage `json:"retryoperation,omitempty"`
	NotificationState json.RawMessage `json:"notificationstate,omitempty"`
	Notification      bool            `json:"notification,omitempty"`
}

// Kyma contains the Kyma version after the upgrade. If it is empty, the version configured for each account applies, or else the
// default version.
type Kyma struct {
	Version string `json:"version,omitempty"`
}

// Kubernetes contains the Kubernetes version after the upgrade. Empty means the version of each instance's plan. The plan
// determines the machine image, so the other fields must be empty.
type Kubernetes struct {
	KubernetesVersion   string `json:"kubernetesVersion,omitempty"`
	MachineImage        string `json:"machineImage,omitempty"`
	MachineImageVersion string `json:"machineImageVersion,omitempty"`
}

// Strategy determines when upgrades start, and how many run at once.
type Strategy struct {
	// Type is empty or StrategyParallel.
	Type string `json:"type,omitempty"`
	// Schedule is ScheduleImmediate, ScheduleNow or a time in the format of RFC 3339. If it is empty, ScheduleTime applies; if
	// that is zero too, upgrades start immediately.
	Schedule     string    `json:"schedule,omitempty"`
	ScheduleTime time.Time `json:"scheduleTime,omitzero"`
	// MaintenanceWindow means that upgrades start only in the maintenance windows of their instances.
	MaintenanceWindow bool `json:"maintenanceWindow,omitempty"`
	// Deadline is the time by which all upgrades must have started. Upgrades that have not started by then are canceled. Zero
	// means no deadline.
	Deadline time.Time `json:"deadline,omitzero"`
	Parallel *Parallel `json:"parallel,omitempty"`
	// Waves divide the targets. If there are none, all targets are in a single wave.
	Waves []Wave `json:"waves,omitempty"`
	// FailureGate stops the orchestration after failures. Nil means that failures do not stop it.
	FailureGate *FailureGate `json:"failureGate,omitempty"`
}

// Parallel limits the number of upgrades of an orchestration that run at the same time.
type Parallel struct {
	// Workers is the maximum number of upgrades overall.
	Workers int `json:"workers"`
	// WorkersPerRegion and WorkersPerProvider are the maximum numbers of upgrades in each region and at each cloud provider. 0
	// means that only Workers limits the number.
	WorkersPerRegion   int `json:"workersPerRegion,omitempty"`
	WorkersPerProvider int `json:"workersPerProvider,omitempty"`
}

// ValidationError reports a mistake in parameters, selectors or maintenance windows. Its text is for users.
type ValidationError struct{ text string }

// Error implements error.
func (e *ValidationError) Error() string { return e.text }

func invalid(format string, args ...any) error { return &ValidationError{fmt.Sprintf(format, args...)} }

// Complete checks the parameters and returns them with all defaults filled in. In the result, RetryOperation and
// NotificationState are nil, and ScheduleTime is the earliest start. Errors are of type ValidationError.
func (p Parameters) Complete(now time.Time) (Parameters, error) {
	p.RetryOperation, p.NotificationState = nil, nil

	if p.Kubernetes != nil && (p.Kubernetes.MachineImage != "" || p.Kubernetes.MachineImageVersion != "") {
		return p, invalid("kubernetes.machineImage and kubernetes.machineImageVersion are not supported: the plan determines the machine image.")
	}

	if err := p.Targets.validate(); err != nil {
		return p, err
	}

	strategy, err := p.Strategy.complete(now)
	p.Strategy = strategy

	return p, err
}

// complete returns the strategy with all defaults.
func (s Strategy) complete(now time.Time) (Strategy, error) {
	if s.Type == "" {
		s.Type = StrategyParallel
	}

	if s.Type != StrategyParallel {
		return s, invalid("strategy.type must be %q.", StrategyParallel)
	}

	parallel := Parallel{Workers: 1}
	if s.Parallel != nil {
		parallel = *s.Parallel
	}

	if parallel.Workers < 1 || parallel.Workers > maxWorkers {
		return s, invalid("strategy.parallel.workers must be a number from 1 to %d.", maxWorkers)
	}

	if parallel.WorkersPerRegion < 0 || parallel.WorkersPerProvider < 0 {
		return s, invalid("strategy.parallel.workersPerRegion and strategy.parallel.workersPerProvider must not be negative.")
	}

	s.Parallel = &parallel

	if err := s.validateWaves(); err != nil {
		return s, err
	}

	return s.schedule(now)
}

// schedule sets ScheduleTime from Schedule, and checks Deadline.
func (s Strategy) schedule(now time.Time) (Strategy, error) {
	switch s.Schedule {
	case ScheduleImmediate, ScheduleNow:
		s.ScheduleTime = now
	case "":
		if s.Schedule = ScheduleImmediate; !s.ScheduleTime.IsZero() {
			s.Schedule = s.ScheduleTime.Format(time.RFC3339)
		}
	case "maintenanceWindow", "maintenancewindow":
		return s, invalid("The value %q of strategy.schedule is no longer supported. Set strategy.maintenanceWindow to true.", s.Schedule)
	default:
		at, err := time.Parse(time.RFC3339, s.Schedule)
		if err != nil {
			return s, invalid("strategy.schedule must be %q, %q or a time such as 2030-01-02T15:04:05Z.", ScheduleImmediate, ScheduleNow)
		}

		s.ScheduleTime = at
	}

	if s.ScheduleTime.Before(now) {
		s.ScheduleTime = now
	}

	if s.ScheduleTime.Sub(now) > maxDelay {
		return s, invalid("strategy.schedule must not be more than %d days in the future.", int(maxDelay.Hours()/24))
	}

	if !s.Deadline.IsZero() && !s.Deadline.After(s.ScheduleTime) {
		return s, invalid("strategy.deadline must be in the future and after the earliest start.")
	}

	if s.Deadline.Sub(now) > maxDelay {
		return s, invalid("strategy.deadline must not be more than %d days in the future.", int(maxDelay.Hours()/24))
	}

	s.ScheduleTime, s.Deadline = s.ScheduleTime.UTC(), s.Deadline.UTC()

	return s, nil
}

// validate rejects an empty Include list, and lists that are too long or have invalid entries.
func (t Targets) validate() error {
	if len(t.Include) == 0 {
		return invalid(`targets.include is missing. Send at least one target, such as {"target": "all"}.`)
	}

	for _, list := range []struct {
		name    string
		targets []Target
	}{{"include", t.Include}, {"exclude", t.Exclude}} {
		if len(list.targets) > maxTargets {
			return invalid("targets.%s has %d entries. At most %d are allowed.", list.name, len(list.targets), maxTargets)
		}

		for i, target := range list.targets {
			if problems := target.problems(); len(problems) > 0 {
				return invalid("targets.%s[%d]: %s.", list.name, i, strings.Join(slices.Compact(problems), "; "))
			}
		}
	}

	return nil
}
