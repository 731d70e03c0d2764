package deployments

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/dustin/go-humanize/english"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"

	"github.com/environment-broker/environment-broker/bundle/api/v1alpha1"
	"github.com/environment-broker/environment-broker/internal/clients/applier"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/secret"
)

// install brings the target cluster one step closer to the template, and returns the time until the next reconciliation.
func (p *pass) install(ctx context.Context) (time.Duration, error) {
	found, err := p.findBundles(ctx)
	if err != nil {
		p.set(v1alpha1.TypeHasValidBundle, metav1.ConditionUnknown, v1alpha1.ReasonReconcileFailed, err.Error())
		p.setPending("the Bundles cannot be read")

		return 0, err
	}

	if err := p.bound(ctx, found, maxInactive); err != nil {
		return 0, err
	}

	usable := p.judge(found.desired)
	p.replaced = usable && p.isReplaced(found.desired)

	if p.deployment.Spec.Suspend {
		p.watches.Unfollow(p.deployment.Name)
		p.memory.bundle = "" // the objects are compared when the suspension ends
		p.memory.pivot = ""
		p.suspended()

		return 0, nil
	}

	if p.cluster, err = p.clusters.of(ctx, p.deployment); err != nil {
		p.memory.pivot = ""
		p.setUnknown(v1alpha1.ReasonErrorGettingClient, err.Error())

		return spread(p.UnreachableInterval), nil
	}

	// While the cluster is unreachable, test the connection first, so that the content is not read each time.
	if p.memory.away {
		if err := p.cluster.Reach(ctx); applier.Unreachable(err) {
			return p.interrupted(err)
		}
	}

	p.memory.away, p.memory.held = false, false

	if !usable {
		p.setPending("waiting for Bundle " + found.desired.Name)

		return p.keep(ctx, found)
	}

	return p.installBundle(ctx, found)
}

// suspended sets the conditions of a suspended BundleDeployment. It neither reads nor changes the target cluster.
func (p *pass) suspended() {
	p.setInstalled(v1alpha1.ReasonSuspended, "suspended: the cluster is not changed until spec.suspend is false")

	if p.status.ActiveBundle != "" {
		p.set(v1alpha1.TypeHealthy, metav1.ConditionUnknown, v1alpha1.ReasonSuspended, "suspended: the objects are not watched until spec.suspend is false")
	}
}

// setPending sets the Installed condition while the desired Bundle cannot be installed yet.
func (p *pass) setPending(message string) {
	if p.status.ActiveBundle == "" {
		p.setNotInstalled(v1alpha1.ReasonInstallPending, message)

		return
	}

	p.setInstalled(v1alpha1.ReasonInstallPending, fmt.Sprintf("Bundle %s stays installed: %s", p.status.ActiveBundle, message))
}

// installBundle installs the desired Bundle, unless dependencies, an earlier failure or a dry run prevent it.
func (p *pass) installBundle(ctx context.Context, found *bundles) (time.Duration, error) {
	name := found.desired.Name

	if p.deployment.Spec.DryRun {
		p.memory.pivot = ""

		return p.dryRun(ctx, found)
	}

	if !p.isActive(name) {
		if waiting := p.dependencies(ctx); waiting != "" {
			p.setPending(waiting)
			p.setReason(v1alpha1.ReasonDependencyPending)

			return p.keep(ctx, found)
		}
	}

	if !p.mayRetry(installation(name, p.config())) {
		return p.stay(ctx, found)
	}

	return p.pivot(ctx, found)
}

// setReason replaces the reason of the Installed condition.
func (p *pass) setReason(reason string) {
	for i := range p.status.Conditions {
		if p.status.Conditions[i].Type == v1alpha1.TypeInstalled {
			p.status.Conditions[i].Reason = reason
		}
	}
}

