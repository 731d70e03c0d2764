package console

import (
	"cmp"
	"context"
	"net/http"
	"net/url"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/environment-broker/environment-broker/broker/console/views"
	"github.com/environment-broker/environment-broker/bundle/api/v1alpha1"
	"github.com/environment-broker/environment-broker/internal/clients/bundleclient"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/httpserver"
	"github.com/environment-broker/environment-broker/internal/operatorapi/operatorserver"
)

const (
	bundlesPath = "/console/bundles"
	// bundlesLength is the number of BundleDeployments on a page.
	bundlesLength = 50
)

// Bundles reads the objects of the bundle provisioner; *bundleclient.Client implements it.
type Bundles interface {
	Deployments(ctx context.Context, query bundleclient.Query) (bundleclient.Page, error)
	Deployment(ctx context.Context, name string) (v1alpha1.BundleDeployment, []v1alpha1.Bundle, error)
}

// bundles shows a page of BundleDeployments.
func (c *console) bundles(r *http.Request) (result, error) {
	values := url.Values{}

	for _, name := range []string{"runtime", "cursor"} {
		if value := r.URL.Query().Get(name); value != "" {
			values.Set(name, value)
		}
	}

	shown := views.Bundles{Runtime: values.Get("runtime"), Now: c.API.Clock.Now()}

	page, err := c.Bundles.Deployments(r.Context(), bundleclient.Query{RuntimeID: shown.Runtime, Continue: values.Get("cursor"), Limit: bundlesLength})
	status := statusOfBundles(err, &shown.Problem)

	for _, each := range page.Deployments {
		shown.List = append(shown.List, shownDeployment(each))
	}

	shown.Pager = views.Pager{Count: len(shown.List), Total: -1}
	if values.Has("cursor") {
		shown.Pager.First = otherPage(bundlesPath, values, "", "")
	}

	if page.Continue != "" {
		shown.Pager.Next = otherPage(bundlesPath, values, "cursor", page.Continue)
	}

	return result{status: status, page: views.Page{Title: "Bundles", Section: bundlesPath, Body: views.BundlesPage(shown)}}, nil
}

// bundle shows a BundleDeployment with its Bundles.
func (c *console) bundle(r *http.Request) (result, error) {
	name, err := operatorserver.Segment(r, "name")
	if err != nil {
		return result{}, err
	}

	shown := views.Bundle{Now: c.API.Clock.Now()}
	shown.Name = name

	deployment, made, err := c.Bundles.Deployment(r.Context(), name)
	if failure.Is(err, failure.NotFound) {
		return result{}, httpserver.Refuse(http.StatusNotFound, failure.Of(err).Error())
	}

	status := statusOfBundles(err, &shown.Problem)
	if err == nil {
		shown = views.Bundle{
			BundleDeployment: shownDeployment(deployment), Conditions: shownConditions(deployment.Status.Conditions), Now: shown.Now,
		}

		for _, each := range deployment.Spec.DependsOn {
			shown.DependsOn = append(shown.DependsOn, each.Name)
		}

		for _, each := range deployment.Status.History {
			shown.History = append(shown.History, views.BundleVersion{
				Number: each.Number, Bundle: each.Bundle, Digest: each.Digest, Installed: each.InstalledAt.Time,
				Source: sourceText(each.Template.Spec.Source),
			})
		}
	}

	for _, each := range made {
		unpacked := meta.FindStatusCondition(each.Status.Conditions, v1alpha1.TypeUnpacked)
		shown.Bundles = append(shown.Bundles, views.MadeBundle{
			Name: each.Name, Phase: string(each.Status.Phase), Digest: each.Status.Digest, Created: each.CreationTimestamp.Time,
			Source: sourceText(*cmp.Or(each.Status.ResolvedSource, &each.Spec.Source)), Message: messageOf(unpacked),
		})
	}

	return result{status: status, page: views.Page{Title: name, Section: bundlesPath, Body: views.BundlePage(shown)}}, nil
}

// statusOfBundles returns the HTTP status of a page. err is the error from reading the page's objects. If it is not nil,
// statusOfBundles sets problem, which the page shows in place of the objects.
func statusOfBundles(err error, problem *string) int {
	if err == nil {
		return http.StatusOK
	}

	*problem = failure.Shorten(failure.Of(err).Error(), maxText)

	return httpserver.RefusalOf(err).Status
}

