package ebctl

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/dustin/go-humanize/english"
	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/environment-broker/environment-broker/internal/ebctl/brokerclient"
	"github.com/environment-broker/environment-broker/internal/ebctl/output"
	"github.com/environment-broker/environment-broker/internal/environment/fleet"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
)

const (
	// bulkSeed makes the percentage condition select the same instances each time, so that a dry run shows the effect of the real
	// run.
	bulkSeed = "ebctl"
	// bulkPage is the maximum page size of the operator API.
	bulkPage = 100
	// maxConcurrency is the maximum number of interventions that are sent at the same time.
	maxConcurrency = 50
)

// helpSelector returns the paragraph about --selector in the help texts of interventions.
func (s *session) helpSelector() string {
	conditions := strings.Join(fleet.Conditions(), ", ")
	if s.provisioner {
		conditions = "account, subaccount, region, state, runtime, shoot, percentage"
	}

	return s.text("\n\nWith --selector, the command intervenes in the newest operation of each selected instance, if the operation's state allows it. ") +
		"A selector is 'all', or a list of conditions NAME=VALUE, separated by commas, which must all hold. The conditions are " + conditions +
		"; account, subaccount and region are regular expressions. --dry-run lists the operations. The command continues after an error, prints " +
		"the result for each operation, and fails if at least one intervention failed."
}

// bulkFlags contains the flags of an intervention in many operations.
type bulkFlags struct {
	selectors, excluded []string
	kind                string
	dryRun              bool
	concurrency         int
}

func (f *bulkFlags) add(session *session, command *cobra.Command) {
	const standard = 4

	flags := command.Flags()
	flags.StringArrayVar(&f.selectors, "selector", nil, session.text("the instances, such as plan=aws,region=^eu-,state=failed, or all; repeatable"))
	flags.StringArrayVar(&f.excluded, "exclude", nil, session.text("a selector of instances to leave out; repeatable"))
	flags.StringVar(&f.kind, "kind", "", "with --selector, only operations of this kind: "+strings.Join(session.operationKinds(), ", "))
	flags.BoolVar(&f.dryRun, "dry-run", false, "with --selector, only list the operations")
	flags.IntVar(&f.concurrency, "concurrency", standard, "with --selector, how many requests are sent at the same time")
	complete(command, "kind", session.operationKinds()...)
}

// wanted reports whether the command intervenes in many operations. It returns an error for flags and arguments that exclude each
// other.
func (f *bulkFlags) wanted(args []string, one waiting) (bool, error) {
	switch {
	case len(f.selectors) == 0 && (len(f.excluded) > 0 || f.kind != "" || f.dryRun):
		return false, usage("--exclude, --kind and --dry-run need --selector")
	case len(f.selectors) == 0:
		return false, arguments("ID_OR_NAME")(nil, args)
	case len(args) > 0:
		return false, usage("--selector and %s cannot be combined", args[0])
	case one.wanted:
		return false, usage("--selector and --wait cannot be combined: see 'ebctl operation list'")
	case f.concurrency < 1 || f.concurrency > maxConcurrency:
		return false, usage("--concurrency must be between 1 and %d", maxConcurrency)
	default:
		return true, nil
	}
}

// targets parses the selectors.
func (f *bulkFlags) targets(provisioner bool) (targets fleet.Targets, err error) {
	parse := func(texts []string) (parsed []fleet.Target, err error) {
		for _, text := range texts {
			target, err := fleet.ParseTarget(text)
			if err != nil {
				return nil, &usageError{err}
			}

			if provisioner && (target.PlanName != "" || target.Labels != "" || target.KubernetesVersion != "" || target.KymaVersion != "") {
				return nil, usage("the selector %q is invalid: runtimes of the Provisioner do not have plans, labels or versions", text)
			}

			parsed = append(parsed, target)
		}

		return parsed, nil
	}

	if targets.Include, err = parse(f.selectors); err == nil {
		targets.Exclude, err = parse(f.excluded)
	}

	return targets, err
}

// Values of bulkEntry.Result.
const (
	bulkPlanned  = "planned"
	bulkAccepted = "accepted"
	bulkFailed   = "failed"
	bulkNotSent  = "not sent"
)

// bulkEntry is an operation with the result of the intervention.
type bulkEntry struct {
	InstanceID   string `json:"instanceID"`
	InstanceName string `json:"instanceName,omitempty"`
	OperationID  string `json:"operationID"`
	Kind         string `json:"kind"`
	State        string `json:"state"`
	Step         string `json:"step,omitempty"`
	Result       string `json:"result"`
	// SuccessorID is the ID of the new operation after a retry.
	SuccessorID string `json:"successorID,omitempty"`
	Error       string `json:"error,omitempty"`
}

