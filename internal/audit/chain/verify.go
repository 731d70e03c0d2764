package chain

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"
)

// The kinds of problems in a chain.
const (
	// Changed means that a row or a record differs from its digest.
	Changed = "changed"
	// Missing means that a row was removed before the end of its retention period, or that records before the end of the chain
	// were removed.
	Missing = "missing"
	// Reordered means that records have swapped their positions.
	Reordered = "reordered"
	// NotChained means that a row has no record, although it should have one by now: its time was backdated, or no replica is
	// adding records to the chain.
	NotChained = "unchained"
	// Truncated means that the chain no longer contains a record at which it once ended.
	Truncated = "truncated"
)

const (
	// maxProblems is the maximum number of problems in a report. Truncations are listed in addition.
	maxProblems = 20
	// maxErasures is the maximum number of erasures that a report lists.
	maxErasures = 100
)

// Problem describes a broken row or record.
type Problem struct {
	// Number is the number of the record, or 0 if the row has none.
	Number int64  `json:"number,omitempty"`
	Source string `json:"source,omitempty"`
	// ID is the ID of the entry or operation.
	ID      string `json:"id,omitempty"`
	Problem string `json:"problem"`
	Detail  string `json:"detail"`
}

// Text names the broken row and its problem in one line.
func (p Problem) Text() string {
	text := p.Problem + ": " + p.Detail
	if p.ID != "" {
		text = p.Source + " " + p.ID + ", " + text
	}

	if p.Number > 0 {
		text = "record " + strconv.FormatInt(p.Number, 10) + ", " + text
	}

	return text
}

// Erasure describes an erasure of an account's personal data from rows of the chain.
type Erasure struct {
	// EntryID is the ID of the erasure's entry in the audit log.
	EntryID string `json:"entryID"`
	At      string `json:"at,omitempty"`
	By      string `json:"by,omitempty"`
	Account string `json:"account,omitempty"`
	// Operations and Entries are the numbers of erased rows that still exist.
	Operations int `json:"operations"`
	Entries    int `json:"entries"`
}

// Report is the result of a verification.
type Report struct {
	Valid bool `json:"valid"`
	// Problems contains the first problems in the order in which they were found. ProblemCount is the total number.
	Problems     []Problem `json:"problems"`
	ProblemCount int       `json:"problemCount"`
	Records      int64     `json:"records"`
	// ChainedSince is when the first record was chained. Older is the number of rows that were written before that time: the
	// chain proves only that they have not changed since they were chained.
	ChainedSince string `json:"chainedSince,omitempty"`
	Older        int64  `json:"older"`
	// Head identifies the last record. Since is the number of records after the one with the hash Options.SinceHead.
	Head  Head   `json:"head"`
	Since *int64 `json:"sinceHead,omitempty"`
	// Removed is the number of rows that were removed after their retention period.
	Removed int64 `json:"removed"`
	// Pending is the number of rows that are too recent to be chained.
	Pending  int64     `json:"pending"`
	Erasures []Erasure `json:"erasures"`
	// Erased is the number of rows whose personal data was erased, and that have not been removed.
	Erased int64 `json:"erased"`
}

// DefaultMaxUnchained is the usual value of Options.MaxUnchained. Replicas normally add the record of a row within seconds.
const DefaultMaxUnchained = 10 * time.Minute

// readingTime is how long after Options.Now a row may be removed because its retention period has ended. Reading a long chain takes
// minutes, in which retention removes rows, and the clocks of clients differ from the services' clocks.
const readingTime = time.Hour

// Options configures a Verifier.
type Options struct {
	// Now is the time at which the export began. Rows whose retention period has ended by then, or within readingTime, may be missing.
	Now time.Time
	// MaxUnchained is how long a row may remain without a record.
	MaxUnchained time.Duration
	// SinceHead is the hash of an earlier head that the chain must contain, or empty.
	SinceHead string
	// After identifies the last record before the first one to verify. The zero Head means that verification starts with the
	// first record of the chain.
	After Head
	// Continues means that the chain has records after those to verify. Erased rows may then refer to erasures whose entries come
	// later.
	Continues bool
}

// Verifier verifies records in the order of their numbers. Use NewVerifier.
type Verifier struct {
	options Options
	report  Report
	// removable is the latest end of the retention period of rows that may be missing.
	removable string
	last      Head
	// broken identifies the record before the first one whose hash does not match. If the hash of a later record fits the
	// position after broken, the records were reordered. index is the index of the problem in the report.
	broken *Head
	index  int
	// erasures contains the audit entries of erasures, keyed by ID. emptied counts the rows that refer to each erasure, keyed by the
	// ID of the erasure's entry.
	erasures map[string]erasureEntry
	emptied  map[string]*emptied
	// order contains the keys of emptied, sorted by when the first row for each key was found.
	order []string
	// pending contains the IDs of the rows that are not chained yet.
	pending map[string]bool
}

