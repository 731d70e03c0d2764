package engines

import "testing"

// FuzzLoadChart loads arbitrary charts. An accepted chart must have a name, and must not be a library.
func FuzzLoadChart(f *testing.F) {
	const metadata = "apiVersion: v2\nname: one\nversion: 1.0.0\n"

	for _, seed := range []string{metadata, metadata + "type: library\n", metadata + "dependencies: [{name: two}]\n", "name: [a", ""} {
		f.Add([]byte(seed), []byte("a: 1"), []byte("*.md\n!a/\n"), []byte("archive"))
	}

	f.Fuzz(func(t *testing.T, metadata, values, ignore, dependency []byte) {
		loaded, err := loadChart([]file{
			{"c/" + chartFile, metadata}, {"c/values.yaml", values}, {"c/.helmignore", ignore}, {"c/charts/two.tgz", dependency}, {"c/a/b.md", values},
		})
		if err == nil && (loaded.Name() == "" || loaded.Metadata.Type == libraryType) {
			t.Errorf("the chart %q is accepted", metadata)
		}
	})
}

// FuzzSchema validates values against arbitrary schemas.
func FuzzSchema(f *testing.F) {
	for _, seed := range []string{`{}`, `true`, `{"properties":{"a":{"type":"string"}}}`, `{"$ref":"file:///etc/passwd"}`, `{"$ref":"#"}`, `{`} {
		f.Add([]byte(seed))
	}

	f.Fuzz(func(t *testing.T, schema []byte) {
		first, second := validateOne(schema, map[string]any{"a": 1}), validateOne(schema, map[string]any{"a": 1})
		if (first == nil) != (second == nil) {
			t.Errorf("%q: %v, then %v", schema, first, second)
		}
	})
}
