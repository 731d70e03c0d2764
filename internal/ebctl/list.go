package ebctl

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/environment-broker/environment-broker/internal/ebctl/brokerclient"
	"github.com/environment-broker/environment-broker/internal/ebctl/output"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
)

// listCommand is the name of commands that list objects.
const listCommand = "list"

// headState and headInstance are the headers of the columns with states and instance IDs.
const (
	headState    = "STATE"
	headInstance = "INSTANCE"
)

// lister implements a command that lists objects of the operator API. L is the type of a response, which contains one page of the
// list. E is the type of an entry.
type lister[L, E any] struct {
	// entries is the plural noun for the entries, for errors such as "listing operations: …".
	entries string
	// prepare, if not nil, validates and completes the filters before the first request.
	prepare func(ctx context.Context, client *brokerclient.Client) error
	// fetch returns a page of the list.
	fetch func(ctx context.Context, client *brokerclient.Client, page pageQuery) (L, error)
	// parts returns pointers to the paging fields and the entries of a list. The generated list types have no common interface.
	parts func(list *L) (*operatorapi.Page, *[]E)
	// keep returns a function that selects entries on the client, for filters that the API does not support. If it returns nil, all
	// entries are listed.
	keep func() func(E) bool
	// id returns the ID of an entry, for -o name.
	id func(entry E) string
	// table is the table without its rows; row returns the cells of an entry.
	table output.Rows
	row   func(entry E) []string
	// columns are the columns of -o csv: paths of fields in the JSON form of an entry.
	columns []string
	// layout, if not nil, returns the table and the row function for the current flags. If it returns false, the table and row
	// fields apply.
	layout func() (output.Rows, func(entry E) []string, bool)
}

// pageQuery selects a page of a list.
type pageQuery struct {
	cursor string
	// size is the maximum number of entries; 0 selects the broker's default.
	size int
	// total requests the number of entries on all pages.
	total bool
}

// listFlags contains the flags of all list commands.
type listFlags struct {
	all, total, noHeaders, watch bool
	limit                        int
	sortBy                       string
}

// command returns the list command. If withTotal is true, it has the --total flag, which not every list supports.
func (l lister[L, E]) command(session *session, short string, withTotal bool) *cobra.Command {
	var given listFlags

	command := &cobra.Command{
		Use:   listCommand,
		Short: short,
		Args:  arguments(),
		RunE: func(command *cobra.Command, _ []string) error {
			if err := given.check(session.format); err != nil {
				return err
			}

			if given.watch {
				return l.watch(command.Context(), session, given)
			}

			client, err := l.open(command.Context(), session)
			if err != nil {
				return fmt.Errorf("listing %s: %w", l.entries, err)
			}

			if given.streams(session.format) {
				return failure.While(l.export(command.Context(), session, client, given), "listing %s", l.entries)
			}

			list, err := l.list(command.Context(), client, given)
			if err != nil {
				return fmt.Errorf("listing %s: %w", l.entries, err)
			}

			page, data := l.parts(&list)

			if page.TotalCount != nil {
				fmt.Fprintf(session.Err, "Total: %d\n", *page.TotalCount)
			}

			noteMore(session, page)

			return session.print(list, l.rows(*data, given.noHeaders))
		},
	}

	flags := command.Flags()
	flags.BoolVar(&given.all, "all-pages", false, "list all entries instead of the first page")
	flags.IntVar(&given.limit, "limit", 0, "list at most this number of entries, from as many pages as needed")
	flags.BoolVar(&given.noHeaders, "no-headers", false, helpNoHeaders)
	flags.BoolVarP(&given.watch, "watch", "w", false, "list, then print entries that are new or have changed, until interrupted")
	flags.StringVar(&given.sortBy, "sort-by", "",
		"sort all entries by a field of their JSON form, such as createdAt or status.state; implies --all-pages")

	if withTotal {
		flags.BoolVar(&given.total, "total", false, "show the total number of entries on all pages")
	}

	return command
}

// check returns an error for flags that cannot be combined.
func (f listFlags) check(format output.Format) error {
	switch {
	case f.limit < 0:
		return usage("--limit must not be negative")
	case f.watch && f.total:
		return usage("--watch and --total cannot be combined")
	case format == output.CSV && (f.watch || f.total || f.sortBy != ""):
		return usage("-o csv cannot be combined with --watch, --total or --sort-by")
	default:
		return nil
	}
}

// rows returns the entries as a table, with the layout that the flags select.
func (l lister[L, E]) rows(entries []E, noHeaders bool) output.Rows {
	rows := l.table

	if l.layout != nil {
		if table, row, replaced := l.layout(); replaced {
			rows, l.row = table, row
		}
	}

	rows.NoHead, rows.IDs = noHeaders, make([]string, 0, len(entries))

	for _, entry := range entries {
		rows.Add(l.id(entry), l.row(entry)...)
	}

	return rows
}