// pivot applies the desired Bundle. If the Bundle is already installed, pivot applies it again to repair objects that somebody has
// changed.
func (p *pass) pivot(ctx context.Context, found *bundles) (time.Duration, error) {
	bundle := found.desired
	if p.isFresh(bundle.Name, p.config()) {
		p.set(v1alpha1.TypeInstalled, metav1.ConditionTrue, v1alpha1.ReasonInstallationSucceeded, p.memory.message)

		after, err := p.health(ctx)
		// The previous Bundle still exists if the reconciliation that installed this one could not store the status.
		return after, errors.Join(err, p.bound(ctx, found, 0))
	}

	if this := installation(bundle.Name, p.config()); p.memory.pivot != this {
		p.memory.pivot, p.memory.began = this, p.now()
	}

	content, err := p.content(ctx, bundle, p.config())
	if applier.Unreachable(err) {
		return p.interrupted(err)
	}

	p.compareAgain()

	if err != nil {
		p.set(v1alpha1.TypeHasValidBundle, metav1.ConditionFalse, v1alpha1.ReasonBundleLoadFailed,
			fmt.Sprintf("the content of Bundle %s cannot be read: %v", bundle.Name, err))
		p.setPending("the content of Bundle " + bundle.Name + " cannot be read")

		after, failed := p.keep(ctx, found)

		return min(after, p.UnreachableInterval), failed
	}

	if !p.isActive(bundle.Name) {
		content.CheckDefinition = p.checkDefinition
	}

	progress, err := p.applier.Apply(ctx, p.cluster, p.owner, content)
	if err == nil && !progress.Done && p.now().Sub(p.memory.began) > pivotTimeout {
		err = failure.New(failure.Permanent, "not finished after %s: %s", pivotTimeout, progress.Message)
	}

	switch {
	case failure.Is(err, failure.Permanent):
		return p.fail(ctx, found, err)
	case err != nil:
		return p.interrupted(err)
	case !progress.Done:
		p.setPending(progress.Message)

		return waitInterval, nil
	}

	p.follow(progress)

	return p.installed(ctx, found, progress.Message)
}

// follow starts to watch the objects that were applied.
func (p *pass) follow(applied applier.Progress) {
	p.applied = applied
	p.watches.Follow(p.cluster, p.deployment.Name, applied.Objects)
}

// interrupted sets the conditions after an error that may be temporary. If the cluster is unreachable, it returns the time until the
// next attempt instead of an error.
func (p *pass) interrupted(err error) (time.Duration, error) {
	if applier.Unreachable(err) {
		p.memory.away, p.memory.pivot = true, ""
		p.setFailed(v1alpha1.ReasonErrorGettingClient, err)

		return spread(p.UnreachableInterval), nil
	}

	p.setPending(failure.Of(err).ForOperators())

	return 0, err
}

// installed records that the desired Bundle is installed. It stores the status before it deletes the previous Bundle.
func (p *pass) installed(ctx context.Context, found *bundles, message string) (time.Duration, error) {
	name := found.desired.Name
	if !p.isActive(name) {
		p.pivots.WithLabelValues(resultInstalled).Inc()
		p.Events.Eventf(p.deployment, found.desired, "Normal", v1alpha1.ReasonInstallationSucceeded, "Install", "Bundle %s is installed", name)
	}

	p.status.ActiveBundle, p.status.ActiveConfig = name, nil
	if len(p.config()) > 0 {
		p.status.ActiveConfig = p.deployment.Spec.Config.DeepCopy()
	}

	p.status.History = record(p.status.History, version(found.desired, p.status.ActiveConfig, p.now()))

	p.set(v1alpha1.TypeInstalled, metav1.ConditionTrue, v1alpha1.ReasonInstallationSucceeded, message)
	p.setFailing(false)
	*p.memory = memory{
		uid: p.memory.uid, needs: p.memory.needs, comparisons: p.memory.comparisons, bundle: installation(name, p.config()), place: p.place(),
		cluster: p.cluster, checked: p.now(), message: message, masked: p.memory.masked,
	}

	after, err := p.health(ctx)
	if err := errors.Join(err, p.write(ctx)); err != nil {
		return 0, err
	}

	return after, p.bound(ctx, found, 0)
}

