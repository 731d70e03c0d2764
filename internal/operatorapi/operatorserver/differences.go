package operatorserver

import (
	"context"
	"net/http"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/environment-broker/environment-broker/internal/auth"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/httpserver"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
	"github.com/environment-broker/environment-broker/storage"
)

// compareLimit is the maximum duration of the comparison for one page. It is shorter than requestLimit, so that a slow system
// leads to an incomplete page or to an error that names the system, and not to a request timeout.
const compareLimit = 30 * time.Second

const textRestore = `The body is invalid. Send {"cursor": ""} or {"cursor": "…"} as JSON.`

// Differences compares the service with the systems behind it. Implementations are safe for concurrent use.
type Differences interface {
	// Compare returns one page of differences. A page can be empty although more follow: only an empty Compared.Next means that
	// the comparison has ended.
	Compare(ctx context.Context, request Comparison) (Compared, error)
	// Restore adds the missing row for a difference whose Restorable is true, and an audit log entry, in one transaction. If the
	// row already exists, it changes nothing and returns nil. An error of type *failure.Error says why the row cannot be added.
	Restore(ctx context.Context, difference operatorapi.Difference) error
}

// Comparison is a request for one page of differences.
type Comparison struct {
	// After is the value of Compared.Next from the previous page, or empty for the first page.
	After string
	// Limit is the number of differences after which the page ends. A page can have a few more.
	Limit int
	// Bindings requests that all runtimes be searched for ServiceAccounts whose bindings are unknown.
	Bindings bool
}

// Compared is one page of differences.
type Compared struct {
	Differences []operatorapi.Difference
	// Incomplete says which systems were not compared, or not completely, and why.
	Incomplete []string
	// Next is the position of the next page, or empty on the last page.
	Next string
}

// ListDifferences handles GET /differences.
func (a *API) ListDifferences(r *http.Request, query Query) (httpserver.Response, error) {
	bindings, err := boolean(query.Values, "bindings")
	if err != nil {
		return httpserver.Response{}, err
	}

	ctx, cancel := context.WithTimeout(r.Context(), compareLimit)
	defer cancel()

	found, err := a.Differences.Compare(ctx, Comparison{After: query.Page.BeforeID, Limit: query.Page.Size, Bindings: bindings})
	if err != nil {
		return httpserver.Response{}, err
	}

	list := operatorapi.DifferenceList{Data: found.Differences, Incomplete: found.Incomplete}
	if list.Data == nil {
		list.Data = []operatorapi.Difference{}
	}

	list.Count, list.Cursor = len(list.Data), cursorAt(found.Next)

	return httpserver.OK(list), nil
}

// cursorAt returns a position as a cursor for clients. The cursor is empty if the position is empty.
func cursorAt(position string) string {
	if position == "" {
		return ""
	}

	return storage.Cursor{ID: position}.String()
}

// RestoreDifferences handles POST /differences/restore. It compares one page again, because the differences that the user has
// seen may be outdated, and restores the restorable rows. If a restoration fails, the response lists the difference among the
// remaining ones, with the reason.
func (a *API) RestoreDifferences(r *http.Request) (httpserver.Response, error) {
	var wanted struct {
		Cursor *string `json:"cursor"`
	}

	if err := ReadStrictly(r.Body, &wanted, textRestore); err != nil {
		return httpserver.Response{}, err
	}

	if wanted.Cursor == nil {
		return httpserver.Response{}, Invalid(textRestore)
	}

	after, valid := storage.ParseCursor(*wanted.Cursor)
	if *wanted.Cursor != "" && !valid {
		return httpserver.Response{}, Invalid("cursor is invalid. Use the cursor of the previous response.")
	}

	ctx, cancel := context.WithTimeout(r.Context(), compareLimit)
	defer cancel()

	found, err := a.Differences.Compare(ctx, Comparison{After: after.ID, Limit: defaultPageSize})
	if err != nil {
		return httpserver.Response{}, err
	}

	result := operatorapi.Restoration{
		Restored: []operatorapi.Difference{}, Remaining: []operatorapi.Difference{}, Incomplete: found.Incomplete, Cursor: cursorAt(found.Next),
	}

	for _, difference := range found.Differences {
		line := a.Log.WithFields(logrus.Fields{
			logging.User: auth.FromContext(ctx).Name, logging.Kind: difference.Kind, logging.InstanceID: difference.InstanceID,
			logging.RuntimeID: difference.RuntimeID, logging.Shoot: difference.ShootName,
		})

		if difference.Restorable {
			err := a.Differences.Restore(r.Context(), difference)
			if err == nil {
				line.Info("audit: row restored")

				result.Restored = append(result.Restored, difference)

				continue
			}

			line.WithError(err).Warn("audit: row not restored")

			difference.Restorable, difference.Reason = false, failure.Of(err).ForOperators()
		}

		result.Remaining = append(result.Remaining, difference)
	}

	return httpserver.OK(result), nil
}
