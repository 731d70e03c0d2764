package ebctl

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/environment-broker/environment-broker/internal/ebctl/brokerclient"
	"github.com/environment-broker/environment-broker/internal/ebctl/output"
	"github.com/environment-broker/environment-broker/internal/objectdiff"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
)

func newAdoptShootCommand(session *session) *cobra.Command {
	var wanted operatorapi.ShootAdoption

	command := &cobra.Command{
		Use:   "shoot NAME",
		Short: "Turn a Shoot of the Gardener project into an instance",
		Long: "Turn a Shoot of the Gardener project into an instance.\n\n" +
			"The Shoot keeps its spec, except that a CredentialsBinding replaces a SecretBinding. The Shoot also gets labels and annotations with its owner. The command first does a dry run and " +
			"shows what the first update of the instance would change, in the Shoot and in the order at the Provisioner. It then asks for " +
			"confirmation, and fails if the Shoot has changed in the meantime. With --dry-run, it ends after the dry run. The command needs the admin role.",
		Example: "  ebctl adopt shoot my-shoot --account 8cd57dc2-edb2-45e0-af8b-7d881006e516 --dry-run\n" +
			"  ebctl adopt shoot my-shoot --account 8cd57dc2-edb2-45e0-af8b-7d881006e516 --plan aws --administrator anna@example.com",
		Args: arguments("NAME"),
		RunE: session.withClient(func(ctx context.Context, client *brokerclient.Client, args []string) error {
			if wanted.Account == "" {
				return usage("--account is missing")
			}

			return session.adoptShoot(ctx, client, args[0], wanted)
		}),
	}

	flags := command.Flags()
	flags.StringVar(&wanted.Account, "account", "", "the global account of the tenant (required)")
	flags.StringVar(&wanted.Subaccount, "subaccount", "", "the subaccount of the tenant")
	flags.StringVar(&wanted.Plan, "plan", "", "the name or ID of the plan; the default is the only plan that covers the provider and the region")
	flags.StringVar(&wanted.InstanceID, "id", "", "the ID of the instance; the default is derived from the name of the Shoot")
	flags.StringVar(&wanted.Name, "name", "", "the display name; the default is the name of the Shoot")
	flags.StringVar(&wanted.User, "user", "", "the user who owns the instance")
	flags.StringArrayVar(&wanted.Administrators, "administrator", nil, "a user who becomes an administrator of the cluster; can be "+
		"repeated; the default is --user")
	flags.StringVar(&wanted.Platform, "platform", "", "the platform that owns the instance")
	flags.StringVar(&wanted.PlatformRegion, "platform-region", "", "the region of the platform; the default is the region of the broker")
	flags.StringVar(&wanted.CredentialsBinding, "credentials-binding", "", "the CredentialsBinding that replaces a SecretBinding; the default is the one with the same name")
	flags.BoolVar(&wanted.DryRun, "dry-run", false, "only check and show what would change")

	return addYes(session, command)
}

// adoptShoot does a dry run and, once the user has confirmed, turns the Shoot into an instance.
func (s *session) adoptShoot(ctx context.Context, client *brokerclient.Client, name string, wanted operatorapi.ShootAdoption) error {
	only := wanted.DryRun
	wanted.DryRun = true

	found, err := client.AdoptShoot(ctx, name, wanted)
	if err != nil {
		return fmt.Errorf("adopting the Shoot %q: %w", name, err)
	}

	if only || found.Earlier {
		return s.print(found, adoptedText{found})
	}

	if s.asks() {
		if err := (adoptedText{found}).WriteText(s.Err); err != nil {
			return err
		}
	}

	if err := s.confirm(ctx, "Turn the Shoot %s into instance %s of account %s?", name, found.InstanceID, wanted.Account); err != nil {
		return err
	}

	wanted.DryRun, wanted.Generation = false, found.Generation

	if found, err = client.AdoptShoot(ctx, name, wanted); err != nil {
		return fmt.Errorf("adopting the Shoot %q: %w", name, err)
	}

	return s.print(found, adoptedText{found})
}

// adoptedText prints an adopted Shoot, or the result of a dry run, for people.
type adoptedText struct{ operatorapi.AdoptedShoot }

// Names implements output.Named.
func (a adoptedText) Names() []string { return []string{a.InstanceID} }

// WriteText implements output.Text.
func (a adoptedText) WriteText(w io.Writer) error {
	title := "Adopted as"

	switch {
	case a.Earlier:
		title = "Already adopted as"
	case a.DryRun:
		title = "Dry run of"
	}

	if err := (output.Fields{
		{Name: title, Value: a.InstanceID},
		{Name: "Shoot", Value: a.ShootName},
		{Name: "Runtime", Value: a.RuntimeID},
		{Name: "Plan", Value: a.Plan},
		{Name: "Region", Value: strings.TrimSpace(a.Provider + " " + a.Region)},
	}).WriteText(w); err != nil {
		return err
	}

	for _, part := range []struct {
		title string
		lines []string
	}{
		{"Changes in the Shoot by the adoption and the first update", changeLines(a.ShootChanges)},
		{"Changes in the order by the first update", changeLines(a.OrderChanges)},
		{"Fields that updates keep, but that have other values in a new cluster after a suspension", a.NotInOrder},
	} {
		if len(part.lines) == 0 {
			continue
		}

		if _, err := fmt.Fprintf(w, "\n%s (%d):\n", part.title, len(part.lines)); err != nil {
			return fmt.Errorf("printing the result: %w", err)
		}

		for _, line := range part.lines {
			if _, err := fmt.Fprintln(w, "  "+output.Line(line)); err != nil {
				return fmt.Errorf("printing the result: %w", err)
			}
		}
	}

	return nil
}

func changeLines(changes []objectdiff.Change) []string {
	var lines []string
	for _, each := range changes {
		lines = append(lines, each.String())
	}

	return lines
}
