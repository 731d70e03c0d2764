package chain

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"time"
)

// The values of Record.Source, which identify the table of the covered row.
const (
	SourceEntry     = "entry"
	SourceOperation = "operation"
)

// timeLayout is the form of times in digests and records: UTC with microseconds.
const timeLayout = "2006-01-02T15:04:05.000000Z"

// saltSize is the size of a salt in bytes.
const saltSize = 16

// TimeText formats a time for digests and records. It returns "" for the zero time.
func TimeText(moment time.Time) string {
	if moment.IsZero() {
		return ""
	}

	return moment.UTC().Format(timeLayout)
}

// Row contains the columns of a covered row as strings. A field is empty if the table has no such column.
type Row struct {
	At            string `json:"at"`
	Action        string `json:"action"`
	InstanceID    string `json:"instanceID,omitempty"`
	OperationID   string `json:"operationID,omitempty"`
	PredecessorID string `json:"predecessorID,omitempty"`
	// Status is empty for operations.
	Status  string `json:"status,omitempty"`
	Account string `json:"account,omitempty"`
	// KeepUntil must agree with Record.KeepUntil; see Record.keeps.
	KeepUntil string `json:"keepUntil,omitempty"`
	// OrderedBy and Entry are the personal fields. Entry is JSON.
	OrderedBy string `json:"orderedBy,omitempty"`
	Entry     string `json:"entry,omitempty"`
	// ErasedBy is the ID of the audit entry for the erasure that removed the row's personal fields, or empty. The digests do not
	// cover it.
	ErasedBy string `json:"erasedBy,omitempty"`
}

// Record is a link of the chain. Times are in the form of TimeText.
type Record struct {
	// Number is the position in the chain. The first is 1.
	Number    int64  `json:"number"`
	ChainedAt string `json:"chainedAt"`
	// Source and ID identify the covered row.
	Source string `json:"source"`
	ID     string `json:"id"`
	// KeepUntil is the end of the retention period, or empty if the row is kept forever.
	KeepUntil string `json:"keepUntil,omitempty"`
	// Salt is the random salt of the personal digest. It is empty if the row was erased or removed.
	Salt string `json:"salt,omitempty"`
	// Personal is the digest of the personal fields. It is empty if the row was erased before it was chained.
	Personal string `json:"personal,omitempty"`
	Content  string `json:"content"`
	Hash     string `json:"hash"`
	// Row is nil if the row does not exist.
	Row *Row `json:"row,omitempty"`
}

// Seal sets the salt, the digests and the hash of a new record. previous is the hash of the preceding record, or empty for the first.
// All other fields must be set.
func (r *Record) Seal(previous string) {
	r.Salt, r.Personal = "", ""

	if r.Row.ErasedBy == "" {
		salt := make([]byte, saltSize)
		_, _ = rand.Read(salt) // never fails

		r.Salt = hex.EncodeToString(salt)
		r.Personal = r.personal()
	}

	r.Content = r.content()
	r.Hash = r.link(previous, r.Number)
}

func (r *Record) personal() string { return digest(r.Salt, r.Row.OrderedBy, r.Row.Entry) }

func (r *Record) content() string {
	row := r.Row

	return digest(row.At, row.Action, row.InstanceID, row.OperationID, row.PredecessorID, row.Status, row.Account, r.Personal)
}

// keeps reports whether until, the end of the retention period in the row, agrees with the record. Earlier releases chained
// operations without a retention period. For these, any value of until agrees, but the operations must never be removed.
func (r *Record) keeps(until string) bool {
	return until == r.KeepUntil || r.KeepUntil == "" && r.Source == SourceOperation
}

// link returns the hash that the record would have at the position number, after a record with the hash previous.
func (r *Record) link(previous string, number int64) string {
	return digest(previous, strconv.FormatInt(number, 10), r.Source, r.ID, r.ChainedAt, r.KeepUntil, r.Content)
}

// digest hashes the fields, each preceded by its length so that field boundaries are unambiguous.
func digest(fields ...string) string {
	hash := sha256.New()

	for _, field := range fields {
		hash.Write(strconv.AppendInt(nil, int64(len(field)), 10))
		hash.Write([]byte(":" + field + ","))
	}

	return hex.EncodeToString(hash.Sum(nil))
}

// Head identifies the last record of a chain.
type Head struct {
	Number int64  `json:"number"`
	Hash   string `json:"hash"`
}

// Unchained identifies a row without a record.
type Unchained struct {
	Source string `json:"source"`
	ID     string `json:"id"`
	At     string `json:"at"`
}