// erasureEntry is the audit entry of an erasure. operations and entries are the numbers of rows that were erased according to the
// entry, whereas the fields of Erasure count the rows that were found.
type erasureEntry struct {
	Erasure

	operations, entries int
}

// emptied counts the rows that refer to the same erasure. accounts contains one of these rows for each account.
type emptied struct {
	operations, entries int
	first, last         Record
	accounts            map[string]Record
}

// NewVerifier returns a verifier that has not seen any record.
func NewVerifier(options Options) *Verifier {
	verifier := &Verifier{
		options: options, last: options.After,
		report:   Report{Problems: []Problem{}, Erasures: []Erasure{}},
		erasures: map[string]erasureEntry{}, emptied: map[string]*emptied{}, pending: map[string]bool{},
	}
	verifier.setNow(options.Now)

	return verifier
}

// setNow sets the time at which the export of the records that follow began.
func (v *Verifier) setNow(now time.Time) {
	v.options.Now, v.removable = now, TimeText(now.Add(readingTime))
}

// Add verifies the next record.
func (v *Verifier) Add(record Record) {
	v.report.Records++

	if v.report.ChainedSince == "" {
		v.report.ChainedSince = record.ChainedAt
	}

	if v.options.SinceHead != "" && record.Hash == v.options.SinceHead {
		v.report.Since = new(int64)
	} else if v.report.Since != nil {
		*v.report.Since++
	}

	v.checkLink(record)
	v.checkRow(record)
	v.last = Head{Number: record.Number, Hash: record.Hash}
}

// checkLink compares the position and the hash of a record with the record before it.
func (v *Verifier) checkLink(record Record) {
	wanted := v.last.Number + 1

	switch {
	case record.Number > wanted:
		v.problem(record, Missing, removedText(wanted, record.Number-1))
	case record.Number < wanted:
		v.problem(record, Reordered, "the number of the record is not higher than the previous record's")
	case record.link(v.last.Hash, record.Number) != record.Hash:
		if v.broken == nil {
			before := v.last
			v.broken, v.index = &before, v.report.ProblemCount
		}

		v.problem(record, Changed, "the hash of the record does not follow from the record before it: a record was changed, inserted or moved")
	}

	if broken := v.broken; broken != nil && record.Number > broken.Number+1 && v.index < len(v.report.Problems) &&
		record.link(broken.Hash, broken.Number+1) == record.Hash {
		v.report.Problems[v.index].Problem = Reordered
		v.report.Problems[v.index].Detail = fmt.Sprintf("record %d belongs to this position: records have swapped positions", record.Number)
		v.broken = nil
	}
}

// removedText describes the removal of the records with the numbers from first to last.
func removedText(first, last int64) string {
	if first == last {
		return fmt.Sprintf("record %d, which precedes this one, was removed", first)
	}

	return fmt.Sprintf("the %d records before this one (%d to %d) were removed", last-first+1, first, last)
}

// checkRow compares the row of a record with its digests.
func (v *Verifier) checkRow(record Record) {
	row := record.Row

	if row == nil {
		if record.KeepUntil == "" || record.KeepUntil > v.removable {
			v.problem(record, Missing, "the row was removed before the end of its retention period")

			return
		}

		v.report.Removed++

		return
	}

	if row.At < v.report.ChainedSince {
		v.report.Older++
	}

	if row.ErasedBy != "" {
		v.checkErased(record)
	} else if record.personal() != record.Personal {
		v.problem(record, Changed, "the user or the entry differs from its digest")

		return
	}

	if record.content() != record.Content || !record.keeps(row.KeepUntil) {
		v.problem(record, Changed, "the time, action, status, account, retention period or an ID differs from its digest")

		return
	}

	v.noteErasure(record)
}

// checkErased checks that a row that refers to an erasure has no personal fields, and counts the row. Finish checks that there
// are no more such rows than the erasure's entry states.
func (v *Verifier) checkErased(record Record) {
	row := record.Row
	v.report.Erased++

	if row.OrderedBy != "" || row.Entry != "{}" && (row.Entry != "" || record.Source != SourceOperation) {
		v.problem(record, Changed, "the row refers to an erasure but still contains personal data")
	}

	found := v.emptied[row.ErasedBy]
	if found == nil {
		found = &emptied{first: record, accounts: map[string]Record{}}
		v.emptied[row.ErasedBy] = found
		v.order = append(v.order, row.ErasedBy)
	}

	found.last = record

	if record.Source == SourceOperation {
		found.operations++
	} else {
		found.entries++
	}

	// Skip entries without an account. They belong to the account of their instance or operation, which the chain does not
	// contain.
	if _, seen := found.accounts[row.Account]; !seen && (row.Account != "" || record.Source == SourceOperation) {
		found.accounts[row.Account] = record
	}
}

