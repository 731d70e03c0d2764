package ebctl

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"sigs.k8s.io/yaml"

	"github.com/environment-broker/environment-broker/internal/ebctl/brokerclient"
	"github.com/environment-broker/environment-broker/internal/ebctl/output"
	"github.com/environment-broker/environment-broker/internal/environment/fleet"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
)

// orchestrationFlags contains the flags that describe an order. file is the value of --parameters; the other flags override its
// fields.
type orchestrationFlags struct {
	file, schedule, version, fromVersion          string
	target                                        fleet.Target
	all, dryRun                                   bool
	instances, runtimes, withoutInstances         []string
	waves                                         []string
	gate                                          string
	workers, workersPerRegion, workersPerProvider int
	windows                                       bool
	deadline                                      string
	// own returns the command's own flags, without the global flags.
	own func() *pflag.FlagSet
}

// helpSelection explains the flags that select instances.
const helpSelection = "The --account, --subaccount, --region, --plan, --state, --from-version and --label flags select the instances that match all of them, " +
	"and --percentage selects a part of these. --instance and --runtime add instances. " +
	"--parameters reads the whole order, with all fields of the operator API, and flags override its fields. "

func newOrchestrationStartCommand(session *session) *cobra.Command {
	return group("start", "Upgrade Kyma or the clusters of many instances",
		newOrchestrationStartOneCommand(session, "kyma", "Kyma", (*brokerclient.Client).OrchestrateKyma),
		newOrchestrationStartOneCommand(session, "cluster", "the clusters", (*brokerclient.Client).OrchestrateCluster),
	)
}

func newOrchestrationStartOneCommand(session *session, use, what string,
	send func(*brokerclient.Client, context.Context, operatorapi.OrchestrationParameters) (operatorapi.AcceptedOrchestration, error),
) *cobra.Command {
	var given orchestrationFlags

	command := addYes(session, &cobra.Command{
		Use:   use,
		Short: "Upgrade " + what + " of many instances",
		Long: "Upgrade " + what + " of many instances.\n\n" +
			helpSelection + "The command needs the operator role. The audit log records your name.",
		Example: "  ebctl orchestration start " + use + " --plan aws --region '^eu-' --workers 10 --dry-run\n" +
			"  ebctl orchestration start " + use + " --label ring=canary --percentage 10\n" +
			"  ebctl orchestration start " + use + " --parameters @order.yaml",
		Args: arguments(),
		RunE: session.withClient(func(ctx context.Context, client *brokerclient.Client, _ []string) error {
			parameters, err := given.parameters(session, use)
			if err != nil {
				return err
			}

			if err := given.resolve(ctx, client, parameters.Targets); err != nil {
				return err
			}

			if !parameters.DryRun {
				if err := session.confirm(ctx, "Upgrade %s of all selected instances?", what); err != nil {
					return err
				}
			}

			accepted, err := send(client, ctx, parameters)
			if err != nil {
				return fmt.Errorf("starting an orchestration: %w", err)
			}

			return session.print(accepted, output.WithID{ID: accepted.OrchestrationID, Text: output.Fields{
				{Name: "Orchestration", Value: accepted.OrchestrationID},
			}})
		}),
	})
	given.add(session, command)

	return command
}

