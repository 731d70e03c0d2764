package deployments

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// memory is what the controller remembers of a BundleDeployment. It is lost when the controller restarts, which then checks the cluster
// once more.
type memory struct {
	uid types.UID
	// At checked, the Bundle was compared with the cluster, in the place that the BundleDeployment had then.
	bundle, place string
	checked       time.Time
	// comparisons is the number of comparisons in a row that changes of objects have caused.
	comparisons int
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

// remember returns the memory of a BundleDeployment.
func (r *Reconciler) remember(name string, uid types.UID) *memory {
	r.mu.Lock()
	defer r.mu.Unlock()

	if r.memory[name] == nil || r.memory[name].uid != uid {
		r.memory[name] = &memory{uid: uid}
	}

	return r.memory[name]
}

// forget drops what the controller keeps of a BundleDeployment.
func (r *Reconciler) forget(name string) {
	r.mu.Lock()
	delete(r.memory, name)
	r.mu.Unlock()

	r.watches.Unfollow(name)
	r.clusters.release(name)
}

// retryNow makes the next attempt of a failed BundleDeployment due, and reports whether there was a failure.
func (r *Reconciler) retryNow(name string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()

	known := r.memory[name]
	if known == nil || known.failed == "" {
		return false
	}

	known.retry = time.Time{}

	return true
}

// mayRetry reports whether an attempt at an installation is due.
func (p *pass) mayRetry(installation string) bool {
	return p.memory.failed != installation || p.memory.failedAt != p.deployment.Generation || !p.memory.terminal && !p.now().Before(p.memory.retry)
}
