package ebctl

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"github.com/environment-broker/environment-broker/internal/ebctl/brokerclient"
	"github.com/environment-broker/environment-broker/internal/ebctl/output"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
	"github.com/environment-broker/environment-broker/internal/operatorapi/explain"
	"github.com/environment-broker/environment-broker/internal/program"
)

// Results of a check.
const (
	checkPassed  = "ok"
	checkWarning = "warning"
	checkFailed  = "failed"
)

// check is the result of one check of 'ebctl doctor'.
type check struct {
	Name   string `json:"check"`
	Result string `json:"result"`
	// Detail describes what the check found.
	Detail string `json:"detail,omitempty"`
	// Remedy advises how to fix a warning or a failure.
	Remedy string `json:"remedy,omitempty"`
}

// errUnhealthy reports that a check failed. The command has already printed the checks.
var errUnhealthy = errors.New("a check failed")

// maxSkew is the largest accepted difference between the broker's clock and the local one. With a larger difference, displayed ages
// are wrong, and tokens may be rejected.
const maxSkew = 30 * time.Second

// newDoctorCommand returns the command that checks the connection from this machine to the broker, the state of the broker, and
// the systems that the broker depends on.
func newDoctorCommand(session *session) *cobra.Command {
	return &cobra.Command{
		Use:   "doctor",
		Short: "Check the configuration, the connection, the roles and the state of the broker",
		Long: "Check the configuration, the connection, the credentials, the clocks, the roles, the catalog, the versions and the systems that " +
			"the broker calls, and find unknown environment variables with the prefix " + prefix + " and stuck operations. If the Provisioner is configured, " +
			"its version and systems are checked, too. The command advises how to fix each problem, and does not change anything. It exits with status 1 if a check fails.",
		Args: arguments(),
		RunE: func(command *cobra.Command, _ []string) error {
			checks, err := session.diagnose(command.Context())
			if err != nil {
				return err
			}

			rows := output.Rows{Head: []string{"CHECK", "RESULT", "DETAIL", "WHAT TO DO"}}

			var failed error

			for _, one := range checks {
				rows.Rows = append(rows.Rows, []string{one.Name, one.Result, one.Detail, one.Remedy})

				if one.Result == checkFailed {
					failed = errUnhealthy
				}
			}

			return errors.Join(session.print(checks, rows), failed)
		},
	}
}

// diagnose runs the checks in order. It stops after a failure that makes the remaining checks impossible.
func (s *session) diagnose(ctx context.Context) ([]check, error) {
	settings, err := s.settings()
	if err != nil {
		return nil, err
	}

	client := s.clientOf(settings)
	checks := append([]check{{Name: "configuration", Result: checkPassed, Detail: settings.Address}}, s.unknownVariables()...)

	catalog, served, err := client.CatalogAt(ctx)
	if rejected, is := errors.AsType[*brokerclient.AnswerError](err); err != nil && (!is || rejected.Temporary()) {
		return append(checks, check{
			"connection", checkFailed, err.Error(), "Check that the broker is running and that the address is correct: --address, EBCTL_ADDRESS or --context.",
		}), nil
	}

	checks = append(checks, check{Name: "connection", Result: checkPassed}, clocks(served, s.Clock.Now()))

	if answered(http.StatusUnauthorized)(err) {
		return append(checks, check{
			"credentials", checkFailed, err.Error(), "Log in with 'ebctl login', or set EBCTL_USERNAME and EBCTL_PASSWORD, or EBCTL_TOKEN (--token).",
		}), nil
	}

	checks = append(checks, check{Name: "credentials", Result: checkPassed, Detail: settings.Username})
	checks = append(checks, roles(ctx, client)...)

	if err == nil {
		checks = append(checks, catalogCheck(catalog))
	}

	checks = append(checks, s.status(ctx, client, "broker")...)
	checks = append(checks, s.provisionerStatus(ctx)...)

	return append(checks, s.stuckOperations(ctx, client)...), nil
}

// provisionerStatus returns the checks of the Provisioner, or nil if no credentials for the Provisioner are configured.
func (s *session) provisionerStatus(ctx context.Context) []check {
	provisioner, settings, configured := s.behind()
	if !configured {
		return nil
	}

	return provisioner.status(ctx, provisioner.clientOf(settings), "provisioner")
}

// unknownVariables returns a check for each environment variable with the prefix of ebctl that ebctl does not have.
func (s *session) unknownVariables() []check {
	var checks []check

	for _, warning := range program.Unknown(prefix, variables(), s.Environ) {
		checks = append(checks, check{"variables", checkWarning, warning, "Correct its name, or unset it."})
	}

	return checks
}

// behind returns a session for the Provisioner behind the broker, and the settings of that session. It returns false if no
// credentials for the Provisioner are configured, or if the settings are invalid.
func (s *session) behind() (*session, Settings, bool) {
	configured := *s.globals
	configured.flags = Settings{} // the flags apply to the broker

	provisioner := *s
	provisioner.globals, provisioner.provisioner = &configured, true

	settings, err := Resolve(provisioner.sources())

	return &provisioner, settings, err == nil && (settings.Username != "" || settings.Token != "")
}

