package takeover

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/environment-broker/environment-broker/internal/objectdiff"
)

// Report is the result of one run of the adopt command.
type Report struct {
	// Program is the former program. Objects is the plural noun for its rows: runtimes or instances.
	Program string `json:"program"`
	Objects string `json:"objects"`
	DryRun  bool   `json:"dryRun"`
	// Found is the number of selected rows. Each row was adopted by this run, adopted by an earlier run, or skipped.
	Found   int `json:"found"`
	Adopted int `json:"adopted"`
	Earlier int `json:"adoptedEarlier"`
	// Skipped are the rows that were not adopted.
	Skipped []Skipped `json:"skipped"`
	// ShootsChanged contains the names of the Shoots that were patched or, in a dry run, would be.
	ShootsChanged []string `json:"shootsChanged"`
	// Notes are remarks about adopted rows and about objects without a row.
	Notes []string `json:"notes"`
	// Previews describe what the first change of each adopted row will modify. In a dry run, they describe the rows that would be
	// adopted.
	Previews []Preview `json:"previews,omitempty"`
	// FirstChange lists additional effects that the first change of each adopted Shoot will have.
	FirstChange []string `json:"firstChange,omitempty"`
	// Irreversible lists the changes of this run that nothing can undo.
	Irreversible []string `json:"irreversible,omitempty"`
	// LeftBehind lists what no program cleans up after the takeover.
	LeftBehind []string `json:"leftBehind"`
}

// Preview lists the fields that the first change of a row after its adoption will modify.
type Preview struct {
	ID      string              `json:"id"`
	Name    string              `json:"name"`
	Changes []objectdiff.Change `json:"changes"`
}

// Skipped is a row that was not adopted.
type Skipped struct {
	ID     string `json:"id"`
	Name   string `json:"name,omitempty"`
	Reason string `json:"reason"`
}

// Skip records a row that is not adopted.
func (r *Report) Skip(id, name, reason string) {
	r.Skipped = append(r.Skipped, Skipped{ID: id, Name: name, Reason: reason})
}

// Note adds a formatted remark to Notes.
func (r *Report) Note(format string, args ...any) {
	r.Notes = append(r.Notes, fmt.Sprintf(format, args...))
}

// Err returns an error if rows were skipped, so that the command fails.
func (r *Report) Err() error {
	if len(r.Skipped) == 0 {
		return nil
	}

	return fmt.Errorf("%d of %d %s were not adopted: resolve the problems listed in the report, and run the command again", len(r.Skipped), r.Found, r.Objects)
}

// Write writes the report as text, or as JSON.
func (r *Report) Write(output io.Writer, asJSON bool) error {
	if asJSON {
		encoder := json.NewEncoder(output)
		encoder.SetIndent("", "  ")

		return encoder.Encode(r)
	}

	adopted := "adopted"
	if r.DryRun {
		adopted = "to adopt"
	}

	fmt.Fprintf(output, "%s of %s: %d found, %d %s, %d adopted earlier, %d skipped\n", r.Objects, r.Program, r.Found, r.Adopted, adopted,
		r.Earlier, len(r.Skipped))

	var skipped []string
	for _, each := range r.Skipped {
		skipped = append(skipped, fmt.Sprintf("%s %s: %s", each.ID, each.Name, each.Reason))
	}

	changed := "Shoots changed"
	if r.DryRun {
		changed = "Shoots to change"
	}

	previewed := 0

	var previews []string

	for _, each := range r.Previews {
		if len(each.Changes) == 0 {
			continue
		}

		previewed++
		previews = append(previews, each.ID+" "+each.Name)

		for _, change := range each.Changes {
			previews = append(previews, "  "+change.String())
		}
	}

	for _, part := range []struct {
		title string
		count int
		lines []string
	}{
		{"skipped", len(skipped), skipped},
		{changed, len(r.ShootsChanged), r.ShootsChanged},
		{"cannot be undone", len(r.Irreversible), r.Irreversible},
		{"notes", len(r.Notes), r.Notes},
		{"the first change of each Shoot also changes", len(r.FirstChange), r.FirstChange},
		{"the first change, field by field", previewed, previews},
		{"not cleaned up", len(r.LeftBehind), r.LeftBehind},
	} {
		if len(part.lines) == 0 {
			continue
		}

		fmt.Fprintf(output, "\n%s (%d):\n", part.title, part.count)

		for _, line := range part.lines {
			fmt.Fprintf(output, "  %s\n", line)
		}
	}

	return nil
}
