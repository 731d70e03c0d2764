package faulttable

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Folder is the folder with the integration pages, relative to the repository root.
const Folder = "docs/operator/integrations"

// The columns of a fault table, except the first one.
const (
	// Shown quotes the messages that operators see in the timeline of the operation, in the events of the instance, or in the log.
	Shown = "shown"
	// Retried gives the pause after which the service repeats the call.
	Retried = "retried"
	// Ends says when the service stops repeating the call.
	Ends = "ends"
)

// Table is one fault table.
type Table struct {
	// Name is the page with the anchor of the section, such as avs.md#creation.
	Name    string
	Columns []string
	Rows    []Row
}

// Row is a row of a table. Name is the text of its first cell, without backquotes.
type Row struct {
	Name  string
	Cells []string
}

// Cell returns the cell of the row in the given column, or an empty string if the table has no such column.
func (t Table) Cell(row Row, column string) string {
	if at := slices.Index(t.Columns, column); at >= 0 && at < len(row.Cells) {
		return row.Cells[at]
	}

	return ""
}

// Find returns the row for a sub-test. The name of the sub-test is ROW or ROW/PART.
func (t Table) Find(test string) (Row, bool) {
	at := slices.IndexFunc(t.Rows, func(row Row) bool { return test == row.Name || strings.HasPrefix(test, row.Name+"/") })
	if at < 0 {
		return Row{}, false
	}

	return t.Rows[at], true
}

// Read returns the fault tables of all integration pages in the repository at root, keyed by Table.Name. Each section may have
// only one table.
func Read(root string) (map[string]Table, error) {
	pages, err := filepath.Glob(filepath.Join(root, Folder, "*.md"))
	if err != nil {
		return nil, fmt.Errorf("listing the pages: %w", err)
	}

	if len(pages) == 0 {
		return nil, fmt.Errorf("there are no pages in %s: %q is not the root of the repository", Folder, root)
	}

	found := map[string]Table{}

	for _, page := range pages {
		content, err := os.ReadFile(page)
		if err != nil {
			return nil, fmt.Errorf("reading a page: %w", err)
		}

		if err := parse(filepath.Base(page), string(content), found); err != nil {
			return nil, err
		}
	}

	return found, nil
}

// parse adds the tables of a page to found.
func parse(page, content string, found map[string]Table) error {
	var table Table

	name, began := "", false

	for line := range strings.Lines(content) {
		line = strings.TrimSpace(line)
		isRow := strings.HasPrefix(line, "|") && strings.HasSuffix(line, "|")

		switch {
		case strings.HasPrefix(line, "#"):
			name = page + "#" + anchor(line)
		case !isRow:
			began = false
		case !began:
			if _, double := found[name]; double {
				return fmt.Errorf("%s has two tables: give each its own heading", name)
			}

			began, table = true, Table{Name: name, Columns: cells(line)}
			found[name] = table
		case !strings.HasPrefix(line, "| ---"):
			row := Row{Cells: cells(line)}
			row.Name = strings.ReplaceAll(row.Cells[0], "`", "")

			table.Rows = append(table.Rows, row)
			found[name] = table
		}
	}

	return nil
}

func cells(line string) []string {
	found := strings.Split(strings.Trim(line, "|"), "|")
	for i := range found {
		found[i] = strings.TrimSpace(found[i])
	}

	return found
}

// anchor returns the anchor that GitHub generates for a heading.
func anchor(heading string) string {
	return strings.ReplaceAll(strings.ToLower(strings.TrimSpace(strings.TrimLeft(heading, "#"))), " ", "-")
}

var (
	quoted = regexp.MustCompile("`([^`]+)`")
	// variable matches the parts that can differ between two occurrences of a message: a status with its name, and a duration.
	variable = regexp.MustCompile(`HTTP status \d+(?: [A-Z][A-Za-z]*)*|within (?:\d+(?:ms|h|m|s))+`)
	status   = regexp.MustCompile(`^[45]\d\d\b`)
)

// Matches returns an error unless text, the message that a fault has caused, is one of the messages that the cell quotes. In the
// cell, an ellipsis matches any text, an HTTP status any status, and a duration any duration. An empty text means that the fault
// caused no message; it matches only a cell that begins with "nothing". test is the name of the sub-test. If it has the form
// ROW/STATUS, where STATUS is an HTTP status, a status in text must be the same.
func Matches(cell, test, text string) error {
	if text == "" && strings.HasPrefix(cell, "nothing") {
		return nil
	}

	if part := test[strings.LastIndexByte(test, '/')+1:]; strings.Contains(text, "HTTP status ") && status.MatchString(part) &&
		!strings.Contains(text, "HTTP status "+part[:3]) {
		return fmt.Errorf("the fault causes the message %q, which does not name the status %s", text, part[:3])
	}

	if text != "" && slices.ContainsFunc(Texts(cell), func(pattern *regexp.Regexp) bool { return pattern.MatchString(general(text)) }) {
		return nil
	}

	return fmt.Errorf("the fault causes the message %q, but the page says: %s", text, cell)
}

// Texts returns a regular expression for each message that the cell quotes.
func Texts(cell string) []*regexp.Regexp {
	var found []*regexp.Regexp

	for _, match := range quoted.FindAllStringSubmatch(cell, -1) {
		found = append(found, regexp.MustCompile("(?s)^"+strings.ReplaceAll(regexp.QuoteMeta(general(match[1])), "…", ".*")+"$"))
	}

	return found
}

// general replaces HTTP statuses and durations in a message with placeholders, because they may differ between the page and the
// actual message.
func general(text string) string {
	return variable.ReplaceAllStringFunc(text, func(part string) string {
		if strings.HasPrefix(part, "within ") {
			return "within DURATION"
		}

		return "HTTP status STATUS"
	})
}
