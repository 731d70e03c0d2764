package ebctl

import (
	"context"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/environment-broker/environment-broker/bundle/api/v1alpha1"
	"github.com/environment-broker/environment-broker/internal/ebctl/output"
)

// bundleHistory is the JSON output of 'bundle history'.
type bundleHistory struct {
	Deployment string `json:"bundleDeployment"`
	// Versions are the installed versions, newest first.
	Versions []v1alpha1.Version `json:"versions"`
}

func newBundleHistoryCommand(session *session, cluster *clusterFlags) *cobra.Command {
	return &cobra.Command{
		Use:   "history NAME",
		Short: "List the versions that a BundleDeployment has installed, newest first",
		Args:  arguments("NAME"),
		RunE: session.withBundles(cluster, func(ctx context.Context, client bundleClient, args []string) error {
			deployment, err := client.deployment(ctx, args[0])
			if err != nil {
				return fmt.Errorf("reading the BundleDeployment %s: %w", args[0], err)
			}

			return session.printHistory(deployment)
		}),
	}
}

func (s *session) printHistory(deployment v1alpha1.BundleDeployment) error {
	table := output.Rows{
		Head:        []string{"VERSION", "INSTALLED", "SOURCE", "BUNDLE", "DIGEST"},
		WideColumns: 1, None: "Nothing has been installed yet.", IDs: []string{},
	}
	versions := append([]v1alpha1.Version{}, deployment.Status.History...)

	for _, version := range versions {
		number := strconv.FormatInt(version.Number, 10)
		table.Add(number,
			number, s.age(version.InstalledAt.Time)+" ago", sourceText(version.Template.Spec.Source), version.Bundle, version.Digest)
	}

	return s.print(bundleHistory{deployment.Name, versions}, table)
}

func newBundleRollbackCommand(session *session, cluster *clusterFlags) *cobra.Command {
	var (
		number  int64
		waiting waiting
	)

	command := &cobra.Command{
		Use:   "rollback NAME",
		Short: "Roll back a BundleDeployment to an earlier version",
		Long: "Roll back a BundleDeployment to an earlier version, including its config.\n\n" +
			"Without --to, the command installs the version before the current one. If the current template is not installed, for example because its " +
			"installation failed, the command returns to the installed version. The source of a version is pinned, for example to the digest of the image.",
		Example: "  ebctl bundle rollback my-addon --to 2 --wait",
		Args:    arguments("NAME"),
		RunE: session.withBundles(cluster, func(ctx context.Context, client bundleClient, args []string) error {
			return session.rollbackBundle(ctx, client, args[0], number, waiting)
		}),
	}

	command.Flags().Int64Var(&number, "to", 0, "the number of the version, as in 'ebctl bundle history' (default: the previous one)")
	addBundleWait(command, &waiting)

	return command
}

// rollbackBundle restores the template and the config of an earlier version, waits for the installation if --wait is set, and
// prints the state.
func (s *session) rollbackBundle(ctx context.Context, client bundleClient, name string, number int64, waiting waiting) error {
	var chosen v1alpha1.Version

	if _, err := client.change(ctx, name, func(deployment *v1alpha1.BundleDeployment) (err error) {
		if chosen, err = client.former(ctx, *deployment, number); err != nil {
			return err
		}

		if upload := chosen.Template.Spec.Source.Upload; upload != nil && upload.SHA256 == "" {
			return fmt.Errorf("the content of version %d was uploaded without a digest, so it cannot be restored: install the version with 'ebctl bundle run'", chosen.Number)
		}

		deployment.Spec.Template, deployment.Spec.Config.Raw = chosen.Template, nil
		if chosen.Config != nil {
			deployment.Spec.Config = *chosen.Config.DeepCopy()
		}

		return nil
	}); err != nil {
		return err
	}

	fmt.Fprintf(s.Err, "%s: rolling back to version %d\n", name, chosen.Number)

	if err := s.finishBundle(ctx, client, name, waiting); err != nil || !waiting.wanted {
		return err
	}

	deployment, err := client.deployment(ctx, name)
	if err != nil {
		return fmt.Errorf("reading the BundleDeployment %s: %w", name, err)
	}

	if history := deployment.Status.History; len(history) > 0 && chosen.Digest != "" && history[0].Digest != chosen.Digest {
		return fmt.Errorf("the source of version %d has changed: its content had the digest %s, and now has %s", chosen.Number, chosen.Digest, history[0].Digest)
	}

	return nil
}

// former returns the version with the given number. If number is 0, it returns the default version for a rollback: the previous
// version if the current template is installed, and the installed version otherwise.
func (c bundleClient) former(ctx context.Context, deployment v1alpha1.BundleDeployment, number int64) (v1alpha1.Version, error) {
	history := deployment.Status.History

	if number != 0 {
		for _, version := range history {
			if version.Number == number {
				return version, nil
			}
		}

		return v1alpha1.Version{}, usage("the history of %s has no version %d: see 'ebctl bundle history %s'", deployment.Name, number, deployment.Name)
	}

	at := 0

	installed, err := c.installed(ctx, deployment)
	if err != nil {
		return v1alpha1.Version{}, err
	}

	if installed {
		at = 1
	}

	if len(history) <= at {
		return v1alpha1.Version{}, fmt.Errorf("the BundleDeployment %s has no earlier version", deployment.Name)
	}

	return history[at], nil
}

// installed reports whether the active Bundle was made from the current template and was installed with the current config.
func (c bundleClient) installed(ctx context.Context, deployment v1alpha1.BundleDeployment) (bool, error) {
	if deployment.Status.ActiveBundle == "" || deployment.Status.ObservedGeneration != deployment.Generation {
		return false, nil
	}

	active, err := c.bundle(ctx, deployment.Status.ActiveBundle)
	if err != nil {
		return false, fmt.Errorf("reading the Bundle %s: %w", deployment.Status.ActiveBundle, err)
	}

	config := ""
	if deployment.Status.ActiveConfig != nil {
		config = string(deployment.Status.ActiveConfig.Raw)
	}

	return made(active, deployment.Spec.Template) && config == string(deployment.Spec.Config.Raw), nil
}
