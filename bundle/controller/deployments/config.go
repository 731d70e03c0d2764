package deployments

// config returns the desired config as JSON.
func (p *pass) config() []byte { return p.deployment.Spec.Config.Raw }

// activeConfig returns the config with which the active Bundle is installed.
func (p *pass) activeConfig() []byte {
	if p.status.ActiveConfig == nil {
		return nil
	}

	return p.status.ActiveConfig.Raw
}

// isActive reports whether the Bundle is installed with the desired config.
func (p *pass) isActive(bundle string) bool {
	return p.status.ActiveBundle == bundle && installation(bundle, p.activeConfig()) == installation(bundle, p.config())
}

// installation identifies a Bundle that is installed with a config. The same config has the same text, because the API server writes the
// keys of an object in order.
func installation(bundle string, config []byte) string {
	if len(config) == 0 {
		return bundle
	}

	return bundle + " " + digits(config)
}

// place identifies the cluster and the namespace on which the BundleDeployment installs.
func (p *pass) place() string {
	place := p.deployment.Spec.InstallNamespace
	if target := p.deployment.Spec.Target; target != nil {
		place += " " + target.KubeconfigSecretRef.Name + " " + target.KubeconfigSecretRef.Key
	}

	return place
}
