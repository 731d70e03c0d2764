package ebctl

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/environment-broker/environment-broker/internal/audit/chain"
	"github.com/environment-broker/environment-broker/internal/ebctl/brokerclient"
	"github.com/environment-broker/environment-broker/internal/ebctl/output"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
	"github.com/environment-broker/environment-broker/internal/program/atomicfile"
)

// brokenError reports that the chain of the audit log is broken. It contains the first problem.
type brokenError struct{ problem chain.Problem }

func (e *brokenError) Error() string {
	return "the audit log is broken: " + e.problem.Text()
}

func newAuditExportCommand(session *session) *cobra.Command {
	var file string

	command := &cobra.Command{
		Use:   "export",
		Short: "Write the audit log with its hash chain as JSON Lines",
		Long: "Write the audit log with its hash chain as JSON Lines.\n\n" +
			session.text("'ebctl audit verify --file' verifies the file without the broker. The file contains salts, and the names and addresses of users. Protect it ") +
			"like the audit log itself. Erasing an account's data does not change the file. The command needs the admin role.",
		Example: session.text("  ebctl audit export --file audit.jsonl"),
		Args:    arguments(),
		RunE: session.withClient(func(ctx context.Context, client *brokerclient.Client, _ []string) (err error) {
			if file == "" {
				err = session.exportAudit(ctx, client, session.Out)
			} else {
				err = session.exportAuditFile(ctx, client, file)
			}

			return failure.While(err, "exporting the audit log")
		}),
	}

	command.Flags().StringVar(&file, "file", "", "the file to write, instead of standard output; an existing file is replaced after a complete export")

	return command
}

// service returns the name that identifies the session's service in exports of the audit log.
func (s *session) service() string {
	if s.provisioner {
		return "provisioner"
	}

	return "broker"
}

// exportAuditFile writes the chain to a file that only its owner can read. The file is replaced when the export is complete, so that a
// failed export does not destroy an earlier one. A device or a pipe is written directly.
func (s *session) exportAuditFile(ctx context.Context, client *brokerclient.Client, path string) error {
	if resolved, err := filepath.EvalSymlinks(path); err == nil {
		path = resolved
	}

	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		target, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return err
		}

		return errors.Join(s.exportAudit(ctx, client, target), target.Close())
	}

	return atomicfile.WriteTo(path, func(file io.Writer) error { return s.exportAudit(ctx, client, file) })
}

// exportAudit writes the chain in the format that verifyFiles reads. After an error, the output is incomplete.
func (s *session) exportAudit(ctx context.Context, client *brokerclient.Client, to io.Writer) error {
	writer, err := chain.NewWriter(to, s.service(), s.Clock.Now())
	if err != nil {
		return err
	}

	head, err := readChain(ctx, client, writer.Record, writer.Unchained)
	if err == nil {
		err = writer.End(head)
	}

	return err
}

// readChain reads all pages of the chain. It calls record for each record, and unchained for each row that has no record yet. It
// returns the head of the chain as of the first page.
func readChain(ctx context.Context, client *brokerclient.Client, record func(chain.Record) error,
	unchained func(chain.Unchained) error,
) (chain.Head, error) {
	var first *chain.Head

	for position := ""; ; {
		page, err := client.GetAuditChain(ctx, operatorapi.GetAuditChainParams{Position: position})
		if err != nil {
			return chain.Head{}, err
		}

		if first == nil {
			first = &page.Head
		}

		for _, found := range page.Records {
			if err := record(found); err != nil {
				return *first, err
			}
		}

		for _, found := range page.Unchained {
			if err := unchained(found); err != nil {
				return *first, err
			}
		}

		if page.Next == "" {
			return *first, nil
		}

		if page.Next == position {
			return *first, errors.New("the service returned the same page of the audit log twice")
		}

		position = page.Next
	}
}