// bulkResult is the JSON output of an intervention in many operations.
type bulkResult struct {
	DryRun bool        `json:"dryRun,omitempty"`
	Count  int         `json:"count"`
	Failed int         `json:"failed"`
	Data   []bulkEntry `json:"data"`
}

// bulkError reports that some interventions failed or were not sent. cause is the error that prevented further interventions, or
// nil.
type bulkError struct {
	doing           string
	failed, notSent int
	count           int
	cause           error
}

// Error returns the numbers of interventions that failed and that were not sent, and the cause.
func (e *bulkError) Error() string {
	text := fmt.Sprintf("%s %s: %d failed", e.doing, english.Plural(e.count, "operation", ""), e.failed)
	if e.notSent > 0 {
		text += fmt.Sprintf(", %d not sent", e.notSent)
	}

	if e.cause != nil {
		text += ": " + e.cause.Error()
	}

	return text
}

// Unwrap returns the cause.
func (e *bulkError) Unwrap() error { return e.cause }

// interveneInMany selects the operations and, once the user has confirmed, sends an intervention for each. A dry run only prints
// the operations.
func (s *session) interveneInMany(ctx context.Context, client *brokerclient.Client, wanted intervention, given bulkFlags) error {
	if err := checkReason(wanted.Reason); !given.dryRun && err != nil {
		return err
	}

	if wanted.verb == "skip" && wanted.Step == "" {
		return usage("--selector needs --step: the operations may be at different steps")
	}

	targets, err := given.targets(s.provisioner)
	if err != nil {
		return err
	}

	if err := resolveSelectors(ctx, client, targets, given.kind); err != nil {
		return err
	}

	entries, err := s.selectOperations(ctx, client, targets, wanted, given.kind)
	if err != nil {
		return fmt.Errorf("selecting operations: %w", err)
	}

	if given.dryRun || len(entries) == 0 {
		return s.printBulk(entries, given.dryRun)
	}

	if s.asks() {
		if err := bulkTable(entries, s.title()).WriteText(s.Err); err != nil {
			return err
		}
	}

	if err := s.confirm(ctx, "%s %s?", strings.ToUpper(wanted.verb[:1])+wanted.verb[1:], english.Plural(len(entries), "operation", "")); err != nil {
		return err
	}

	cause := sendAll(ctx, client, entries, wanted, given.concurrency)

	if err := s.printBulk(entries, false); err != nil {
		return err
	}

	failed := &bulkError{doing: wanted.doing, count: len(entries), cause: cause}

	for _, entry := range entries {
		switch entry.Result {
		case bulkFailed:
			failed.failed++
		case bulkNotSent:
			failed.notSent++
		}
	}

	if failed.failed+failed.notSent == 0 {
		return nil
	}

	return failed
}

// resolveSelectors replaces the names of instances in targets with their IDs, and returns an error if an instance, a plan or the kind is
// unknown. Otherwise, such a selector would select nothing and, with --exclude, leave out nothing.
func resolveSelectors(ctx context.Context, client *brokerclient.Client, targets fleet.Targets, kind string) error {
	if kind != "" {
		if _, err := client.ListOperations(ctx, operatorapi.ListOperationsParams{Kind: kind, PageSize: 1}); err != nil {
			return fmt.Errorf("checking --kind: %w", err)
		}
	}

	for _, list := range [][]fleet.Target{targets.Include, targets.Exclude} {
		if err := resolveInstances(ctx, client, list); err != nil {
			return err
		}

		for _, target := range list {
			if target.PlanName == "" {
				continue
			}

			if _, err := client.ListRuntimes(ctx, operatorapi.ListRuntimesParams{Plan: target.PlanName, PageSize: 1}); err != nil {
				return fmt.Errorf("checking the selectors: %w", err)
			}
		}
	}

	return nil
}

// resolveInstances replaces the names of instances in targets with their IDs. The errors are those of lookup.
func resolveInstances(ctx context.Context, client *brokerclient.Client, targets []fleet.Target) error {
	for i := range targets {
		found, err := lookup(ctx, client, targets[i].InstanceID)
		if err != nil {
			return err
		}

		targets[i].InstanceID = found.InstanceID
	}

	return nil
}

