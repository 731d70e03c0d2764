package bundles

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// Labels and annotations of the objects on the hub.
const (
	// LabelRuntime contains the ID of the runtime, on BundleDeployments, Bundles and Secrets.
	LabelRuntime = "provisioner.environment-broker.io/runtime"
	// LabelComponent contains the name of the component, on BundleDeployments.
	LabelComponent = "provisioner.environment-broker.io/component"
	// labelContent identifies the content of a Bundle.
	labelContent = "provisioner.environment-broker.io/content"
	// labelManagedBy and managedBy mark the Provisioner's objects.
	labelManagedBy = "app.kubernetes.io/managed-by"
	managedBy      = "environment-broker"
	// annotationRelease contains the version of the release. Only people read it.
	annotationRelease = "provisioner.environment-broker.io/release"
	// annotationShoot contains the name of the Shoot. Only people read it.
	annotationShoot = "provisioner.environment-broker.io/shoot"
	// annotationRenewal is the time at which the kubeconfig of a Secret becomes due for renewal. annotationExpiry is the time at which it
	// expires.
	annotationRenewal = "provisioner.environment-broker.io/renew-after"
	annotationExpiry  = "provisioner.environment-broker.io/expires-at"
)

const (
	// maxName is the maximum length of a BundleDeployment's name.
	maxName = 63
	// digits is the number of digest bytes that a name contains. A byte takes two hexadecimal digits.
	digits = 8
	prefix = "rt-"
)

// deploymentName returns the name of a component's BundleDeployment. An empty component means the Namespaces of all components.
// The digest keeps names distinct when a long component name is shortened.
func deploymentName(runtimeID, component string) string {
	name := prefix + digest(runtimeID+"/"+component) + "-" + component
	if component == "" {
		name += "namespaces"
	}

	return strings.TrimRight(name[:min(len(name), maxName)], "-")
}

// secretName returns the name of the Secret with a runtime's kubeconfig.
func secretName(runtimeID string) string { return prefix + digest(runtimeID) + "-kubeconfig" }

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))

	return hex.EncodeToString(sum[:digits])
}