func newAuditVerifyCommand(session *session) *cobra.Command {
	var (
		files   []string
		options chain.Options
	)

	command := &cobra.Command{
		Use:   "verify",
		Short: "Verify the hash chain of the audit log",
		Long: "Verify the hash chain of the audit log.\n\n" +
			session.text("The command reads the whole chain and computes all hashes itself, without trusting the broker. It reports the first entry or ") +
			"operation that was changed, removed, reordered, or not chained in time, and the erased entries. The exit code is 7 if the chain is " +
			"broken.\n\n" +
			"Somebody who controls the database can remove the last records or recompute all hashes. To detect this, store the head hash " +
			"outside the database, and pass the hash that you stored last with --since-head. The command needs the admin role.",
		Example: session.text("  ebctl audit verify\n" +
			"  ebctl audit verify -o jsonpath='{.head.hash}'\n" +
			"  ebctl audit verify --since-head 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08\n" +
			"  ebctl audit verify --file audit.jsonl"),
		Args: arguments(),
		RunE: func(command *cobra.Command, _ []string) error {
			var (
				report chain.Report
				err    error
			)

			if len(files) > 0 {
				report, err = verifyFiles(files, options)
			} else {
				report, err = session.verifyChain(command.Context(), options)
			}

			if err != nil {
				return fmt.Errorf("verifying the audit log: %w", err)
			}

			if err := session.print(report, reportFields(report)); err != nil {
				return err
			}

			if !report.Valid {
				return &brokenError{report.Problems[0]}
			}

			return nil
		},
	}

	flags := command.Flags()
	flags.StringArrayVar(&files, "file", nil, "verify a file from 'audit export' or from an archive instead of the service; repeat the flag for further files, in their order")
	flags.StringVar(&options.SinceHead, "since-head", "", "the head hash of an earlier verification, which the chain must contain")
	flags.Var(timeLimitOf(&options.MaxUnchained, chain.DefaultMaxUnchained), "max-unchained", "how long a row may remain without a record in the chain")

	return command
}

// verifyAttempts is the maximum number of times that verifyChain reads a growing chain.
const verifyAttempts = 3

// verifyChain verifies the chain of the service. If it finds a problem and the chain has grown during the verification, it reads
// the chain again, because the growth itself can look like a problem. For example, a row that gets its record between two
// requests is missing from all pages, and an erasure may be read without its audit entry.
func (s *session) verifyChain(ctx context.Context, options chain.Options) (chain.Report, error) {
	client, err := s.client()
	if err != nil {
		return chain.Report{}, err
	}

	for attempt := 1; ; attempt++ {
		options.Now = s.Clock.Now()
		verifier := chain.NewVerifier(options)

		head, err := readChain(ctx, client,
			func(record chain.Record) error { verifier.Add(record); return nil },
			func(row chain.Unchained) error { verifier.AddUnchained(row); return nil })
		if err != nil {
			return chain.Report{}, err
		}

		report := verifier.Finish(head)
		if report.Valid || attempt == verifyAttempts {
			return report, nil
		}

		page, err := client.GetAuditChain(ctx, operatorapi.GetAuditChainParams{})
		if err != nil || page.Head.Number == head.Number {
			return report, err
		}
	}
}

// verifyFiles verifies files in the given order. It computes the age of rows without a record at the time at which their file was
// written, not at the current time.
func verifyFiles(paths []string, options chain.Options) (chain.Report, error) {
	verifier := chain.NewFileVerifier(options)

	for _, path := range paths {
		if err := verifyFile(verifier, path); err != nil {
			return chain.Report{}, err
		}
	}

	return verifier.Finish(), nil
}

func verifyFile(verifier *chain.FileVerifier, path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()

	return failure.While(verifier.Add(file), "%s", path)
}

func reportFields(report chain.Report) output.Fields {
	result := "valid"
	if !report.Valid {
		result = fmt.Sprintf("BROKEN, problems: %d", report.ProblemCount)
	}

	fields := output.Fields{
		{Name: "Audit log", Value: result},
		{Name: "Records", Value: strconv.FormatInt(report.Records, 10)},
		{Name: "Chained since", Value: report.ChainedSince},
	}

	if report.Older > 0 {
		// Rows are chained only after they are committed, so even in a new audit log, the first rows are older than the chain.
		fields = append(fields, output.Field{
			Name: "Older", Value: fmt.Sprintf("rows written before the chain began: %d; changes before that time are not detected", report.Older),
		})
	}

	if report.Since != nil {
		fields = append(fields, output.Field{Name: "Since head", Value: fmt.Sprintf("%d records later", *report.Since)})
	}

	if report.Removed > 0 {
		fields = append(fields, output.Field{Name: "Removed", Value: fmt.Sprintf("%d, after their retention period", report.Removed)})
	}

	if report.Pending > 0 {
		fields = append(fields, output.Field{Name: "Pending", Value: fmt.Sprintf("%d, too recent to be chained", report.Pending)})
	}

	for _, erasure := range report.Erasures {
		text := fmt.Sprintf("operations: %d, entries: %d, erasure %s", erasure.Operations, erasure.Entries, erasure.EntryID)
		if erasure.At != "" { // otherwise the entry is not chained yet
			text += fmt.Sprintf(" of account %s at %s by %s", erasure.Account, erasure.At, erasure.By)
		}

		fields = append(fields, output.Field{Name: "Erased", Value: text})
	}

	for _, problem := range report.Problems {
		fields = append(fields, output.Field{Name: "Problem", Value: problem.Text()})
	}

	return append(fields, output.Field{Name: "Head", Value: report.Head.Hash})
}