// selectOperations returns the newest operation of each selected instance, and omits operations to which the intervention does not
// apply. If kind is not empty, it returns only operations of this kind.
func (s *session) selectOperations(ctx context.Context, client *brokerclient.Client, targets fleet.Targets, wanted intervention, kind string,
) ([]bulkEntry, error) {
	var (
		selector = fleet.NewSelector(targets, bulkSeed)
		filter   = operatorapi.ListRuntimesParams{PageSize: bulkPage, Versions: targets.ByVersion()}
		entries  = []bulkEntry{}
	)

	if len(targets.Include) == 1 { // filter in the service, which then lists fewer instances and rejects an unknown plan
		only := targets.Include[0]
		filter.Plan, filter.Labels, filter.State = only.PlanName, only.Labels, operatorapi.RuntimeState(only.State)
		filter.KubernetesVersion, filter.KymaVersion = only.KubernetesVersion, only.KymaVersion
	}

	if wanted.verb == "retry" && filter.State == "" {
		filter.State = operatorapi.RuntimeStateFailed // the only state with operations that can be retried
	}

	for runtime, err := range brokerclient.All(func(cursor string) ([]operatorapi.Runtime, string, error) {
		filter.Cursor = cursor
		page, err := client.ListRuntimes(ctx, filter)

		return page.Data, page.Cursor, err
	}) {
		if err != nil {
			return nil, err
		}

		last := runtime.Status.LastOperation
		if !wanted.applies(last) || kind != "" && kind != last.Kind || !selector.Selects(candidateOf(runtime)) {
			continue
		}

		entries = append(entries, bulkEntry{
			InstanceID: runtime.InstanceID, InstanceName: cmp.Or(runtime.Name, runtime.ShootName), OperationID: last.ID, Kind: last.Kind,
			State: string(last.State), Step: last.Step, Result: bulkPlanned,
		})
	}

	return entries, nil
}

// candidateOf converts a runtime to a fleet.Candidate, to which selectors can be applied.
func candidateOf(runtime operatorapi.Runtime) fleet.Candidate {
	return fleet.Candidate{
		GlobalAccount: runtime.GlobalAccountID, SubAccount: runtime.SubAccountID, Region: runtime.Region, RuntimeID: runtime.RuntimeID,
		PlanName: runtime.ServicePlanName, Shoot: runtime.ShootName, InstanceID: runtime.InstanceID, State: string(runtime.Status.State),
		KubernetesVersion: runtime.KubernetesVersion, KymaVersion: runtime.KymaVersion, Labels: runtime.Labels,
	}
}

// applies reports whether the state of the operation allows the intervention. If the intervention names a step, the operation
// must be at this step.
func (i intervention) applies(operation operatorapi.Operation) bool {
	states := map[string][]operatorapi.OperationState{
		"cancel": {operatorapi.OperationStatePending, operatorapi.OperationStateInProgress},
		"retry":  {operatorapi.OperationStateFailed, operatorapi.OperationStateCanceled},
		"skip":   {operatorapi.OperationStateInProgress},
	}

	return slices.Contains(states[i.verb], operation.State) && (i.Step == "" || i.Step == operation.Step)
}

// sendAll sends an intervention for each entry and sets the results. It stops when the context ends, or when a request fails with
// an error that would also affect all further requests; it then returns the error.
func sendAll(ctx context.Context, client *brokerclient.Client, entries []bulkEntry, wanted intervention, concurrency int) error {
	group, stop := errgroup.WithContext(ctx)
	group.SetLimit(concurrency)

	for i := range entries {
		entries[i].Result = bulkNotSent
	}

	for i := range entries {
		group.Go(func() error {
			if stop.Err() != nil {
				return nil //nolint:nilerr // another request has failed
			}

			// If another request fails, a request that was already sent is not canceled, because its result would be unknown.
			operation, err := wanted.send(client, ctx, entries[i].OperationID, wanted.Intervention)
			if err == nil {
				entries[i].Result = bulkAccepted
				if operation.ID != entries[i].OperationID {
					entries[i].SuccessorID = operation.ID
				}

				return nil
			}

			entries[i].Result, entries[i].Error = bulkFailed, err.Error()

			if !is[*brokerclient.UnreachableError](err) && !answered(http.StatusUnauthorized, http.StatusForbidden)(err) && ctx.Err() == nil {
				err = nil // the error concerns only this operation
			}

			return err
		})
	}

	return group.Wait()
}

func (s *session) printBulk(entries []bulkEntry, dryRun bool) error {
	result := bulkResult{DryRun: dryRun, Count: len(entries), Data: entries}

	for _, entry := range entries {
		if entry.Result == bulkFailed {
			result.Failed++
		}
	}

	return s.print(result, bulkTable(entries, s.title()))
}

func bulkTable(entries []bulkEntry, noun string) output.Rows {
	table := output.Rows{
		Head: []string{strings.ToUpper(noun), "OPERATION", "KIND", headState, "STEP", "RESULT", "ERROR"},
		None: "No operations found.", IDs: []string{},
	}

	for _, entry := range entries {
		result := entry.Result
		if entry.SuccessorID != "" {
			result += " as " + entry.SuccessorID
		}

		table.Add(cmp.Or(entry.SuccessorID, entry.OperationID),
			cmp.Or(entry.InstanceName, entry.InstanceID), entry.OperationID, entry.Kind, entry.State, entry.Step, result, entry.Error)
	}

	return table
}
