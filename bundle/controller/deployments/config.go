package deployments

import "github.com/environment-broker/environment-broker/bundle/api/v1alpha1"

// config returns the desired config as JSON.
func (p *pass) config() []byte { return p.deployment.Spec.Config.Raw }

// activeConfig returns the config with which the active Bundle was installed.
func (p *pass) activeConfig() []byte {
	if p.status.ActiveConfig == nil {
		return nil
	}

	return p.status.ActiveConfig.Raw
}

// isReplaced reports whether the active Bundle was deleted and created again with other content, which is not installed yet. The name
// of a Bundle depends on the template only, but ConfigMaps and tags can change in the meantime.
func (p *pass) isReplaced(bundle *v1alpha1.Bundle) bool {
	if bundle.Name != p.status.ActiveBundle || len(p.status.History) == 0 {
		return false
	}

	installed := p.status.History[0]

	return installed.Bundle == bundle.Name && differ(installed.Digest, bundle.Status.Digest)
}

// differ reports whether two digests differ. An unknown digest differs from none.
func differ(one, other string) bool { return one != "" && other != "" && one != other }

// isActive reports whether the given Bundle is installed with the desired config.
func (p *pass) isActive(bundle string) bool {
	return !p.replaced && p.status.ActiveBundle == bundle && installation(bundle, p.activeConfig()) == installation(bundle, p.config())
}

// installation returns a string that identifies the installation of a Bundle with a config. Equal configs result in equal
// strings, because the API server sorts the keys of objects.
func installation(bundle string, config []byte) string {
	if len(config) == 0 {
		return bundle
	}

	return bundle + " " + digits(config)
}

// place returns a string that identifies the cluster and the namespace in which the BundleDeployment installs objects.
func (p *pass) place() string {
	place := p.deployment.Spec.InstallNamespace
	if target := p.deployment.Spec.Target; target != nil {
		place += " " + target.KubeconfigSecretRef.Name + " " + target.KubeconfigSecretRef.Key
	}

	return place
}
