package chain_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/environment-broker/environment-broker/internal/audit/chain"
)

var now = time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)

// recordsOf returns a chain of records.
func recordsOf(length int) []chain.Record {
	records, previous := []chain.Record{}, ""

	for number := range length {
		record := chain.Record{
			Number: int64(number) + 1, ChainedAt: chain.TimeText(now), Source: chain.SourceEntry, ID: fmt.Sprintf("e%d", number+1),
			Row: &chain.Row{At: chain.TimeText(now), Action: "cancel", OrderedBy: "alice", Entry: "{}"},
		}
		record.Seal(previous)
		previous = record.Hash
		records = append(records, record)
	}

	return records
}

// export writes records to a file.
func export(t *testing.T, records []chain.Record, head chain.Head) []byte {
	t.Helper()

	var file bytes.Buffer

	writer, err := chain.NewWriter(&file, "broker", now)
	if err != nil {
		t.Fatal(err)
	}

	for _, record := range records {
		err = errors.Join(err, writer.Record(record))
	}

	if err := errors.Join(err, writer.End(head)); err != nil {
		t.Fatal(err)
	}

	return file.Bytes()
}

// verifyFile verifies a file.
func verifyFile(file io.Reader, options chain.Options) (chain.Report, error) {
	verifier := chain.NewFileVerifier(options)
	if err := verifier.Add(file); err != nil {
		return chain.Report{}, err
	}

	return verifier.Finish(), nil
}

func headOf(records []chain.Record) chain.Head {
	last := records[len(records)-1]

	return chain.Head{Number: last.Number, Hash: last.Hash}
}

// TestDigestsAreStable checks that the definition of the digests does not change: chains of earlier releases must stay valid.
func TestDigestsAreStable(t *testing.T) {
	record := chain.Record{
		Number: 1, ChainedAt: "2030-01-02T03:04:05.000000Z", Source: "entry", ID: "e1", KeepUntil: "2031-01-02T03:04:05.000000Z",
		Row: &chain.Row{
			At: "2030-01-02T03:04:05.000000Z", Action: "bind", InstanceID: "i", OperationID: "o", Status: "409", Account: "a",
			KeepUntil: "2031-01-02T03:04:05.000000Z", Entry: "{}", ErasedBy: "e0", // an erased row has no salt, which would be random
		},
	}
	record.Seal("previous")

	const want = "bff8dae5158a53bd7cfb7f669768f2915fcd52dc9950e9d5c5c18faad2419e97"
	if record.Hash != want {
		t.Errorf("want %s, got %s", want, record.Hash)
	}
}

// TestFileNamesTheFirstBrokenLine changes each record of a file, removes it, and cuts the file before it. The verification names a changed
// record, and reports that the other files are incomplete.
func TestFileNamesTheFirstBrokenLine(t *testing.T) {
	records := recordsOf(20)
	file := string(export(t, records, headOf(records)))

	report, err := verifyFile(strings.NewReader(file), chain.Options{SinceHead: records[4].Hash})
	if err != nil || !report.Valid || report.Records != 20 || *report.Since != 15 {
		t.Fatalf("want a valid file with 15 records since the head, got %+v, %v", report, err)
	}

	lines := strings.SplitAfter(file, "\n")

	for number := 1; number <= 20; number++ {
		damaged := strings.Replace(lines[number], "alice", "mallory", 1)
		text := strings.Join(lines[:number], "") + damaged + strings.Join(lines[number+1:], "")

		report, err := verifyFile(strings.NewReader(text), chain.Options{})
		if err != nil || report.Valid || report.Problems[0].Number != int64(number) {
			t.Errorf("record %d: got %+v, %v", number, report, err)
		}

		text = strings.Join(lines[:number], "") + strings.Join(lines[number+1:], "")
		if _, err := verifyFile(strings.NewReader(text), chain.Options{}); !errors.Is(err, chain.ErrIncomplete) {
			t.Errorf("without record %d: want an incomplete file, got %v", number, err)
		}

		text = strings.Join(lines[:number], "")
		if _, err := verifyFile(strings.NewReader(text), chain.Options{}); !errors.Is(err, chain.ErrIncomplete) {
			t.Errorf("cut before record %d: want an incomplete file, got %v", number, err)
		}
	}
}

