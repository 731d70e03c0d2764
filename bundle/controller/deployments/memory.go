package deployments

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/environment-broker/environment-broker/bundle/api/v1alpha1"
	"github.com/environment-broker/environment-broker/internal/clients/applier"
)

// memory contains the progress of a BundleDeployment between reconciliations. It is lost when the controller restarts. The
// controller then compares the installed objects with the Bundle again.
type memory struct {
	uid types.UID
	// needs lists the objects whose changes affect the BundleDeployment.
	needs []need
	// bundle is the installation (see the function installation) that was last compared with the cluster, and checked is the time of
	// this comparison. place is the place of the BundleDeployment at that time, and cluster is the connection. A new connection may
	// lead to another cluster. If bundle is empty, a comparison is due.
	bundle, place string
	cluster       *applier.Cluster
	checked       time.Time
	// comparisons is the number of consecutive comparisons that changes of the installed objects have caused.
	comparisons int
	// away is true if the cluster was unreachable during the last reconciliation.
	away bool
	// held is true if the error in the conditions comes from a circuit breaker.
	held bool
	// message is the message that the Installed condition had when the installation was completed.
	message string
	// pivot is the installation that is in progress, and began is when it started. A suspension, a dry run and an outage of the
	// cluster reset pivot, because they do not count toward pivotTimeout.
	pivot string
	began time.Time
	// failed is the installation that failed last, problem is the reason, and retry is the time of the next attempt. failedAt is
	// the generation at the time of the failure. When the generation changes, the next attempt is due immediately. If terminal is
	// true, no attempt is made before the generation changes.
	failed, problem string
	failures        int
	retry           time.Time
	terminal        bool
	failedAt        int64
	// masked contains, for each installation, the strings that messages must not contain. An installation is missing if its content
	// has not been read since the controller started.
	masked map[string][]string
}

// mask stores the strings that messages about an installation must not contain. It drops the strings of all other installations
// except the active one.
func (m *memory) mask(installation, active string, texts []string) {
	masked := map[string][]string{installation: texts}
	if former, known := m.masked[active]; known && active != installation {
		masked[active] = former
	}

	m.masked = masked
}

// remember returns the memory of a BundleDeployment, and records the objects that the BundleDeployment needs.
func (r *Reconciler) remember(deployment *v1alpha1.BundleDeployment) *memory {
	r.mu.Lock()
	defer r.mu.Unlock()

	known := r.memory[deployment.Name]
	if known == nil || known.uid != deployment.UID {
		r.forgetNeeds(deployment.Name)

		known = &memory{uid: deployment.UID}
		r.memory[deployment.Name] = known
	}

	r.recordNeeds(deployment, known)

	return known
}

// forget drops the data that the controller keeps for a BundleDeployment.
func (r *Reconciler) forget(name string) {
	r.mu.Lock()
	r.forgetNeeds(name)
	delete(r.memory, name)
	delete(r.failing, name)
	r.mu.Unlock()

	r.written.Forget(name)
	r.watches.Unfollow(name)
	r.clusters.release(name)
}

// setFailing records whether the last installation of the BundleDeployment failed.
func (p *pass) setFailing(failing bool) {
	p.mu.Lock()
	defer p.mu.Unlock()

	if failing {
		p.failing[p.deployment.Name] = false
	} else {
		delete(p.failing, p.deployment.Name)
	}
}

// retryOthers makes the next attempt due for each failed BundleDeployment, except the one named but. It returns their names.
func (r *Reconciler) retryOthers(but string) (names []string) {
	r.mu.Lock()
	defer r.mu.Unlock()

	for name := range r.failing {
		if name != but {
			r.failing[name] = true
			names = append(names, name)
		}
	}

	return names
}

// mayRetry reports whether an attempt at the given installation is due: it has not failed yet, its pause is over, or the spec has
// changed since the failure.
func (p *pass) mayRetry(installation string) bool {
	p.mu.Lock()
	requested := p.failing[p.deployment.Name]
	p.mu.Unlock()

	return p.memory.failed != installation || p.memory.failedAt != p.deployment.Generation ||
		!p.memory.terminal && (requested || !p.now().Before(p.memory.retry))
}
