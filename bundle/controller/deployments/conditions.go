package deployments

import (
	"regexp"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/environment-broker/environment-broker/bundle/api/v1alpha1"
	"github.com/environment-broker/environment-broker/internal/failure"
)

// maxMessage is the maximum length of the message of a condition, in characters. The API accepts 32 KiB.
const maxMessage = 4096

var (
	// nextAttempt matches the part of a circuit breaker's message that says when the next attempt is made.
	nextAttempt = regexp.MustCompile(`; (?:the next attempt is at \S+|another attempt is in progress)`)
	// numbers matches the digits of counters and times in messages.
	numbers = regexp.MustCompile(`\d+`)
)

// conditionTypes returns the types of all conditions of a BundleDeployment.
func conditionTypes() []string {
	return []string{v1alpha1.TypeHasValidBundle, v1alpha1.TypeInstalled, v1alpha1.TypeHealthy}
}

// begin prepares the status for a reconciliation: it sets the observed generation, removes the previous comparison, and adds each
// missing condition as Unknown. The reconciliation then overwrites these conditions.
func (p *pass) begin() {
	p.status.ObservedGeneration, p.status.Comparison = p.deployment.Generation, nil

	for _, name := range conditionTypes() {
		if meta.FindStatusCondition(p.status.Conditions, name) == nil {
			p.set(name, metav1.ConditionUnknown, v1alpha1.ReasonInstallPending, "not evaluated yet")
		}
	}
}

// end sets each condition to Unknown if it still describes an earlier generation. This reconciliation has not set such a
// condition, so it might not be true for the current generation.
func (p *pass) end() {
	reason := v1alpha1.ReasonInstallPending
	if !p.deployment.DeletionTimestamp.IsZero() {
		reason = v1alpha1.ReasonUninstalling
	}

	for _, name := range conditionTypes() {
		if meta.FindStatusCondition(p.status.Conditions, name).ObservedGeneration != p.deployment.Generation {
			p.set(name, metav1.ConditionUnknown, reason, "not evaluated yet for this generation")
		}
	}
}

// set sets a condition for the current generation, and truncates a long message.
func (p *pass) set(name string, status metav1.ConditionStatus, reason, message string) {
	meta.SetStatusCondition(&p.status.Conditions, metav1.Condition{
		Type: name, Status: status, Reason: reason, Message: failure.Shorten(message, maxMessage),
		ObservedGeneration: p.deployment.Generation,
		// The API server stores whole seconds. With fractions, the stored status would always differ from the new status, and the
		// controller would write it again and again.
		LastTransitionTime: metav1.NewTime(p.now().Truncate(time.Second)),
	})
}

// setInstalled sets the Installed condition. The condition is true if there is an active Bundle, even if the desired one has a
// problem.
func (p *pass) setInstalled(reason, message string) {
	status := metav1.ConditionFalse
	if p.status.ActiveBundle != "" {
		status = metav1.ConditionTrue
	}

	p.set(v1alpha1.TypeInstalled, status, reason, message)
}

// setNotInstalled sets both Installed and Healthy to false.
func (p *pass) setNotInstalled(reason, message string) {
	p.set(v1alpha1.TypeInstalled, metav1.ConditionFalse, reason, message)
	p.set(v1alpha1.TypeHealthy, metav1.ConditionFalse, v1alpha1.ReasonInstallationStatusFalse, "the Bundle is not installed")
}

// setUnknown sets Installed and Healthy to Unknown, because the cluster cannot be reached.
func (p *pass) setUnknown(reason, message string) {
	p.set(v1alpha1.TypeInstalled, metav1.ConditionUnknown, reason, message)
	p.set(v1alpha1.TypeHealthy, metav1.ConditionUnknown, v1alpha1.ReasonObjectLookupFailure, message)
}

// setFailed sets Installed and Healthy to Unknown after a failed call. It keeps the present message if only numbers in it would
// change. Otherwise, each attempt would write the status of every BundleDeployment whose cluster is unreachable. It also keeps the
// message of a circuit breaker when a trial call fails.
func (p *pass) setFailed(reason string, err error) {
	found := failure.Of(err)
	message := nextAttempt.ReplaceAllString(found.ForOperators(), "")
	present := meta.FindStatusCondition(p.status.Conditions, v1alpha1.TypeInstalled)
	same := present != nil && present.Status == metav1.ConditionUnknown && present.Reason == reason

	held := found.Reason == failure.ReasonSystemUnavailable
	if same && (p.memory.held && !held || numbers.ReplaceAllString(present.Message, "") == numbers.ReplaceAllString(message, "")) {
		message = present.Message
	} else {
		p.memory.held = held
	}

	p.setUnknown(reason, message)
}

// isTrue reports whether a condition is true for the current generation.
func isTrue(deployment *v1alpha1.BundleDeployment, name string) bool {
	found := meta.FindStatusCondition(deployment.Status.Conditions, name)

	return found != nil && found.Status == metav1.ConditionTrue && found.ObservedGeneration == deployment.Generation
}

// isInstalled reports whether the Bundle of the current template is installed. During a pivot, the Installed condition stays true for the
// previous Bundle, but with another reason.
func isInstalled(deployment *v1alpha1.BundleDeployment) bool {
	found := meta.FindStatusCondition(deployment.Status.Conditions, v1alpha1.TypeInstalled)

	return isTrue(deployment, v1alpha1.TypeInstalled) && found.Reason == v1alpha1.ReasonInstallationSucceeded
}