func TestRemovedRecords(t *testing.T) {
	for after, want := range map[int]string{
		3: "record 3, which precedes this one, was removed",
		5: "the 3 records before this one (3 to 5) were removed",
	} {
		records := recordsOf(6)
		verifier := chain.NewVerifier(chain.Options{Now: now})

		for _, record := range slices.Concat(records[:2], records[after:]) {
			verifier.Add(record)
		}

		if report := verifier.Finish(chain.Head{}); len(report.Problems) != 1 || report.Problems[0].Detail != want {
			t.Errorf("want the problem %q, got %+v", want, report.Problems)
		}
	}
}

// TestRowsRemovedDuringTheExport checks that a row may be missing if its retention period ends soon after the export began: retention removes
// it while a long chain is read, or the clock of the client lags. An earlier removal is a problem.
func TestRowsRemovedDuringTheExport(t *testing.T) {
	for until, valid := range map[time.Duration]bool{-time.Hour: true, 10 * time.Minute: true, 2 * time.Hour: false} {
		keepUntil := chain.TimeText(now.Add(until))
		record := chain.Record{
			Number: 1, ChainedAt: chain.TimeText(now.Add(-24 * time.Hour)), Source: chain.SourceEntry, ID: "e1", KeepUntil: keepUntil,
			Row: &chain.Row{At: chain.TimeText(now.Add(-24 * time.Hour)), Action: "cancel", Entry: "{}", KeepUntil: keepUntil},
		}
		record.Seal("")
		record.Row, record.Salt = nil, ""

		verifier := chain.NewVerifier(chain.Options{Now: now})
		verifier.Add(record)

		live := verifier.Finish(headOf([]chain.Record{record}))

		offline, err := verifyFile(bytes.NewReader(export(t, []chain.Record{record}, headOf([]chain.Record{record}))), chain.Options{})
		if err != nil {
			t.Fatal(err)
		}

		for _, report := range []chain.Report{live, offline} {
			if report.Valid != valid || valid != (report.Removed == 1) || !valid && report.Problems[0].Problem != chain.Missing {
				t.Errorf("the retention period ends after %s: got %+v", until, report)
			}
		}
	}
}

func TestInvalidExportTime(t *testing.T) {
	const header = `{"header":{"format":"environment-broker audit chain 1","exportedAt":"today"}}`

	if _, err := verifyFile(strings.NewReader(header), chain.Options{}); err == nil || !strings.Contains(err.Error(), "exportedAt") {
		t.Errorf("want an error about exportedAt, got %v", err)
	}
}

func TestReportsAreBounded(t *testing.T) {
	verifier := chain.NewVerifier(chain.Options{Now: now})

	for _, record := range recordsOf(1000) {
		record.Row.Action = "x"
		verifier.Add(record)
	}

	if report := verifier.Finish(chain.Head{}); len(report.Problems) != 20 || report.ProblemCount != 1000 {
		t.Errorf("want 20 of 1000 problems, got %d of %d", len(report.Problems), report.ProblemCount)
	}
}

// FuzzVerifyFile verifies arbitrary files. A file that is not valid JSON Lines is an error, and none panics.
func FuzzVerifyFile(f *testing.F) {
	records := recordsOf(2)
	encoded, err := json.Marshal(chain.Line{Record: &records[0]})
	if err != nil {
		f.Fatal(err)
	}

	header := `{"header":{"format":"environment-broker audit chain 1","exportedAt":"2030-01-02T03:04:05.000000Z"}}` + "\n"

	f.Add(header + string(encoded) + "\n" + `{"end":{"records":1}}`)
	f.Add(header + `{"record":{"number":-1,"row":null}}` + "\n" + `{"unchained":{"id":"x"}}` + "\n" + `{"end":{"records":1,"unchained":1}}`)
	f.Add(header + header)
	f.Add(`{"record":{}}`)
	f.Add("{}")
	f.Fuzz(func(t *testing.T, text string) {
		report, err := verifyFile(strings.NewReader(text), chain.Options{})
		if err == nil && report.Valid && report.Records > 0 && report.Head.Hash == "" {
			t.Errorf("a chain without hashes is valid: %q", text)
		}
	})
}
