package chain

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
)

// format identifies the file format in the first line.
const format = "environment-broker audit chain 1"

// maxLine is the maximum length of a line in a file, in bytes.
const maxLine = 16 << 20

// Line is a line of an export: one JSON object with exactly one of these fields. The first line is a Header, and the last is an
// End.
type Line struct {
	Header    *Header    `json:"header,omitempty"`
	Record    *Record    `json:"record,omitempty"`
	Unchained *Unchained `json:"unchained,omitempty"`
	End       *End       `json:"end,omitempty"`
}

// Header is the first line of a file.
type Header struct {
	Format string `json:"format"`
	// Service is broker or provisioner.
	Service    string `json:"service"`
	ExportedAt string `json:"exportedAt"`
	// After identifies the last record before the records in the file. It is zero if the file starts with the first record of the
	// chain.
	After Head `json:"after"`
	// Archive means that the chain may continue after the records in the file. Archives of earlier releases lack this field.
	Archive bool `json:"archive,omitempty"`
}

// End is the last line of a file.
type End struct {
	// Records is the number of lines that contain a record. Unchained is the number of lines that contain a row without a record.
	Records   int64 `json:"records"`
	Unchained int64 `json:"unchained"`
	// Head is the last record of the chain according to the service.
	Head Head `json:"head"`
}

// Writer writes the lines of an export. Its methods return the errors of the underlying writer.
type Writer struct {
	encoder *json.Encoder
	end     End
}

// NewWriter returns a writer for an export of the whole chain, and writes the first line of the file.
func NewWriter(to io.Writer, service string, now time.Time) (*Writer, error) {
	return newWriter(to, Header{Service: service, ExportedAt: TimeText(now)})
}

// NewArchiveWriter returns a writer for the records that follow after, and writes the first line of the file.
func NewArchiveWriter(to io.Writer, service string, now time.Time, after Head) (*Writer, error) {
	return newWriter(to, Header{Service: service, ExportedAt: TimeText(now), After: after, Archive: true})
}

func newWriter(to io.Writer, header Header) (*Writer, error) {
	encoder := json.NewEncoder(to)
	encoder.SetEscapeHTML(false)

	header.Format = format

	return &Writer{encoder: encoder}, encoder.Encode(Line{Header: &header})
}

// Record writes a record.
func (w *Writer) Record(record Record) error {
	w.end.Records++

	return w.encoder.Encode(Line{Record: &record})
}

// Unchained writes a row that has no record in the chain.
func (w *Writer) Unchained(row Unchained) error {
	w.end.Unchained++

	return w.encoder.Encode(Line{Unchained: &row})
}

// End writes the last line. head is the head of the chain according to the service.
func (w *Writer) End(head Head) error {
	w.end.Head = head

	return w.encoder.Encode(Line{End: &w.end})
}

// ErrIncomplete reports a file that lacks lines, for example because it was cut off.
var ErrIncomplete = errors.New("the file is incomplete: its last line is missing, or the counts in the last line do not match the other lines")

// FileVerifier verifies a chain in one or several files, such as the files of an archive followed by an export. Use
// NewFileVerifier.
type FileVerifier struct {
	options  Options
	verifier *Verifier
	// head is the head of the chain according to the file that was added last.
	head Head
}

// NewFileVerifier returns a verifier with the given options, except for Now, After and Continues: the verifier takes their values
// from the files.
func NewFileVerifier(options Options) *FileVerifier { return &FileVerifier{options: options} }

// Add verifies a file. Each file must continue the previous one, or start with the first record, because an export repeats the
// records of archives. Add returns an error if the file is damaged, has an unknown format, or does not continue the previous
// file. Problems in the chain itself are reported by Finish.
func (f *FileVerifier) Add(file io.Reader) error {
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, maxLine)

	var (
		end *End
		got End
		// repeated means that the file starts with the first record of the chain although another file has been added before.
		repeated bool
	)

	for number := 1; lines.Scan(); number++ {
		var line Line
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			return fmt.Errorf("line %d is not JSON: %w", number, err)
		}

		if (line.Header != nil) != (number == 1) || end != nil {
			return fmt.Errorf("line %d: the first line must be the header, no other line may be a header, and nothing may follow the end of the chain", number)
		}

		switch {
		case line.Header != nil:
			var err error
			if repeated, err = f.begin(*line.Header); err != nil {
				return err
			}
		case line.Record != nil:
			got.Records++

			if !repeated || line.Record.Number > f.verifier.last.Number {
				f.verifier.Add(*line.Record)
			} else if line.Record.Number == f.verifier.last.Number && line.Record.Hash != f.verifier.last.Hash {
				f.verifier.problem(*line.Record, Changed, "the hash of the record differs from that in the previous file")
			}
		case line.Unchained != nil:
			got.Unchained++
			f.verifier.AddUnchained(*line.Unchained)
		case line.End != nil:
			end = line.End
		default:
			return fmt.Errorf("line %d has none of the fields header, record, unchained or end", number)
		}
	}

	if err := lines.Err(); err != nil {
		return fmt.Errorf("reading the file: %w", err)
	}

	if end == nil || end.Records != got.Records || end.Unchained != got.Unchained {
		return ErrIncomplete
	}

	f.head = end.Head

	return nil
}

// begin checks the header of a file. repeated reports whether the file starts with the first record of the chain although another
// file has been added before.
func (f *FileVerifier) begin(header Header) (repeated bool, err error) {
	if header.Format != format {
		return false, fmt.Errorf("the file has the format %q, but %q is required", header.Format, format)
	}

	exported, err := time.Parse(timeLayout, header.ExportedAt)
	if err != nil {
		return false, fmt.Errorf("the exportedAt time in the header is invalid: %w", err)
	}

	f.options.Now = exported

	switch {
	case f.verifier == nil:
		f.options.After = header.After
		f.verifier = NewVerifier(f.options)
	case header.After == (Head{}):
		repeated = true
	case header.After != f.verifier.last:
		return false, fmt.Errorf("the file continues record %d with the hash %s, but the previous file ends with record %d and the hash %s",
			header.After.Number, header.After.Hash, f.verifier.last.Number, f.verifier.last.Hash)
	}

	f.verifier.setNow(exported)
	f.verifier.options.Continues = header.Archive

	return repeated, nil
}

// Finish returns the result. At least one file must have been added.
func (f *FileVerifier) Finish() Report { return f.verifier.Finish(f.head) }
