package ebctl

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"

	"github.com/environment-broker/environment-broker/bundle/api/v1alpha1"
	"github.com/environment-broker/environment-broker/internal/ebctl/output"
	"github.com/environment-broker/environment-broker/internal/failure"
)

func newBundleSuspendCommand(session *session, cluster *clusterFlags) *cobra.Command {
	return &cobra.Command{
		Use:   "suspend NAME",
		Short: "Stop a BundleDeployment from changing its cluster",
		Args:  arguments("NAME"),
		RunE: session.withBundles(cluster, func(ctx context.Context, client bundleClient, args []string) error {
			return session.suspendBundle(ctx, client, args[0], true, waiting{})
		}),
	}
}

func newBundleResumeCommand(session *session, cluster *clusterFlags) *cobra.Command {
	var waiting waiting

	command := &cobra.Command{
		Use:   "resume NAME",
		Short: "Allow a suspended BundleDeployment to change its cluster again",
		Args:  arguments("NAME"),
		RunE: session.withBundles(cluster, func(ctx context.Context, client bundleClient, args []string) error {
			return session.suspendBundle(ctx, client, args[0], false, waiting)
		}),
	}

	addBundleWait(command, &waiting)

	return command
}

// addBundleWait adds the --wait and --wait-timeout flags to a command that installs a Bundle.
func addBundleWait(command *cobra.Command, waiting *waiting) {
	addWaitFor(command, waiting, "wait until the Bundle is installed")
}

// suspendBundle sets spec.suspend, waits for the installation if --wait is set, and prints the state.
func (s *session) suspendBundle(ctx context.Context, client bundleClient, name string, suspend bool, waiting waiting) error {
	if _, err := client.change(ctx, name, func(deployment *v1alpha1.BundleDeployment) error {
		deployment.Spec.Suspend = suspend

		return nil
	}); err != nil {
		return err
	}

	return s.finishBundle(ctx, client, name, waiting)
}

// finishBundle waits for the installation of a created or changed BundleDeployment if --wait is set, and prints its state.
func (s *session) finishBundle(ctx context.Context, client bundleClient, name string, waiting waiting) error {
	var waitErr error
	if waiting.wanted {
		waitErr = s.waitForBundle(ctx, client, name, waiting.limit)
	}

	if ctx.Err() != nil {
		return waitErr
	}

	state, err := client.state(ctx, name)
	if err != nil {
		return cmp.Or(waitErr, err)
	}

	return cmp.Or(s.printBundleState(state), waitErr)
}

// change reads a BundleDeployment, changes it with a merge patch, and returns the stored object. It keeps fields that ebctl does
// not know. If another client has changed the object in the meantime, it reads and edits the object again.
func (c bundleClient) change(ctx context.Context, name string, edit func(*v1alpha1.BundleDeployment) error) (v1alpha1.BundleDeployment, error) {
	var changed v1alpha1.BundleDeployment

	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		former, err := c.deployment(ctx, name)
		if err != nil {
			return fmt.Errorf("reading the BundleDeployment %s: %w", name, err)
		}

		wanted := former.DeepCopy()
		if err := edit(wanted); err != nil {
			return err
		}

		patch, err := mergePatch(&former, wanted)
		if err != nil || patch == nil {
			changed = former

			return err
		}

		changed = v1alpha1.BundleDeployment{}
		err = c.api.Patch(types.MergePatchType).Resource(deployments).Name(name).Body(patch).Do(ctx).Into(&changed)

		return failure.While(err, "changing the BundleDeployment %s", name)
	})

	return shownDeployment(changed), err
}

// mergePatch returns the JSON merge patch that changes former to wanted, or nil if they are equal. The API server rejects the
// patch if the object has changed since it was read.
func mergePatch(former, wanted *v1alpha1.BundleDeployment) ([]byte, error) {
	before, err := json.Marshal(former)
	if err != nil {
		return nil, fmt.Errorf("encoding a change: %w", err)
	}

	after, err := json.Marshal(wanted)
	if err != nil {
		return nil, fmt.Errorf("encoding a change: %w", err)
	}

	difference, err := jsonpatch.CreateMergePatch(before, after)
	if err != nil {
		return nil, fmt.Errorf("encoding a change: %w", err)
	}

	patch := map[string]any{}
	if err := json.Unmarshal(difference, &patch); err != nil {
		return nil, fmt.Errorf("encoding a change: %w", err)
	}

	if len(patch) == 0 {
		return nil, nil
	}

	patch["metadata"] = map[string]string{"resourceVersion": former.ResourceVersion}

	return json.Marshal(patch)
}

func newBundleDeleteCommand(session *session, cluster *clusterFlags) *cobra.Command {
	var waiting waiting

	command := &cobra.Command{
		Use:   "delete NAME",
		Short: "Delete a BundleDeployment, which removes its objects from the cluster",
		Long: "Delete a BundleDeployment, which removes its objects from the cluster.\n\n" +
			"The objects of a suspended BundleDeployment stay on the cluster.",
		Args: arguments("NAME"),
		RunE: session.withBundles(cluster, func(ctx context.Context, client bundleClient, args []string) error {
			return session.deleteBundle(ctx, client, args[0], waiting)
		}),
	}

	addWaitFor(command, &waiting, "wait until the objects are removed")

	return addYes(session, command)
}

// deletedBundle is the JSON output of 'bundle delete'.
type deletedBundle struct {
	Name string `json:"bundleDeployment"`
	// Gone is true if the command has waited until the BundleDeployment and its objects were removed.
	Gone bool `json:"gone"`
}

// deleteBundle deletes a BundleDeployment after a confirmation, and waits for the removal of its objects if --wait is set.
func (s *session) deleteBundle(ctx context.Context, client bundleClient, name string, waiting waiting) error {
	deployment, err := client.deployment(ctx, name)
	if err != nil {
		return fmt.Errorf("reading the BundleDeployment %s: %w", name, err)
	}

	if err := s.confirm(ctx, "Delete the BundleDeployment %s and its objects?", name); err != nil {
		return err
	}

	if err := client.api.Delete().Resource(deployments).Name(name).Do(ctx).Error(); err != nil {
		return fmt.Errorf("deleting the BundleDeployment %s: %w", name, err)
	}

	text := name + " is being deleted"

	if waiting.wanted {
		if err := s.pollBundle(ctx, name, waiting.limit, func(ctx context.Context) (string, bool, error) {
			found, err := client.deployment(ctx, name)
			if apierrors.IsNotFound(err) || err == nil && found.UID != deployment.UID {
				return "", true, nil
			}

			if installed := current(found, v1alpha1.TypeInstalled); installed.Reason != "" {
				return describe(installed), false, err
			}

			return "waiting until the objects are removed", false, err
		}); err != nil {
			return err
		}

		text = name + " was deleted"
	}

	return s.print(deletedBundle{name, waiting.wanted}, output.WithID{Text: output.Plain(text), ID: name})
}