// fail records that the desired Bundle cannot be installed, and applies the objects of the active Bundle again.
func (p *pass) fail(ctx context.Context, found *bundles, err error) (time.Duration, error) {
	if this := installation(found.desired.Name, p.config()); p.memory.failed != this {
		p.memory.failed, p.memory.failures = this, 0
	}

	problem := failure.Of(err).ForOperators()
	if p.memory.problem != problem || p.memory.failures == 0 {
		p.Events.Eventf(p.deployment, found.desired, "Warning", p.failureReason(), "Install", "%s", note(problem))
	}

	p.memory.problem, p.memory.terminal, p.memory.failedAt = problem, p.unsafe.Load(), p.deployment.Generation
	p.memory.pivot = ""
	p.memory.retry = p.now().Add(min(firstRetry<<min(p.memory.failures, 10), maxRetry)) //nolint:mnd // far beyond maxRetry
	p.memory.failures++
	p.memory.bundle = "" // the cluster may contain objects of both Bundles
	p.setFailing(true)
	p.pivots.WithLabelValues(resultFailed).Inc()

	return p.stay(ctx, found)
}

func (p *pass) failureReason() string {
	if p.status.ActiveBundle == "" {
		return v1alpha1.ReasonInstallFailed
	}

	return v1alpha1.ReasonUpgradeFailed
}

// stay keeps the active Bundle installed until the next attempt to install the desired one is due.
func (p *pass) stay(ctx context.Context, found *bundles) (time.Duration, error) {
	problem := fmt.Sprintf("Bundle %s cannot be installed: %s", found.desired.Name, p.memory.problem)

	retry := p.memory.retry.Sub(p.now())
	if p.memory.terminal {
		retry = spread(p.ResyncInterval)
	}

	switch {
	case p.status.ActiveBundle == "":
		p.setNotInstalled(v1alpha1.ReasonInstallFailed, problem)

		return retry, nil
	case p.replaced || p.isActive(found.desired.Name):
		// The Bundle was installed successfully before, but its objects cannot be repaired now, or its old content is gone.
		p.set(v1alpha1.TypeInstalled, metav1.ConditionFalse, v1alpha1.ReasonUpgradeFailed, problem)

		_, err := p.health(ctx)

		return retry, err
	}

	former := ""
	if p.status.ActiveBundle == found.desired.Name {
		former = " with its previous config"
	}

	p.setInstalled(v1alpha1.ReasonUpgradeFailed, problem+"; Bundle "+p.status.ActiveBundle+" stays installed"+former)
	after, err := p.keep(ctx, found)

	return min(after, max(retry, time.Second)), err
}

// keep repairs the objects of the active Bundle while the desired one is not installed. The caller must have set the Installed
// condition.
func (p *pass) keep(ctx context.Context, found *bundles) (time.Duration, error) {
	switch {
	case p.status.ActiveBundle == "":
		return spread(p.HealthInterval), nil
	case found.active == nil || !isUnpacked(found.active) || p.replaced || p.isFresh(p.status.ActiveBundle, p.activeConfig()):
		return p.health(ctx)
	}

	p.compareAgain()

	content, err := p.content(ctx, found.active, p.activeConfig())
	if err != nil {
		return p.health(ctx)
	}

	progress, err := p.applier.Apply(ctx, p.cluster, p.owner, content)

	switch {
	case failure.Is(err, failure.Permanent):
		p.set(v1alpha1.TypeInstalled, metav1.ConditionFalse, v1alpha1.ReasonUpgradeFailed, fmt.Sprintf(
			"Bundle %s cannot be restored: %s", p.status.ActiveBundle, failure.Of(err).ForOperators()))
	case err != nil:
		return p.interrupted(err)
	case progress.Done:
		p.follow(progress)
		p.memory.bundle = installation(p.status.ActiveBundle, p.activeConfig())
		p.memory.place, p.memory.cluster, p.memory.checked = p.place(), p.cluster, p.now()
	default:
		return waitInterval, nil
	}

	return p.health(ctx)
}

