//go:build garden

package e2e

import (
	"slices"

	"github.com/environment-broker/environment-broker/provisioner/registration"
	"github.com/environment-broker/environment-broker/storage"
)

// checkRegistered compares the runtimes in Director with the runtimes of the Provisioner. If a fault leaves another runtime in
// Director, the table registrations must have the intent of that registration: an hour later the Provisioner removes the runtime
// because of that row.
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
			f.Errorf("runtime %s stays in Director forever", runtime.ID)
		}
	}

	f.Logf("%d runtimes stay in Director until their registrations are cleaned up", remaining)
	f.wantEqual("runtimes in Director", slices.Clone(runtimeIDs), registered)
}