func (f *orchestrationFlags) add(session *session, command *cobra.Command) {
	flags := command.Flags()
	f.own = command.LocalNonPersistentFlags

	flags.StringVar(&f.file, "parameters", "", "the order as a JSON or YAML object, @FILE, or @- for standard input")
	flags.BoolVar(&f.all, "all", false, "all instances")
	flags.StringVar(&f.target.GlobalAccount, "account", "", "instances of global accounts that match this regular expression")
	flags.StringVar(&f.target.SubAccount, "subaccount", "", "instances of subaccounts that match this regular expression")
	flags.StringVar(&f.target.Region, "region", "", "instances in regions of the provider that match this regular expression")
	flags.StringVar(&f.target.PlanName, "plan", "", "instances of this plan")
	flags.StringVar(&f.target.State, "state", "", "instances whose runtimes are in this state: "+strings.Join(fleet.RuntimeStates(), ", "))
	flags.StringVar(&f.fromVersion, "from-version", "", "instances for which the broker last ordered this version; 1.34 includes 1.34.2")
	flags.StringVar(&f.target.Labels, "label", "", "instances with all these labels, such as ring=canary,team")
	flags.IntVar((*int)(&f.target.Percentage), "percentage", 0, "this percentage of the instances that the other flags select, at random")
	flags.StringSliceVar(&f.runtimes, "runtime", nil, "instances with these runtime IDs; repeatable")
	flags.StringSliceVar(&f.instances, "instance", nil, "instances with these IDs or names; repeatable")
	flags.StringSliceVar(&f.withoutInstances, "exclude-instance", nil, "leave out instances with these IDs or names; repeatable")
	flags.IntVar(&f.workers, "workers", 0, "how many instances are upgraded at the same time (default 1)")
	flags.IntVar(&f.workersPerRegion, "workers-per-region", 0, "how many instances are upgraded at the same time in each region (default no limit)")
	flags.IntVar(&f.workersPerProvider, "workers-per-provider", 0, "how many instances are upgraded at the same time at each cloud provider (default no limit)")
	flags.StringVar(&f.schedule, "at", "", "the earliest start, such as 2030-01-02T15:04:05Z (default now)")
	flags.BoolVar(&f.windows, "maintenance-windows", false, "upgrades start only in the maintenance windows of the instances")
	flags.StringVar(&f.deadline, "deadline", "", "the time by which all upgrades must have started, such as 2030-01-02T15:04:05Z; the others are canceled")
	flags.StringVar(&f.version, "version", "", "the version after the upgrade")
	flags.StringArrayVar(&f.waves, "wave", nil, "the instances of a wave: a number, a percentage such as 5%, or labels such as "+
		"ring=canary, with an optional soak time, as in 5%:2h; repeatable. Each wave ends before the next one begins; the remaining instances are the last wave")
	flags.StringVar(&f.gate, "failure-gate", "", "stop after this number or percentage of failed upgrades, such as 3 or 10%")
	flags.BoolVar(&f.dryRun, "dry-run", false, "the upgrades only describe what they would do")
	complete(command, "state", fleet.RuntimeStates()...)
	completeBy(command, "instance", session.completeInstance)
	completeBy(command, "exclude-instance", session.completeInstance)
}

// parameters returns the order from --parameters and the other flags. It checks only the syntax; the broker validates the values.
func (f *orchestrationFlags) parameters(session *session, kind string) (parameters fleet.Parameters, err error) {
	// An empty value, for example from an unset variable, must not select more instances than the user intends.
	f.own().VisitAll(func(flag *pflag.Flag) {
		if value := flag.Value.String(); flag.Changed && (value == "" || value == "[]") {
			err = errors.Join(err, usage("--%s must not be empty", flag.Name))
		}

		if flag.Name == "percentage" && flag.Changed && f.target.Percentage == 0 {
			err = errors.Join(err, usage("--percentage must be between 1 and 100"))
		}
	})

	if err != nil {
		return parameters, err
	}

	text, err := readArgument(session.In, f.file)
	if err != nil {
		return parameters, err
	}

	if err := yaml.UnmarshalStrict(text, &parameters); err != nil {
		return parameters, usage("--parameters is not a valid order: %w", errors.New(output.Line(err.Error())))
	}

	if strings.HasPrefix(kind, "kyma") {
		f.target.KymaVersion = f.fromVersion
	} else {
		f.target.KubernetesVersion = f.fromVersion
	}

	f.addTargets(&parameters.Targets)

	if len(parameters.Targets.Include) == 0 {
		return parameters, usage("no instances are selected: use --all, --account, --subaccount, --region, --plan, --state, --from-version, --label, " +
			"--percentage, --instance, --runtime or --parameters")
	}

	f.override(&parameters, kind)

	if f.deadline != "" {
		if parameters.Strategy.Deadline, err = time.Parse(time.RFC3339, f.deadline); err != nil {
			return parameters, usage("--deadline must be a time such as 2030-01-02T15:04:05Z")
		}
	}

	return parameters, f.addWaves(&parameters.Strategy)
}

