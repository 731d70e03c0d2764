package model

// KymaConfigOf returns the order of Kyma in the form in which it is read. The values of secret entries are left empty: who ordered
// them knows them, and nobody else is to.
func KymaConfigOf(order *KymaConfigInput) *KymaConfig {
	if order == nil {
		return nil
	}

	config := &KymaConfig{Version: &order.Version, Profile: order.Profile, Configuration: entriesOf(order.Configuration)}

	for _, component := range order.Components {
		config.Components = append(config.Components, &ComponentConfiguration{
			Component: component.Component, Namespace: component.Namespace, SourceURL: component.SourceURL,
			Configuration: entriesOf(component.Configuration),
		})
	}

	return config
}

func entriesOf(order []*ConfigEntryInput) []*ConfigEntry {
	entries := make([]*ConfigEntry, 0, len(order))

	for _, entry := range order {
		told := ConfigEntry(*entry)
		if entry.Secret != nil && *entry.Secret {
			told.Value = ""
		}

		entries = append(entries, &told)
	}

	return entries
}
