package environment

import (
	"cmp"
	"slices"

	"github.com/environment-broker/environment-broker/internal/secret"
)

// Kyma describes a runtime's Kyma: its version, installer and modules. Its JSON form is stored with instances and operations.
type Kyma struct {
	// Version is the installed version. Until the operation that creates the runtime has chosen a version, Version is the one in
	// the order, or empty if the order contains none.
	Version string `json:"version,omitempty"`
	// Ordered is true if the order contains a version.
	Ordered bool `json:"ordered,omitempty"`
	// Installer is the system that installs Kyma on the runtime, or empty for the Provisioner. It never changes while the runtime
	// exists.
	Installer KymaInstaller `json:"installer,omitempty"`
	// Modules are the names of the modules that the user has chosen, in the order of the plan.
	Modules []string `json:"modules"`
	// Installation lists the components of the chosen modules. It can contain secrets, so it is never stored. The steps that build
	// it and the step that sends it therefore belong to the same stage, which restarts with its first step after a crash.
	Installation *KymaInstallation `json:"-"`
}

// KymaInstaller is a system that installs Kyma.
type KymaInstaller string

// The systems that install Kyma.
const (
	InstallerProvisioner      KymaInstaller = "provisioner"
	InstallerReconciler       KymaInstaller = "reconciler"
	InstallerLifecycleManager KymaInstaller = "lifecycle-manager"
)

// InstalledBy reports whether the system installs Kyma on the runtime. It is false for a runtime without Kyma.
func (k *Kyma) InstalledBy(installer KymaInstaller) bool {
	return k != nil && cmp.Or(k.Installer, InstallerProvisioner) == installer
}

// InLifecycleManager reports whether Lifecycle Manager installs Kyma on the instance's runtime.
func (i Instance) InLifecycleManager() bool {
	return i.Request.Cluster.Kyma.InstalledBy(InstallerLifecycleManager)
}

// InReconciler reports whether the Reconciler installs Kyma on the instance's runtime.
func (i Instance) InReconciler() bool {
	return i.Request.Cluster.Kyma.InstalledBy(InstallerReconciler)
}

// KymaInstallation is the configuration that the broker sends to the Kyma installer.
type KymaInstallation struct {
	Version string
	// Profile is Evaluation, Production or empty.
	Profile string
	// Components are installed in this order.
	Components []KymaComponent
	// Configuration contains the values that apply to all components.
	Configuration []KymaEntry
}

// KymaComponent is a Kyma component with its configuration values.
type KymaComponent struct {
	Name      string
	Namespace string
	// SourceURL is the URL of manifests that replace those in the Kyma release, or empty. If the Provisioner installs Kyma, the
	// URL ends with the digest of the file.
	SourceURL     string
	Configuration []KymaEntry
}

// KymaEntry is one configuration value. Values never appear in logs.
type KymaEntry struct {
	Key   string
	Value secret.String
	// Secret means that the installer must store the value only in encrypted form and never return it.
	Secret bool
}

// Add adds a component, unless the installation already contains it.
func (i *KymaInstallation) Add(component KymaComponent) {
	if !slices.ContainsFunc(i.Components, func(other KymaComponent) bool { return other.Name == component.Name }) {
		i.Components = append(i.Components, component)
	}
}

// Set adds values to the named component, or to the configuration of all components if the name is empty. A value replaces an
// earlier one with the same key. Values for a component that is not installed are ignored.
func (i *KymaInstallation) Set(component string, entries ...KymaEntry) {
	if component == "" {
		i.Configuration = withEntries(i.Configuration, entries)

		return
	}

	for index := range i.Components {
		if i.Components[index].Name == component {
			i.Components[index].Configuration = withEntries(i.Components[index].Configuration, entries)
		}
	}
}

// withEntries returns present with the given entries added. A given entry replaces a present one with the same key.
func withEntries(present, given []KymaEntry) []KymaEntry {
	result := slices.Clone(present)

	for _, entry := range given {
		same := func(other KymaEntry) bool { return other.Key == entry.Key }
		if index := slices.IndexFunc(result, same); index >= 0 {
			result[index] = entry
		} else {
			result = append(result, entry)
		}
	}

	return result
}