// open calls prepare and returns a client for the session's service.
func (l lister[L, E]) open(ctx context.Context, session *session) (*brokerclient.Client, error) {
	client, err := session.client()
	if err == nil && l.prepare != nil {
		err = l.prepare(ctx, client)
	}

	return client, err
}

// list returns the first page as the broker sends it, unless a flag needs more: with --all-pages, --limit, --sort-by or a filter
// on the client, it returns a list with the entries of several pages and no cursor. With these flags, --total counts the entries
// before --limit is applied, which requires reading all pages.
func (l lister[L, E]) list(ctx context.Context, client *brokerclient.Client, given listFlags) (list L, err error) {
	var keep func(E) bool
	if l.keep != nil {
		keep = l.keep()
	}

	every := given.all || given.sortBy != "" || keep != nil
	if !every && given.limit == 0 {
		return l.fetch(ctx, client, pageQuery{total: given.total})
	}

	page, data := l.parts(&list)

	limit := given.limit
	if given.sortBy != "" || given.total {
		limit = 0 // sorting and counting need all entries
	}

	if *data, err = l.collect(ctx, client, given.pageSize(every || given.total), limit, keep); err != nil {
		return list, err
	}

	if given.sortBy != "" {
		if err := sortBy(*data, given.sortBy); err != nil {
			return list, err
		}
	}

	total := len(*data)
	if given.limit > 0 {
		*data = (*data)[:min(given.limit, total)]
	}

	page.Count = len(*data)
	if given.total {
		page.TotalCount = &total
	}

	return list, nil
}

// collect returns up to limit entries from all pages; 0 means no limit. If keep is not nil, collect returns only entries for
// which keep returns true.
func (l lister[L, E]) collect(ctx context.Context, client *brokerclient.Client, pageSize, limit int, keep func(E) bool) ([]E, error) {
	found := []E{}

	for entry, err := range brokerclient.All(func(cursor string) ([]E, string, error) {
		next, err := l.fetch(ctx, client, pageQuery{cursor: cursor, size: pageSize})
		page, data := l.parts(&next)

		return *data, page.Cursor, err
	}) {
		if err != nil {
			return nil, err
		}

		if keep == nil || keep(entry) {
			found = append(found, entry)
		}

		if limit > 0 && len(found) == limit {
			break
		}
	}

	return found, nil
}

// pageSize returns the size of the pages to request; 0 means the broker's default. The size is at most --limit, unless all
// entries must be read anyway because every is true.
func (f listFlags) pageSize(every bool) int {
	const brokersOwn = 50
	if every || f.limit >= brokersOwn {
		return 0
	}

	return f.limit
}

// sortBy sorts the entries by a field of their JSON form. The sort is stable and ascending. If no entry has the field, it returns
// a usage error.
func sortBy[E any](entries []E, field string) error {
	path, err := output.Path(field)
	if err != nil {
		return &usageError{cause: fmt.Errorf("--sort-by: %w", err)}
	}

	type keyed struct {
		entry E
		key   any
	}

	var (
		sorted = make([]keyed, 0, len(entries))
		found  bool
	)

	for _, entry := range entries {
		decoded, err := output.Decoded(entry)
		if err != nil {
			return err
		}

		results, err := path.FindResults(decoded)
		if err != nil {
			return usage("--sort-by %s: %w", field, err)
		}

		next := keyed{entry: entry}
		if len(results) > 0 && len(results[0]) > 0 {
			next.key, found = valueOf(results[0][0]), true
		}

		sorted = append(sorted, next)
	}

	if !found && len(entries) > 0 {
		return usage("--sort-by: no entry has the field %s; -o json shows all fields", field)
	}

	slices.SortStableFunc(sorted, func(one, other keyed) int { return compare(one.key, other.key) })

	for i := range sorted {
		entries[i] = sorted[i].entry
	}

	return nil
}

// valueOf returns the value of a JSONPath result, or nil if it has none.
func valueOf(found reflect.Value) any {
	if !found.IsValid() || !found.CanInterface() {
		return nil
	}

	return found.Interface()
}

// compare compares decoded JSON values: numbers numerically, times chronologically, and everything else as text. Missing values
// come first.
func compare(one, other any) int {
	first, firstIsNumber := one.(float64)
	second, secondIsNumber := other.(float64)

	if firstIsNumber && secondIsNumber {
		return cmp.Compare(first, second)
	}

	began, err := time.Parse(time.RFC3339, textOf(one))
	if err == nil {
		if ended, err := time.Parse(time.RFC3339, textOf(other)); err == nil {
			return began.Compare(ended)
		}
	}

	return strings.Compare(textOf(one), textOf(other))
}

// textOf returns a decoded JSON value as text, or an empty string for a missing value.
func textOf(value any) string {
	switch value := value.(type) {
	case nil:
		return ""
	case string:
		return value
	default:
		encoded, _ := json.Marshal(value) //nolint:errchkjson // decoded from JSON

		return string(encoded)
	}
}
