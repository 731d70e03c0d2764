package spec

// Kyma is the order for Kyma: a release, the components to install, and their configuration.
type Kyma struct {
	// Version is the version of the Kyma release, for example 2.0.0.
	Version string   `json:"version"`
	Profile *Profile `json:"profile,omitempty"`
	// Components are installed in the given order, but each after its dependencies. The required components of the release are always
	// installed.
	Components []*Component `json:"components"`
	// Configuration contains the values that all components share.
	Configuration    []*Entry          `json:"configuration,omitempty"`
	ConflictStrategy *ConflictStrategy `json:"conflictStrategy,omitempty"`
}

// Component is one component of Kyma.
type Component struct {
	// Component is the name of the component in the release, or a new name for a component with a SourceURL.
	Component     string   `json:"component"`
	Namespace     string   `json:"namespace"`
	Configuration []*Entry `json:"configuration,omitempty"`
	// SourceURL is the address, with a digest, of the component's manifests. If it is nil, the release's manifests are used.
	SourceURL        *string           `json:"sourceURL,omitempty"`
	ConflictStrategy *ConflictStrategy `json:"conflictStrategy,omitempty"`
}

// Entry is one configuration value of Kyma or of a component.
type Entry struct {
	Key   string `json:"key"`
	Value string `json:"value"`
	// Secret marks the value as secret, so that no API response contains it. Nil means false.
	Secret *bool `json:"secret,omitempty"`
}

// Profile is the name of a set of defaults in a release. The profile determines the size of the Kyma installation.
type Profile string

// The profiles of Kyma.
const (
	ProfileEvaluation Profile = "Evaluation"
	ProfileProduction Profile = "Production"
)

// Profiles returns all profiles.
func Profiles() []Profile { return []Profile{ProfileEvaluation, ProfileProduction} }

// ConflictStrategy decides what happens to configuration entries that an upgrade omits.
type ConflictStrategy string

const (
	// ConflictStrategyMerge keeps the omitted entries. This is the default.
	ConflictStrategyMerge ConflictStrategy = "Merge"
	// ConflictStrategyReplace removes the omitted entries.
	ConflictStrategyReplace ConflictStrategy = "Replace"
)

// WithoutSecrets returns a deep copy in which the values of secret entries are empty. It returns nil for nil.
func (k *Kyma) WithoutSecrets() *Kyma {
	if k == nil {
		return nil
	}

	public := *k
	public.Configuration, public.Components = withoutSecrets(k.Configuration), nil

	for _, component := range k.Components {
		shown := *component
		shown.Configuration = withoutSecrets(component.Configuration)
		public.Components = append(public.Components, &shown)
	}

	return &public
}

func withoutSecrets(entries []*Entry) []*Entry {
	public := make([]*Entry, 0, len(entries))

	for _, entry := range entries {
		shown := *entry
		if entry.Secret != nil && *entry.Secret {
			shown.Value = ""
		}

		public = append(public, &shown)
	}

	return public
}
