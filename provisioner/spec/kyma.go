package spec

// Kyma is the order of Kyma: a release, the components to install and their configuration.
type Kyma struct {
	Version string   `json:"version"`
	Profile *Profile `json:"profile,omitempty"`
	// Components are installed in this order.
	Components []*Component `json:"components"`
	// Configuration holds the values that all components share.
	Configuration    []*Entry          `json:"configuration,omitempty"`
	ConflictStrategy *ConflictStrategy `json:"conflictStrategy,omitempty"`
}

// Component is one component of Kyma.
type Component struct {
	Component     string   `json:"component"`
	Namespace     string   `json:"namespace"`
	Configuration []*Entry `json:"configuration,omitempty"`
	// SourceURL is refused unless empty: components come from the release.
	SourceURL        *string           `json:"sourceURL,omitempty"`
	ConflictStrategy *ConflictStrategy `json:"conflictStrategy,omitempty"`
}

// Entry is one configuration value. A secret value is never shown again.
type Entry struct {
	Key    string `json:"key"`
	Value  string `json:"value"`
	Secret *bool  `json:"secret,omitempty"`
}

// Profile is a size of Kyma.
type Profile string

// The profiles of Kyma.
const (
	ProfileEvaluation Profile = "Evaluation"
	ProfileProduction Profile = "Production"
)

// Profiles returns all profiles.
func Profiles() []Profile { return []Profile{ProfileEvaluation, ProfileProduction} }

// ConflictStrategy decides what an upgrade does with configuration that it does not mention.
type ConflictStrategy string

const (
	// ConflictStrategyMerge keeps it. This is the default.
	ConflictStrategyMerge ConflictStrategy = "Merge"
	// ConflictStrategyReplace drops it.
	ConflictStrategyReplace ConflictStrategy = "Replace"
)

// WithoutSecrets returns a copy without the values of secret entries; nil for nil.
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
