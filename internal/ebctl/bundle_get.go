package ebctl

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/environment-broker/environment-broker/bundle/api/v1alpha1"
	"github.com/environment-broker/environment-broker/internal/ebctl/output"
)

// bundleState is the JSON output of 'bundle get', and of the commands that create or change a BundleDeployment.
type bundleState struct {
	Deployment v1alpha1.BundleDeployment `json:"bundleDeployment"`
	// Bundles are the Bundles of the BundleDeployment, newest first.
	Bundles []v1alpha1.Bundle `json:"bundles"`
}

// bundleList is the JSON output of 'bundle list'. It also contains Bundles without a BundleDeployment.
type bundleList struct {
	Deployments []v1alpha1.BundleDeployment `json:"bundleDeployments"`
	Bundles     []v1alpha1.Bundle           `json:"bundles"`
}

func newBundleGetCommand(session *session, cluster *clusterFlags) *cobra.Command {
	return &cobra.Command{
		Use:   "get NAME",
		Short: "Show a BundleDeployment with its Bundles, their phases, and all conditions",
		Args:  arguments("NAME"),
		RunE: session.withBundles(cluster, func(ctx context.Context, client bundleClient, args []string) error {
			state, err := client.state(ctx, args[0])
			if err != nil {
				return err
			}

			return session.printBundleState(state)
		}),
	}
}

func newBundleListCommand(session *session, cluster *clusterFlags) *cobra.Command {
	return &cobra.Command{
		Use:   listCommand,
		Short: "List the BundleDeployments with the phases of their newest Bundles",
		Args:  arguments(),
		RunE: session.withBundles(cluster, func(ctx context.Context, client bundleClient, _ []string) error {
			found, err := client.deployments(ctx)
			if err != nil {
				return fmt.Errorf("listing the BundleDeployments: %w", err)
			}

			made, err := client.bundles(ctx, "")
			if err != nil {
				return fmt.Errorf("listing the Bundles: %w", err)
			}

			return session.print(bundleList{found, made}, session.bundleRows(found, made))
		}),
	}
}

// state reads a BundleDeployment and its Bundles.
func (c bundleClient) state(ctx context.Context, name string) (bundleState, error) {
	deployment, err := c.deployment(ctx, name)
	if err != nil {
		return bundleState{}, fmt.Errorf("reading the BundleDeployment %s: %w", name, err)
	}

	owner := labels.Set{v1alpha1.LabelOwnerKind: v1alpha1.KindBundleDeployment, v1alpha1.LabelOwnerName: name}

	found, err := c.bundles(ctx, owner.String())
	if err != nil {
		return bundleState{}, fmt.Errorf("listing the Bundles of %s: %w", name, err)
	}

	return bundleState{deployment, ownedBy(deployment, found)}, nil
}

// ownedBy returns the Bundles that a BundleDeployment owns, newest first.
func ownedBy(deployment v1alpha1.BundleDeployment, all []v1alpha1.Bundle) []v1alpha1.Bundle {
	owned := []v1alpha1.Bundle{}

	for _, bundle := range all {
		if metav1.IsControlledBy(&bundle, &deployment) {
			owned = append(owned, bundle)
		}
	}

	slices.SortStableFunc(owned, func(a, b v1alpha1.Bundle) int {
		return cmp.Or(b.CreationTimestamp.Compare(a.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})

	return owned
}

// bundleRows returns the table of 'bundle list'.
func (s *session) bundleRows(found []v1alpha1.BundleDeployment, made []v1alpha1.Bundle) output.Rows {
	table := output.Rows{
		Head:        []string{"DEPLOYMENT", "SOURCE", "PHASE", "ACTIVE BUNDLE", "INSTALLED", "HEALTHY", "AGE", "CLASS", "MESSAGE"},
		WideColumns: 2, None: "No BundleDeployments found.", IDs: []string{},
	}

	for _, deployment := range found {
		phase := ""
		if owned := ownedBy(deployment, made); len(owned) > 0 {
			phase = string(owned[0].Status.Phase)
		}

		installed := current(deployment, v1alpha1.TypeInstalled)

		table.Add(deployment.Name,
			deployment.Name, string(deployment.Spec.Template.Spec.Source.Type), phase, deployment.Status.ActiveBundle,
			installed.Reason, string(current(deployment, v1alpha1.TypeHealthy).Status), s.age(deployment.CreationTimestamp.Time),
			deployment.Spec.ProvisionerClassName, installed.Message)
	}

	return table
}

func (s *session) printBundleState(state bundleState) error {
	deployment := state.Deployment

	fields := output.Fields{
		{Name: "BundleDeployment", Value: deployment.Name},
		{Name: "Class", Value: deployment.Spec.ProvisionerClassName},
		{Name: "Source", Value: sourceText(deployment.Spec.Template.Spec.Source)},
		{Name: "Active Bundle", Value: deployment.Status.ActiveBundle},
		{Name: "Age", Value: s.age(deployment.CreationTimestamp.Time)},
	}

	if target := deployment.Spec.Target; target != nil {
		fields = append(fields, output.Field{Name: "Target", Value: "the kubeconfig in the Secret " + target.KubeconfigSecretRef.Name})
	}

	conditions := output.Rows{Head: []string{"CONDITION", "STATUS", "REASON", "MESSAGE"}, None: "No provisioner has processed the BundleDeployment yet."}
	for _, condition := range deployment.Status.Conditions {
		conditions.Rows = append(conditions.Rows, []string{condition.Type, string(condition.Status), condition.Reason, condition.Message})
	}

	made := output.Rows{Head: []string{"BUNDLE", "PHASE", "AGE", "MESSAGE"}, None: "There is no Bundle yet."}

	for _, bundle := range state.Bundles {
		message := ""
		if unpacked := meta.FindStatusCondition(bundle.Status.Conditions, v1alpha1.TypeUnpacked); unpacked != nil {
			message = unpacked.Message
		}

		made.Rows = append(made.Rows, []string{bundle.Name, string(bundle.Status.Phase), s.age(bundle.CreationTimestamp.Time), message})
	}

	return s.print(state, output.WithID{Text: paragraphs{fields, conditions, made}, ID: deployment.Name})
}

// sourceText describes a source in one line.
func sourceText(source v1alpha1.BundleSource) string {
	switch {
	case source.Image != nil:
		return "image " + source.Image.Ref
	case source.Git != nil:
		return "git " + source.Git.Repository + " " + cmp.Or(source.Git.Ref.Commit, source.Git.Ref.Tag, source.Git.Ref.Branch)
	case source.HTTP != nil:
		return "http " + source.HTTP.URL
	default:
		return string(source.Type)
	}
}

// paragraphs prints several results, separated by empty lines.
type paragraphs []output.Text

// WriteText implements output.Text.
func (p paragraphs) WriteText(w io.Writer) error {
	for index, text := range p {
		if index > 0 {
			if _, err := io.WriteString(w, "\n"); err != nil {
				return fmt.Errorf("printing the result: %w", err)
			}
		}

		if err := text.WriteText(w); err != nil {
			return fmt.Errorf("printing the result: %w", err)
		}
	}

	return nil
}