// noteErasure stores the record's entry for checkErasures if it describes an erasure.
func (v *Verifier) noteErasure(record Record) {
	if record.Source != SourceEntry || record.Row.Action != "erase" || record.Row.Status != "200" {
		return
	}

	var entry struct {
		After struct {
			Operations   int `json:"operations"`
			AuditEntries int `json:"auditEntries"`
		} `json:"after"`
	}

	// Ignore the error: without numbers in the entry, both stay 0, so checkExtent reports a problem if any row refers to this
	// erasure.
	_ = json.Unmarshal([]byte(record.Row.Entry), &entry)

	v.erasures[record.ID] = erasureEntry{
		Erasure:    Erasure{EntryID: record.ID, At: record.Row.At, By: record.Row.OrderedBy, Account: record.Row.Account},
		operations: entry.After.Operations, entries: entry.After.AuditEntries,
	}
}

// AddUnchained adds a row without a record. The row is a problem if it is older than Options.MaxUnchained, and pending otherwise.
func (v *Verifier) AddUnchained(row Unchained) {
	v.pending[row.ID] = true

	if row.At >= TimeText(v.options.Now.Add(-v.options.MaxUnchained)) {
		v.report.Pending++

		return
	}

	v.problem(Record{Source: row.Source, ID: row.ID}, NotChained, fmt.Sprintf(
		"the row with the time %s has no record: it was inserted with an old time, or no replica is adding records", row.At))
}

// Finish returns the result. head is the head of the chain according to the service, or the zero Head if it is unknown.
func (v *Verifier) Finish(head Head) Report {
	if head.Number > v.last.Number {
		v.truncated(fmt.Sprintf("the service has chained %d records, but those after record %d were removed", head.Number, v.last.Number))
	}

	if v.options.SinceHead != "" && v.report.Since == nil {
		if v.options.SinceHead == v.options.After.Hash {
			v.report.Since = &v.report.Records
		} else {
			v.truncated("the chain does not contain the head " + v.options.SinceHead + ": records were removed or replaced")
		}
	}

	v.checkErasures()

	v.report.Head, v.report.Valid = v.last, v.report.ProblemCount == 0

	return v.report
}

// Partial returns the result for the records that have been added so far. It does not check the end of the chain or the erasures,
// because these checks need the whole chain.
func (v *Verifier) Partial() Report {
	v.report.Head, v.report.Valid = v.last, v.report.ProblemCount == 0

	return v.report
}

// truncated adds a problem at the end of the chain. The report lists it before the problems with rows that have no record.
func (v *Verifier) truncated(detail string) {
	v.report.ProblemCount++

	at := slices.IndexFunc(v.report.Problems, func(problem Problem) bool { return problem.Problem == NotChained })
	if at < 0 {
		at = len(v.report.Problems)
	}

	v.report.Problems = slices.Insert(v.report.Problems, at, Problem{Number: v.last.Number, Problem: Truncated, Detail: detail})
}

// checkErasures compares the erased rows with the audit entries of their erasures.
func (v *Verifier) checkErasures() {
	for _, id := range v.order {
		found := v.emptied[id]

		erasure, known := v.erasures[id]
		if !known {
			if !v.pending[id] && v.options.After.Number == 0 && !v.options.Continues {
				v.problem(found.first, Changed, "the row refers to the erasure "+id+", which has no entry in the audit log")
			}

			erasure.EntryID = id
		} else {
			v.checkExtent(erasure, found)
		}

		erasure.Operations, erasure.Entries = found.operations, found.entries

		if len(v.report.Erasures) < maxErasures {
			v.report.Erasures = append(v.report.Erasures, erasure.Erasure)
		}
	}
}

// checkExtent checks that no more rows refer to an erasure than the erasure's entry states, and that they belong to the same
// account as the erasure.
func (v *Verifier) checkExtent(erasure erasureEntry, found *emptied) {
	for _, account := range slices.Sorted(maps.Keys(found.accounts)) {
		if account != erasure.Account {
			v.problem(found.accounts[account], Changed,
				fmt.Sprintf("the row belongs to account %q, but refers to the erasure %s of account %q", account, erasure.EntryID, erasure.Account))
		}
	}

	if found.operations > erasure.operations || found.entries > erasure.entries {
		v.problem(found.last, Changed,
			fmt.Sprintf("more rows refer to the erasure %s (operations: %d, entries: %d) than it erased (operations: %d, entries: %d): "+
				"the reference of this row or of an earlier one was forged",
				erasure.EntryID, found.operations, found.entries, erasure.operations, erasure.entries))
	}
}

// problem adds a problem to the report, which lists only the first maxProblems.
func (v *Verifier) problem(record Record, problem, detail string) {
	v.report.ProblemCount++

	if len(v.report.Problems) < maxProblems {
		v.report.Problems = append(v.report.Problems, Problem{
			Number: record.Number, Source: record.Source, ID: record.ID, Problem: problem, Detail: detail,
		})
	}
}
