package deployments

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/environment-broker/environment-broker/bundle/api/v1alpha1"
)

// memory contains the progress of the work on a BundleDeployment. It is lost when the controller restarts, which then compares the objects
// again.
type memory struct {
	uid types.UID
	// needs are the objects whose changes affect the BundleDeployment.
	needs []need
	// bundle is the installation that was compared with the cluster at the time checked. place was the place of the BundleDeployment at
	// that time. An empty bundle makes a comparison due.
	bundle, place string
	checked       time.Time
	// comparisons is the number of consecutive comparisons that were caused by changes of objects.
	comparisons int
	// away is true if the cluster was unreachable during the last reconciliation.
	away bool
	// held is true if a circuit breaker caused the error in the conditions.
	held bool
	// message is the message of the Installed condition when the installation was completed.
	message string
	// pivot is the installation in progress, which started at began.
	pivot string
	began time.Time
	// failed is the installation that failed, problem is the reason, and retry is the time of the next attempt. failedAt is the generation
	// at the time of the failure: when the generation changes, the next attempt is due at once. If terminal is true, the next attempt is
	// due only then.
	failed, problem string
	failures        int
	retry           time.Time
	terminal        bool
	failedAt        int64
	// masked contains the texts that messages must not contain, by installation. It does not contain an installation whose content has
	// not been read since the controller started.
	masked map[string][]string
}

// mask stores the texts of an installation that messages must not contain. It drops those of all other installations except the active
// one.
func (m *memory) mask(installation, active string, texts []string) {
	masked := map[string][]string{installation: texts}
	if former, known := m.masked[active]; known && active != installation {
		masked[active] = former
	}

	m.masked = masked
}

// remember returns the memory of a BundleDeployment, and records the objects that it needs.
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
	r.mu.Unlock()

	r.written.Forget(name)
	r.watches.Unfollow(name)
	r.clusters.release(name)
}

// retryOthers makes the next attempts of all failed BundleDeployments except the given one due, and returns the names of these
// BundleDeployments.
func (r *Reconciler) retryOthers(but string) (names []string) {
	r.mu.Lock()
	defer r.mu.Unlock()

	for name, known := range r.memory {
		if name != but && known.failed != "" {
			known.retry = time.Time{}
			names = append(names, name)
		}
	}

	return names
}

// mayRetry reports whether an attempt at an installation is due.
func (p *pass) mayRetry(installation string) bool {
	return p.memory.failed != installation || p.memory.failedAt != p.deployment.Generation || !p.memory.terminal && !p.now().Before(p.memory.retry)
}
