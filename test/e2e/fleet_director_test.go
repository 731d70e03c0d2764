//go:build garden

package e2e

import (
	"slices"

	"github.com/environment-broker/environment-broker/provisioner/registration"
	"github.com/environment-broker/environment-broker/storage"
)

// checkRegistered compares the runtimes in Director with the runtimes of the Provisioner. After a fault, Director can have
// additional runtimes. Each of them must have an intent in the registrations table, because of which the Provisioner removes the
// runtime from Director an hour later.
func (f *fleet) checkRegistered(runtimeIDs []string) {
	f.Helper()

	intents, err := storage.Select[string](f.Context(), f.provisionerDB.db.Reader(), `SELECT label FROM registrations`)
	if err != nil {
		f.Fatal(err)
	}

	var registered []string

	remaining := 0

	for _, runtime := range f.director.Runtimes() {
		label, _ := runtime.Labels[registration.LabelOrder].(string)

		switch {
		case slices.Contains(runtimeIDs, runtime.ID):
			registered = append(registered, runtime.ID)
		case slices.Contains(intents, label):
			remaining++
		default:
			f.Errorf("runtime %s in Director has no intent, so the Provisioner will never remove it", runtime.ID)
		}
	}

	f.Logf("%d additional runtimes stay in Director until the Provisioner cleans up their registrations", remaining)
	f.wantEqual("runtimes in Director", slices.Clone(runtimeIDs), registered)
}
