package ebctl

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/environment-broker/environment-broker/internal/ebctl/brokerclient"
	"github.com/environment-broker/environment-broker/internal/ebctl/output"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
)

// newAccountEraseCommand returns the command that erases account data. The broker and the Provisioner have separate databases, so
// there is one such command for each service.
func newAccountEraseCommand(session *session) *cobra.Command {
	var dryRun bool

	command := addYes(session, &cobra.Command{
		Use:   "erase GLOBAL_ACCOUNT",
		Short: session.text("Erase the data of an account from the broker's database, after its instances have been deleted"),
		Long: session.text("Erase the data of an account from the broker's database, after its instances have been deleted.\n\n" +
			"The command removes orders, errors and timelines, and the personal data in the audit log. Operations and entries of the audit log remain " +
			"with their times, kinds and states, and the audit log records the erasure. If the command was interrupted, repeat it. It needs " +
			"the admin role."),
		Example: session.text("  ebctl account erase 8cd57dc2-edb2-45e0-af8b-7d881006e516 --dry-run\n" +
			"  ebctl account erase 8cd57dc2-edb2-45e0-af8b-7d881006e516"),
		Args: arguments("GLOBAL_ACCOUNT"),
		RunE: session.withClient(func(ctx context.Context, client *brokerclient.Client, args []string) error {
			stored, err := client.GetAccount(ctx, args[0])
			if err != nil {
				return fmt.Errorf("reading account %s: %w", args[0], err)
			}

			if dryRun {
				return session.print(stored, output.WithID{ID: args[0], Text: storedFields(stored)})
			}

			erased, err := session.erase(ctx, client, stored)
			if err != nil {
				return fmt.Errorf("erasing account %s: %w", args[0], err)
			}

			if err := session.print(erased, output.WithID{ID: args[0], Text: erasedFields(erased)}); err != nil {
				return err
			}

			if !session.provisioner {
				fmt.Fprintf(session.Err, "The Provisioner has a separate database. Run '%s account erase %s'.\n", provisionerCommands, args[0])
			}

			return nil
		}),
	})

	command.Flags().BoolVar(&dryRun, "dry-run", false, "only count the data, and list what prevents the erasure")

	return command
}

// erase asks for confirmation, erases the data of an account, and returns the sum of the results with the ID of the last audit
// entry. It repeats the request until all data is erased, because each request erases a limited number of rows. If instances or
// unfinished operations prevent the erasure, it sends the request without asking, and the service rejects the request.
func (s *session) erase(ctx context.Context, client *brokerclient.Client, stored operatorapi.Account) (operatorapi.Erasure, error) {
	if len(stored.Instances)+len(stored.UnfinishedOperations) == 0 {
		if err := s.confirm(ctx, "Permanently erase %s of account %s?", countsText(stored), stored.AccountID); err != nil {
			return operatorapi.Erasure{}, err
		}
	}

	sum := operatorapi.Erasure{AccountID: stored.AccountID}

	for !sum.Complete {
		erased, err := client.EraseAccount(ctx, stored.AccountID)
		if err != nil {
			return sum, err
		}

		sum.Operations += erased.Operations
		sum.TimelineEntries += erased.TimelineEntries
		sum.AuditEntries += erased.AuditEntries
		sum.Runtimes += erased.Runtimes
		sum.OutsideObjects += erased.OutsideObjects
		sum.Events += erased.Events
		sum.Complete = erased.Complete

		if erased.EntryID != "" {
			sum.EntryID = erased.EntryID
		}
	}

	return sum, nil
}

// countsText returns how many rows of each type would be erased, for the confirmation prompt.
func countsText(stored operatorapi.Account) string {
	return fmt.Sprintf("%d operations, %d timeline entries, %d audit entries, %d deleted runtimes, %d objects in other systems and %d events",
		stored.Operations, stored.TimelineEntries, stored.AuditEntries, stored.Runtimes, stored.OutsideObjects, stored.Events)
}

// storedFields lists the stored data of an account, and the instances and operations that prevent its erasure.
func storedFields(stored operatorapi.Account) output.Fields {
	fields := output.Fields{{Name: "Account", Value: stored.AccountID}}

	for _, instance := range stored.Instances {
		field := output.Field{Name: "Delete first", Value: strings.TrimSpace(instance.Name + " (" + instance.InstanceID + ")")}
		if instance.LeftoverID != "" {
			field = output.Field{Name: "Clean up first", Value: instance.LeftoverID + " of " + instance.InstanceID}
		}

		fields = append(fields, field)
	}

	for _, operation := range stored.UnfinishedOperations {
		fields = append(fields, output.Field{
			Name: "Unfinished", Value: fmt.Sprintf("%s %s of %s", operation.Kind, operation.ID, operation.InstanceID),
		})
	}

	return append(fields, countFields(stored)...)
}

func erasedFields(erased operatorapi.Erasure) output.Fields {
	fields := output.Fields{{Name: "Erased account", Value: erased.AccountID}}
	fields = append(fields, countFields(operatorapi.Account{
		Operations: erased.Operations, TimelineEntries: erased.TimelineEntries, AuditEntries: erased.AuditEntries, Runtimes: erased.Runtimes,
		OutsideObjects: erased.OutsideObjects, Events: erased.Events,
	})...)

	return append(fields, output.Field{Name: "Audit entry", Value: erased.EntryID})
}

func countFields(counts operatorapi.Account) output.Fields {
	return output.Fields{
		{Name: "Operations", Value: strconv.Itoa(counts.Operations)},
		{Name: "Timeline entries", Value: strconv.Itoa(counts.TimelineEntries)},
		{Name: "Audit entries", Value: strconv.Itoa(counts.AuditEntries)},
		{Name: "Deleted runtimes", Value: strconv.Itoa(counts.Runtimes)},
		{Name: "Outside objects", Value: strconv.Itoa(counts.OutsideObjects)},
		{Name: "Events", Value: strconv.Itoa(counts.Events)},
	}
}
