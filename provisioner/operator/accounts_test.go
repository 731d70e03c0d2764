package operator_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/internal/operatorapi"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/runtimes"
)

// end ends all operations of a runtime.
func (f *fixture) end(runtimeID string) {
	f.Helper()

	if _, err := storage.Exec(f.Context(), f.db.Writer(), `UPDATE operations SET state = 'succeeded', finished_at = ? WHERE instance_id = ?`,
		storage.At(f.clock.Now()), runtimeID); err != nil {
		f.Fatal(err)
	}
}

// refused requests an erasure of the account, which must be rejected, and returns the description of the conflict.
func (f *fixture) refused(account string) string {
	f.Helper()

	return read[operatorapi.Error](f, f.do("admin", "POST", "/accounts/"+account+"/erase", "", http.StatusConflict)).Description
}

func TestEraseAccount(t *testing.T) {
	onEach(t, func(f *fixture) {
		f.order("r1", process.InProgress)
		f.order("gone", process.Succeeded, func(r *runtimes.Runtime) { r.DeletedAt = start.Add(time.Hour) })
		f.end("gone")

		if want, got := "The account still has runtimes: c-r1 (r1). Delete them first.", f.refused("acme"); got != want {
			f.Errorf("want %q, got %q", want, got)
		}

		if err := f.runtimes.MarkDeleted(f.Context(), "r1", start.Add(time.Hour)); err != nil {
			f.Fatal(err)
		}

		stored := read[operatorapi.Account](f, f.do("admin", "GET", "/accounts/acme", "", http.StatusOK))
		if stored.Runtimes != 2 || stored.Operations != 1 || len(stored.UnfinishedOperations) != 1 || len(stored.Instances) != 0 {
			f.Errorf("want two deleted runtimes, and an operation of each, got %+v", stored)
		}

		f.end("r1")

		f.do("operator", "POST", "/accounts/acme/erase", "", http.StatusForbidden)
		f.do("viewer", "GET", "/accounts/acme", "", http.StatusForbidden)

		erased := read[operatorapi.Erasure](f, f.do("admin", "POST", "/accounts/acme/erase", "", http.StatusOK))
		want := operatorapi.Erasure{AccountID: "acme", EntryID: erased.EntryID, Operations: 2, Runtimes: 2, Complete: true}

		if diff := cmp.Diff(want, erased); diff != "" {
			f.Errorf("-want +got\n%s", diff)
		}

		f.do("viewer", "GET", "/runtimes/gone", "", http.StatusNotFound)
		f.do("admin", "POST", "/accounts/unknown/erase", "", http.StatusNotFound)
	})
}

// TestEraseAccountWithoutLabel erases an account whose ID is stored in the form of a label.
func TestEraseAccountWithoutLabel(t *testing.T) {
	onEach(t, func(f *fixture) {
		// The label of "-".
		const label = "sha256-3973e022e93220f9212c18d0d0c543ae"

		f.order("gone", process.Succeeded, func(r *runtimes.Runtime) {
			r.Tenant, r.OriginalTenant, r.DeletedAt = label, "-", start.Add(time.Hour)
		})

		erased := read[operatorapi.Erasure](f, f.do("admin", "POST", "/accounts/-/erase", "", http.StatusOK))
		if erased.Runtimes != 1 || erased.AccountID != "-" {
			f.Errorf("want the runtime of the account, got %+v", erased)
		}

		entry := read[operatorapi.AuditEntry](f, f.do("admin", "GET", "/audit/"+erased.EntryID, "", http.StatusOK))
		if entry.AccountID != label {
			f.Errorf("the entry names the account as the rows do: want %s, got %s", label, entry.AccountID)
		}
	})
}
