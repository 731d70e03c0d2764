package deployments

import (
	"context"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/environment-broker/environment-broker/bundle/api/v1alpha1"
	"github.com/environment-broker/environment-broker/internal/clients/applier"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/secret"
)

const (
	// These constants limit the work for objects that somebody else, such as another controller, changes all the time. The first
	// burst comparisons follow without a pause. Before each further comparison, there is a pause that doubles from firstPause to
	// lastPause. After quietTime without a change, the count starts again.
	burst      = 10
	firstPause = time.Second
	lastPause  = time.Minute
	quietTime  = 2 * time.Minute
	// maxProblem is the maximum length of the description of an unhealthy object, in characters.
	maxProblem = 500
)

// view returns the state of the installed objects as seen by the watches.
func (p *pass) view() applier.View { return p.watches.Look(p.cluster, p.deployment.Name) }

// isFresh reports whether the last comparison of the installation with the cluster is recent enough. The permitted age depends on
// whether all objects are watched, and whether somebody has changed them.
func (p *pass) isFresh(bundle string, config []byte) bool {
	if p.replaced || p.status.ActiveBundle != bundle || p.memory.bundle != installation(bundle, config) || p.memory.place != p.place() ||
		p.memory.cluster != p.cluster {
		return false
	}

	view, age := p.view(), p.now().Sub(p.memory.checked)

	switch {
	case !view.Complete:
		return age < p.DriftInterval
	case view.Changed:
		return age < p.memory.pause()
	default:
		return age < p.ResyncInterval
	}
}

// compareAgain counts the next comparison if changes of the objects have caused it.
func (p *pass) compareAgain() {
	if p.memory.bundle == "" || !p.view().Changed {
		return
	}

	if p.now().Sub(p.memory.checked) > quietTime {
		p.memory.comparisons = 0
	}

	p.memory.comparisons++
}

// pause returns the minimum time between two comparisons that changes of the objects cause.
func (m *memory) pause() time.Duration {
	if m.comparisons < burst {
		return 0
	}

	return min(firstPause<<min(m.comparisons-burst, burst), lastPause)
}

// health sets the Healthy condition, and returns the time until the next health check.
func (p *pass) health(ctx context.Context) (time.Duration, error) {
	view := p.view()
	problems := view.Problems

	if !view.Complete {
		var err error

		problems, err = p.unhealthy(ctx)

		switch {
		case err != nil && applier.Unreachable(err):
			return p.interrupted(err)
		case err != nil:
			p.set(v1alpha1.TypeHealthy, metav1.ConditionUnknown, v1alpha1.ReasonObjectLookupFailure, failure.Of(err).ForOperators())

			return 0, err
		}
	}

	p.setHealth(problems, view.Complete)

	switch {
	case view.Changed:
		return max(p.memory.checked.Add(p.memory.pause()).Sub(p.now()), firstPause), nil
	case !view.Complete && len(problems) > 0:
		return unhealthyInterval, nil
	case !view.Complete || len(problems) > 0:
		return spread(p.HealthInterval), nil
	default:
		return spread(p.ResyncInterval), nil
	}
}

// unhealthy describes the installed objects that are not healthy. It reads the objects from the cluster, unless this
// reconciliation has already read them.
func (p *pass) unhealthy(ctx context.Context) ([]string, error) {
	if problems, known := p.applied.Problems(); known {
		return problems, nil
	}

	return p.applier.Unhealthy(ctx, p.cluster, p.owner) //nolint:wrapcheck // health classifies the error
}

// setHealth sets the Healthy condition. If an object that is not watched is missing, setHealth makes the next reconciliation
// create it again.
func (p *pass) setHealth(problems []string, watched bool) {
	if len(problems) == 0 {
		p.set(v1alpha1.TypeHealthy, metav1.ConditionTrue, v1alpha1.ReasonHealthy, "all objects are healthy")
		p.reachable()

		return
	}

	lines := make([]string, len(problems))
	for i, problem := range problems {
		lines[i] = p.describe(problem)
	}

	p.set(v1alpha1.TypeHealthy, metav1.ConditionFalse, v1alpha1.ReasonUnhealthy, strings.Join(lines, "\n"))

	for _, problem := range problems {
		if !watched && strings.HasSuffix(problem, " is missing") {
			p.memory.bundle = "" // makes a comparison due
		}
	}
}

// describe returns the problem of an object as one line for users. Controllers on the cluster write the status of objects, and
// may quote Secrets of the Bundle there. If the strings to mask are unknown because the content cannot be read, the line only
// names the object.
func (p *pass) describe(problem string) string {
	if _, known := p.memory.masked[installation(p.status.ActiveBundle, p.activeConfig())]; !known {
		object, _, _ := strings.Cut(problem, ": ")

		return failure.Printable(object, maxProblem) + ": its status is not shown until the content of the Bundle can be read"
	}

	for _, texts := range p.memory.masked {
		problem = secret.MaskIn(problem, texts...)
	}

	return failure.Printable(problem, maxProblem)
}

// reachable sets the Installed condition to true if it is still Unknown because the cluster was unreachable before.
func (p *pass) reachable() {
	for _, condition := range p.status.Conditions {
		if condition.Type == v1alpha1.TypeInstalled && condition.Status == metav1.ConditionUnknown && p.status.ActiveBundle != "" {
			p.set(v1alpha1.TypeInstalled, metav1.ConditionTrue, v1alpha1.ReasonInstallationSucceeded, "Bundle "+p.status.ActiveBundle+" is installed")
		}
	}
}