// status compares the version of the service with the version of ebctl, and returns this check and one for each system that the
// service calls.
func (s *session) status(ctx context.Context, client *brokerclient.Client, service string) []check {
	status, err := client.GetStatus(ctx)

	switch {
	case answered(http.StatusForbidden)(err):
		return nil // the viewer role check reports this error
	case answered(http.StatusNotFound)(err):
		return []check{{service + " version", checkWarning, "unknown, ebctl has " + s.Version, "Update the service: it is older than ebctl."}}
	case err != nil:
		return []check{{service, checkFailed, err.Error(), "Check that the service is running, and that its address and credentials are correct."}}
	}

	checks := []check{{Name: service + " version", Result: checkPassed, Detail: status.Version}}
	if status.Version != s.Version {
		checks[0] = check{
			service + " version", checkWarning, status.Version + ", ebctl has " + s.Version,
			"Use ebctl from the same release: other releases may lack some fields and commands.",
		}
	}

	for _, system := range status.Systems {
		checks = append(checks, systemCheck(system, s.Clock.Now()))
	}

	return checks
}

// systemCheck returns a check that fails if the replica's last call to the upstream system failed.
func systemCheck(system operatorapi.System, now time.Time) check {
	one := check{Name: "system " + system.Name, Result: checkPassed, Detail: explain.Explanation{At: now, System: system}.SystemText()}

	if system.Failures > 0 {
		one.Result, one.Remedy = checkFailed, "Check that "+system.Name+" is running and that the service can reach it."
	}

	return one
}

// clocks returns a check that fails if the broker's clock and the local one differ by more than maxSkew.
func clocks(served, local time.Time) check {
	if served.IsZero() {
		return check{"clocks", checkWarning, "the broker's response has no date", "Check the proxy in front of the broker."}
	}

	skew := served.Sub(local).Abs()
	if skew > maxSkew {
		return check{"clocks", checkFailed, "the clocks differ by " + output.Duration(skew), "Synchronize the clocks with NTP."}
	}

	return check{Name: "clocks", Result: checkPassed}
}

// roles returns a check for each API that requires a separate role. A missing role is only a warning, because the user might not
// need it.
func roles(ctx context.Context, client *brokerclient.Client) []check {
	apis := []struct {
		role, purpose string
		call          func() error
	}{
		{"viewer", "lists and explanations", func() error {
			_, err := client.ListRuntimes(ctx, operatorapi.ListRuntimesParams{PageSize: 1})

			return err
		}},
		{"osb", "orders and bindings", func() error {
			_, err := client.Catalog(ctx, "")

			return err
		}},
		{"admin", "the audit log and admin kubeconfigs", func() error {
			_, err := client.ListAudit(ctx, operatorapi.ListAuditParams{PageSize: 1})

			return err
		}},
	}

	checks := make([]check, 0, len(apis))

	for _, api := range apis {
		one := check{Name: "role " + api.role, Result: checkPassed, Detail: "for " + api.purpose}

		switch err := api.call(); {
		case isPlatformRefusal(err):
			one.Result, one.Detail = checkWarning, err.Error()
			one.Remedy = "Set --platform-region in commands that have it, or correct APP_PLATFORMS_FILE: see docs/operator/platforms.md."
		case answered(http.StatusForbidden)(err):
			one.Result, one.Remedy = checkWarning, "Required only "+one.Detail+": see docs/operator/access.md."
			one.Detail = "missing"
		case err != nil:
			one.Result, one.Detail, one.Remedy = checkFailed, err.Error(), "Check the broker's log, and its /readyz for the state of the database."
		}

		checks = append(checks, one)
	}

	return checks
}

// catalogCheck reports catalog files that the broker has rejected.
func catalogCheck(catalog operatorapi.Catalog) check {
	if problem := catalog.Problem; problem.Message != "" {
		return check{
			"catalog", checkFailed, fmt.Sprintf("%s (since %s)", problem.Message, output.Time(problem.Since)),
			"Correct the catalog files; the broker reloads them.",
		}
	}

	return check{Name: "catalog", Result: checkPassed, Detail: fmt.Sprintf("%d plans", len(catalog.Plans))}
}

// stuckOperations returns a check that counts the stuck operations on the first page of operations in progress, and names the
// problem of the newest one. It returns nothing if the user lacks the viewer role, which the check of this role reports.
func (s *session) stuckOperations(ctx context.Context, client *brokerclient.Client) []check {
	list, err := client.ListOperations(ctx, operatorapi.ListOperationsParams{
		State: operatorapi.OperationStateInProgress, PageSize: maxCompletions,
	})

	switch {
	case answered(http.StatusForbidden)(err):
		return nil
	case err != nil:
		return []check{{"operations", checkWarning, err.Error(), "Check the broker's log: the operations could not be listed."}}
	}

	var stuck []operatorapi.Operation

	for _, operation := range list.Data {
		if explain.Stuck(operation, s.Clock.Now()) {
			stuck = append(stuck, operation)
		}
	}

	if len(stuck) == 0 {
		return []check{{Name: "operations", Result: checkPassed, Detail: fmt.Sprintf("%d in progress, none stuck", len(list.Data))}}
	}

	newest, _, err := client.Operation(ctx, stuck[0].ID)
	if err != nil {
		newest = stuck[0]
	}

	return []check{{
		"operations", checkFailed, fmt.Sprintf("%d stuck: %s", len(stuck), explain.Of(newest, s.Clock.Now()).Cause()),
		"See 'ebctl operation list --stuck' and 'ebctl operation explain " + newest.ID + "'.",
	}}
}