// dryRun reports what the desired Bundle would change.
func (p *pass) dryRun(ctx context.Context, found *bundles) (time.Duration, error) {
	p.release = cmp.Or(p.deployment.Spec.DryRunOf, p.release)

	content, err := p.content(ctx, found.desired, p.config())
	if applier.Unreachable(err) {
		return p.interrupted(err)
	}

	if err != nil {
		p.set(v1alpha1.TypeHasValidBundle, metav1.ConditionFalse, v1alpha1.ReasonBundleLoadFailed, err.Error())
		p.setInstalled(v1alpha1.ReasonDryRun, "the content of Bundle "+found.desired.Name+" cannot be read")

		after, err := p.healthInDryRun(ctx)

		return min(after, p.UnreachableInterval), err
	}

	content.CheckDefinition = p.checkDefinition
	differences, err := p.applier.Compare(ctx, p.cluster, applier.BundleDeployment(p.release), content)

	switch {
	case applier.Unreachable(err):
		return p.interrupted(err)
	case err != nil:
		p.setInstalled(v1alpha1.ReasonDryRun, "Bundle "+found.desired.Name+" cannot be installed: "+failure.Of(err).ForOperators())

		after, err := p.healthInDryRun(ctx)

		return min(after, spread(p.HealthInterval)), err
	}

	p.status.Comparison = comparison(found.desired.Name, differences, p.memory.masked[installation(found.desired.Name, p.config())])

	lines := []string{fmt.Sprintf("Bundle %s would change %s", found.desired.Name, english.Plural(len(differences), "object", ""))}
	for _, difference := range differences {
		lines = append(lines, difference.Action+" "+difference.Object)
	}

	p.setInstalled(v1alpha1.ReasonDryRun, strings.Join(lines, "\n"))

	return p.healthInDryRun(ctx)
}

// healthInDryRun sets the Healthy condition in a dry run, and returns the time until the next reconciliation.
func (p *pass) healthInDryRun(ctx context.Context) (time.Duration, error) {
	if p.status.ActiveBundle == "" {
		p.set(v1alpha1.TypeHealthy, metav1.ConditionFalse, v1alpha1.ReasonInstallationStatusFalse, "a dry run does not install anything")

		return spread(p.HealthInterval), nil
	}

	return p.health(ctx)
}

// content returns the content of a Bundle. All Bundles of a BundleDeployment have the same part name, so that the applier can pass
// objects from one Bundle to the next.
func (p *pass) content(ctx context.Context, bundle *v1alpha1.Bundle, config []byte) (applier.Content, error) {
	namespace := cmp.Or(p.deployment.Spec.InstallNamespace, defaultNamespace)

	loaded, err := p.Content.Load(ctx, Release{
		Name: p.release, Namespace: namespace, Bundle: bundle, Config: config, Version: p.cluster.Version,
	})
	if err != nil {
		return applier.Content{}, err
	}

	p.memory.mask(installation(bundle.Name, config), installation(p.status.ActiveBundle, p.activeConfig()), loaded.Masked)

	return applier.Content{
		Parts: []applier.Part{{
			Name: "bundle", Namespace: namespace, Source: source{bundle.Name, namespace, loaded.Objects},
			Mask: func(text string) string { return secret.MaskIn(text, loaded.Masked...) },
		}},
		Installed:     fmt.Sprintf("Bundle %s is installed: %s", bundle.Name, english.Plural(len(loaded.Objects), "object", "")),
		SkipUnchanged: true,
	}, nil
}

// source provides the objects of a Bundle. Objects that do not specify a namespace are installed in the given one.
type source struct {
	bundle, namespace string
	objects           []*unstructured.Unstructured
}

// Digest implements applier.Source.
func (s source) Digest(context.Context) (string, error) {
	sum := sha256.New()

	for _, object := range s.objects {
		text, err := json.Marshal(object.Object)
		if err != nil {
			return "", fmt.Errorf("computing the digest of Bundle %s: %w", s.bundle, err)
		}

		_, _ = sum.Write(text)
	}

	return s.bundle + "/" + s.namespace + "/" + hex.EncodeToString(sum.Sum(nil)), nil
}

// Objects implements applier.Source.
func (s source) Objects(context.Context) ([]*unstructured.Unstructured, error) {
	copies := make([]*unstructured.Unstructured, 0, len(s.objects))
	for _, object := range s.objects {
		copies = append(copies, object.DeepCopy())
	}

	return copies, nil
}
