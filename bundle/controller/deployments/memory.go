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
	// needs are the objects whose changes concern the BundleDeployment.
	needs []need
	// At checked, the Bundle was compared with the cluster, in the place that the BundleDeployment had then.
	bundle, place string
	checked       time.Time
	// comparisons is the number of comparisons in a row that changes of objects have caused.
	comparisons int
	// away reports whether the cluster could not be reached in the last pass.
	away bool
	// held reports whether the message about that comes from a circuit breaker.
	held bool
	// message is the message of the condition Installed from then.
	message string
	// pivot is the Bundle that is being installed since began.
	pivot string
	began time.Time
	// failed is the Bundle that could not be installed, why, and when the next attempt is due. Terminal means that there is none before
	// the generation changes.
	failed, problem string
	failures        int
	retry           time.Time
	terminal        bool
	failedAt        int64
	// masked has the texts that messages must not contain, by installation. An installation is missing if its content was not read since the
	// controller has started.
	masked map[string][]string
}

// mask remembers the texts of an installation that messages must not contain, and forgets those of all installations but it and the active one.
func (m *memory) mask(installation, active string, texts []string) {
	masked := map[string][]string{installation: texts}
	if former, known := m.masked[active]; known && active != installation {
		masked[active] = former
	}

	m.masked = masked
}

// remember returns the memory of a BundleDeployment, and records what it needs.
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

// forget drops what the controller keeps of a BundleDeployment.
func (r *Reconciler) forget(name string) {
	r.mu.Lock()
	r.forgetNeeds(name)
	delete(r.memory, name)
	r.mu.Unlock()

	r.written.Forget(name)
	r.watches.Unfollow(name)
	r.clusters.release(name)
}

// retryOthers makes the next attempts of all failed BundleDeployments but one due, and returns their names.
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
