package ebctl

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/environment-broker/environment-broker/bundle/api/v1alpha1"
)

// bundleTimeoutError reports that a wait, for example for the installation of a Bundle, reached its time limit.
type bundleTimeoutError struct {
	name string
	// last is the last known progress.
	last string
}

func (e *bundleTimeoutError) Error() string {
	return fmt.Sprintf("the wait for the BundleDeployment %s timed out: %s", e.name, e.last)
}

// bundleFailedError reports that the Bundle cannot be unpacked or installed.
type bundleFailedError struct {
	name      string
	condition metav1.Condition
}

func (e *bundleFailedError) Error() string {
	return fmt.Sprintf("the BundleDeployment %s failed (%s): %s", e.name, e.condition.Reason, e.condition.Message)
}

// waitForBundle waits until the Bundle of the current template is installed.
func (s *session) waitForBundle(ctx context.Context, client bundleClient, name string, limit time.Duration) error {
	return s.pollBundle(ctx, name, limit, func(ctx context.Context) (string, bool, error) { return client.progress(ctx, name) })
}

// pollBundle calls look until look returns done, and prints the progress to standard error. The wait fails if the limit has
// passed (0 means no limit), if the Bundle has failed, if look returns a usage error, or if the API server responds with 401, 403
// or 404. After any other error, pollBundle calls look again.
func (s *session) pollBundle(ctx context.Context, name string, limit time.Duration, look func(context.Context) (text string, done bool, err error)) error {
	start, shown := s.Clock.Now(), ""

	for {
		progress, done, err := look(ctx)

		switch {
		case ctx.Err() != nil:
			return fmt.Errorf("stopped waiting for the BundleDeployment %s, which continues: %w", name, ctx.Err())
		case is[*bundleFailedError](err), is[*usageError](err), apierrors.IsNotFound(err), apierrors.IsUnauthorized(err), apierrors.IsForbidden(err):
			return err
		case err != nil:
			progress = err.Error() + "; trying again"
		case done:
			return nil
		}

		if progress != shown {
			fmt.Fprintf(s.Err, "%s: %s\n", name, progress)
			shown = progress
		}

		if limit > 0 && s.Clock.Now().Sub(start) >= limit {
			return &bundleTimeoutError{name, progress}
		}

		select {
		case <-ctx.Done():
		case <-s.Clock.After(s.PollInterval):
		}
	}
}

// progress returns the reason why a BundleDeployment is not ready yet, and whether the Bundle of the current template is
// installed. While the provisioner changes from one Bundle to the next, the Installed condition stays true, so progress compares
// the content of the active Bundle with the template. It does not compare the labels with the hash of the template, because other
// provisioners compute the hash differently.
func (c bundleClient) progress(ctx context.Context, name string) (text string, done bool, err error) {
	deployment, err := c.deployment(ctx, name)
	if err != nil {
		return "", false, fmt.Errorf("reading the BundleDeployment %s: %w", name, err)
	}

	status := deployment.Status
	if status.ObservedGeneration != deployment.Generation {
		return "waiting for the provisioner of class " + deployment.Spec.ProvisionerClassName, false, nil
	}

	valid := current(deployment, v1alpha1.TypeHasValidBundle)
	installed := current(deployment, v1alpha1.TypeInstalled)

	for _, condition := range []metav1.Condition{valid, installed} {
		if hasFailed(condition) {
			return "", false, &bundleFailedError{name, condition}
		}
	}

	if installed.Status != metav1.ConditionTrue || status.ActiveBundle == "" {
		if valid.Status == metav1.ConditionTrue && valid.Reason == v1alpha1.ReasonUnpackSuccessful {
			return describe(installed), false, nil
		}

		return describe(valid), false, nil
	}

	active, err := c.bundle(ctx, status.ActiveBundle)
	if err != nil && !apierrors.IsNotFound(err) {
		return "", false, fmt.Errorf("reading the Bundle %s: %w", status.ActiveBundle, err)
	}

	// If the Bundle was not found, active is empty and differs from the template.
	if !made(active, deployment.Spec.Template) {
		return fmt.Sprintf("Bundle %s is installed; %s", status.ActiveBundle, describe(valid)), false, nil
	}

	// With one of these reasons, the condition is true for the active Bundle, but its desired config or content might not be
	// installed.
	switch installed.Reason {
	case v1alpha1.ReasonInstallPending, v1alpha1.ReasonDependencyPending, v1alpha1.ReasonSuspended, v1alpha1.ReasonDryRun:
		return describe(installed), false, nil
	default:
		return "", true, nil
	}
}

// current returns a condition of the BundleDeployment. It returns an Unknown condition if the condition is missing or describes an earlier
// generation. Some provisioners leave ObservedGeneration at 0; their conditions count as current.
func current(deployment v1alpha1.BundleDeployment, kind string) metav1.Condition {
	condition := meta.FindStatusCondition(deployment.Status.Conditions, kind)
	if condition == nil || condition.ObservedGeneration != 0 && condition.ObservedGeneration != deployment.Generation {
		return metav1.Condition{Type: kind, Status: metav1.ConditionUnknown}
	}

	return *condition
}

// hasFailed reports whether a condition has a reason that ends the wait. The provisioner may still try again, for example after a
// conflicting object was removed.
func hasFailed(condition metav1.Condition) bool {
	switch condition.Reason {
	case v1alpha1.ReasonUnpackFailed, v1alpha1.ReasonBundleLoadFailed, v1alpha1.ReasonInstallFailed, v1alpha1.ReasonUpgradeFailed:
		return true
	default:
		return false
	}
}

func describe(condition metav1.Condition) string {
	if condition.Reason == "" {
		return condition.Type + " is unknown"
	}

	return condition.Reason + ": " + condition.Message
}

// made reports whether a Bundle was made from a template.
func made(bundle v1alpha1.Bundle, template v1alpha1.BundleTemplate) bool {
	spec := v1alpha1.BundleSpec{ProvisionerClassName: template.Spec.ProvisionerClassName, Source: template.Spec.Source}

	return equality.Semantic.DeepEqual(bundle.Spec, spec) &&
		contains(bundle.Labels, template.Metadata.Labels) && contains(bundle.Annotations, template.Metadata.Annotations)
}

// contains reports whether the map all has every entry of the map some.
func contains(all, some map[string]string) bool {
	for key, value := range some {
		if found, ok := all[key]; !ok || found != value {
			return false
		}
	}

	return true
}