// addTargets adds the targets that the flags select. Without other conditions, --percentage selects a share of all instances.
func (f *orchestrationFlags) addTargets(targets *fleet.Targets) {
	if f.all {
		targets.Include = append(targets.Include, fleet.Target{Target: "all"})
	}

	if part := (fleet.Target{Percentage: f.target.Percentage}); f.target == part && part != (fleet.Target{}) {
		f.target.Target = "all"
	}

	if f.target != (fleet.Target{}) {
		targets.Include = append(targets.Include, f.target)
	}

	for _, id := range f.runtimes {
		targets.Include = append(targets.Include, fleet.Target{RuntimeID: id})
	}

	for _, id := range f.instances {
		targets.Include = append(targets.Include, fleet.Target{InstanceID: id})
	}

	for _, id := range f.withoutInstances {
		targets.Exclude = append(targets.Exclude, fleet.Target{InstanceID: id})
	}
}

// resolve replaces the names in --instance and --exclude-instance with the IDs of the instances. addTargets has put the values of these
// flags at the end of the targets. The order in --parameters does not change: the operator API has no names there.
func (f *orchestrationFlags) resolve(ctx context.Context, client *brokerclient.Client, targets fleet.Targets) error {
	if err := resolveInstances(ctx, client, targets.Include[len(targets.Include)-len(f.instances):]); err != nil {
		return err
	}

	return resolveInstances(ctx, client, targets.Exclude[len(targets.Exclude)-len(f.withoutInstances):])
}

// addWaves sets the waves from --wave and the failure gate from --failure-gate. If a flag is not set, its field stays unchanged.
func (f *orchestrationFlags) addWaves(strategy *fleet.Strategy) error {
	if len(f.waves) > 0 {
		strategy.Waves = nil
	}

	for _, text := range f.waves {
		part, soak, _ := strings.Cut(text, ":")

		number, percentage, err := amount(part)
		if err != nil {
			return usage("--wave %q: %w", text, err)
		}

		wave := fleet.Wave{Number: number, Percentage: percentage, Soak: soak}
		if number == 0 && percentage == 0 {
			wave.Labels = part
		}

		strategy.Waves = append(strategy.Waves, wave)
	}

	if f.gate == "" {
		return nil
	}

	failures, percentage, err := amount(f.gate)
	if err != nil || failures+percentage == 0 {
		return usage("--failure-gate must be a number such as 3, or a percentage such as 10%%")
	}

	strategy.FailureGate = &fleet.FailureGate{Failures: failures, Percentage: percentage}

	return nil
}

// amount parses a positive number or a percentage, and returns 0 for the other one. If the text does not start with a digit, amount
// returns 0 for both and no error.
func amount(text string) (number, percentage int, err error) {
	if text == "" || text[0] < '0' || text[0] > '9' {
		return 0, 0, nil
	}

	digits, isPercentage := strings.CutSuffix(text, "%")

	number, err = strconv.Atoi(digits)
	if err != nil || number == 0 {
		return 0, 0, errors.New("must be a positive whole number such as 3, or a percentage such as 10%")
	}

	if isPercentage {
		return 0, number, nil
	}

	return number, 0, nil
}

// override replaces the values from the file with the values of the flags that are set.
func (f *orchestrationFlags) override(parameters *fleet.Parameters, kind string) {
	parameters.DryRun = parameters.DryRun || f.dryRun
	parameters.Strategy.MaintenanceWindow = parameters.Strategy.MaintenanceWindow || f.windows

	if f.schedule != "" {
		parameters.Strategy.Schedule = f.schedule
	}

	if f.workers != 0 || f.workersPerRegion != 0 || f.workersPerProvider != 0 {
		limits := fleet.Parallel{Workers: 1}
		if parameters.Strategy.Parallel != nil {
			limits = *parameters.Strategy.Parallel
		}

		for _, each := range []struct{ flag, field *int }{
			{&f.workers, &limits.Workers}, {&f.workersPerRegion, &limits.WorkersPerRegion}, {&f.workersPerProvider, &limits.WorkersPerProvider},
		} {
			if *each.flag != 0 {
				*each.field = *each.flag
			}
		}

		parameters.Strategy.Parallel = &limits
	}

	if f.version == "" {
		return
	}

	if strings.HasPrefix(kind, "kyma") {
		parameters.Kyma = &fleet.Kyma{Version: f.version}
	} else {
		parameters.Kubernetes = &fleet.Kubernetes{KubernetesVersion: f.version}
	}
}