// shownDeployment returns the fields of a BundleDeployment that the page shows. It omits the config, whose values may be secret.
func shownDeployment(deployment v1alpha1.BundleDeployment) views.BundleDeployment {
	conditions := deployment.Status.Conditions
	shown := views.BundleDeployment{
		Name: deployment.Name, Runtime: deployment.Labels[bundleclient.LabelRuntime], Class: deployment.Spec.ProvisionerClassName,
		Source: sourceText(deployment.Spec.Template.Spec.Source), Active: deployment.Status.ActiveBundle, Created: deployment.CreationTimestamp.Time,
		Namespace: deployment.Spec.InstallNamespace, DryRun: deployment.Spec.DryRun, Suspended: deployment.Spec.Suspend,
		Deleted: !deployment.DeletionTimestamp.IsZero(),
	}

	if deployment.Spec.Target != nil {
		shown.Target = deployment.Spec.Target.KubeconfigSecretRef.Name
	}

	installed, healthy := meta.FindStatusCondition(conditions, v1alpha1.TypeInstalled), meta.FindStatusCondition(conditions, v1alpha1.TypeHealthy)
	valid := meta.FindStatusCondition(conditions, v1alpha1.TypeHasValidBundle)

	// The page shows the first condition that is not true, in the order in which the bundle provisioner works. While another Bundle is not
	// installed, the condition Installed is true for the previous one, with another reason.
	for _, each := range []*metav1.Condition{valid, installed, healthy} {
		if each != nil && (each.Status != metav1.ConditionTrue || each == installed && each.Reason != v1alpha1.ReasonInstallationSucceeded) {
			shown.Message = messageOf(each)

			break
		}
	}

	shown.State = stateOfDeployment(shown, deployment.Generation == deployment.Status.ObservedGeneration, valid, installed, healthy)

	return shown
}

// stateOfDeployment returns the state as one word, which views.Badge colors.
func stateOfDeployment(shown views.BundleDeployment, observed bool, valid, installed, healthy *metav1.Condition) string {
	is := func(condition *metav1.Condition, status metav1.ConditionStatus) bool {
		return condition != nil && condition.Status == status
	}

	switch {
	case shown.Deleted:
		return "deleting"
	case shown.Suspended:
		return "suspended"
	case !observed:
		return "pending"
	case is(valid, metav1.ConditionFalse) || is(installed, metav1.ConditionFalse) && installed.Reason != v1alpha1.ReasonInstallPending &&
		installed.Reason != v1alpha1.ReasonDependencyPending && installed.Reason != v1alpha1.ReasonDryRun,
		is(installed, metav1.ConditionTrue) && installed.Reason == v1alpha1.ReasonUpgradeFailed:
		return "failed"
	case is(installed, metav1.ConditionTrue) && is(healthy, metav1.ConditionFalse):
		return "unhealthy"
	case is(installed, metav1.ConditionTrue):
		return "installed"
	default:
		return "pending"
	}
}

func shownConditions(conditions []metav1.Condition) []views.BundleCondition {
	shown := make([]views.BundleCondition, 0, len(conditions))
	for _, each := range conditions {
		shown = append(shown, views.BundleCondition{
			Type: each.Type, Status: string(each.Status), Reason: each.Reason, Message: messageOf(&each), Changed: each.LastTransitionTime.Time,
		})
	}

	return shown
}

func messageOf(condition *metav1.Condition) string {
	if condition == nil {
		return ""
	}

	return failure.Shorten(condition.Message, maxText)
}

// sourceText describes a source on one line. Addresses in it contain no user, password or query.
func sourceText(source v1alpha1.BundleSource) string {
	switch {
	case source.Image != nil:
		return "image " + source.Image.Ref
	case source.Git != nil:
		return "git " + withoutUser(source.Git.Repository) + " " + cmp.Or(source.Git.Ref.Commit, source.Git.Ref.Tag, source.Git.Ref.Branch)
	case source.HTTP != nil:
		return "http " + withoutUser(source.HTTP.URL)
	default:
		return string(source.Type)
	}
}

// withoutUser returns an address without its user, password, query and fragment, which may contain credentials.
func withoutUser(address string) string {
	parsed, err := url.Parse(address)
	if err != nil || parsed.Host == "" {
		return "(address that is not a URL)"
	}

	parsed.User, parsed.RawQuery, parsed.Fragment = nil, "", ""

	return parsed.String()
}
