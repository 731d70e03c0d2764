package ebctl

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/environment-broker/environment-broker/internal/ebctl/output"
	"github.com/environment-broker/environment-broker/internal/ebctl/supportbundle"
)

const (
	// defaultBundleTime and defaultBundleSize are the default limits of a support bundle. The size is in MiB, before compression.
	defaultBundleTime = 2 * time.Minute
	defaultBundleSize = 32
	maxBundleSize     = 1024

	// bundleMode makes the archive readable only by the user.
	bundleMode = 0o600

	helpSupportBundle = `Collect what another team needs to find a problem, in an archive without secrets.

The archive contains the versions, the processes, the catalog, the states of the systems that the services call, unfinished and failed
operations with explanations, events, leftovers, accounts of the pool, orchestrations, jobs and quotas. With the admin role, it also
contains the newest entries of the audit log and the configuration. With --status-address, it contains the metrics and the health of
services. manifest.json lists the files that could not be added, with the reasons.

Secrets are masked, and numbers replace the names of people. Review the archive before you send it: it contains the names and IDs of
instances and accounts.`
)

// bundleRequest contains the flags of 'support-bundle'.
type bundleRequest struct {
	instance, operation string
	file                string
	statusAddresses     []string
	maxTime             time.Duration
	maxSize             int
}

func newSupportBundleCommand(session *session) *cobra.Command {
	var given bundleRequest

	command := &cobra.Command{
		Use:   "support-bundle",
		Short: "Collect diagnostic data, such as versions and stuck operations, in an archive without secrets",
		Long:  helpSupportBundle,
		Example: "  ebctl support-bundle\n" +
			"  ebctl support-bundle --operation 3f0e5a52-8a5c-4a4b-9b57-0d2f1a7f6a11 -o bundle.tgz\n" +
			"  ebctl support-bundle --instance my-cluster --status-address broker=http://127.0.0.1:8071",
		Args: arguments(),
		RunE: func(command *cobra.Command, _ []string) error {
			return session.writeSupportBundle(command.Context(), given)
		},
	}

	flags := command.Flags()
	flags.StringVar(&given.instance, "instance", "", "add the instance with this ID or name, and its operations, events and audit entries")
	flags.StringVar(&given.operation, "operation", "", "add the operation with this ID, and its instance")
	flags.StringVarP(&given.file, "output", "o", "", "the path of the archive, which must not exist yet (default: support-bundle-TIME.tgz)")
	flags.StringArrayVar(&given.statusAddresses, "status-address", nil,
		"add metrics and health from the APP_STATUS_ADDRESS of a service, as broker=URL, provisioner=URL or bundler=URL; repeat the flag for each replica")
	flags.DurationVar(&given.maxTime, "max-time", defaultBundleTime, "stop collecting after this time")
	flags.IntVar(&given.maxSize, "max-size", defaultBundleSize, "maximum size of the files in MiB, before compression")
	completeBy(command, "instance", session.completeInstance)
	completeBy(command, "operation", session.completeOperation)

	return command
}

// writeSupportBundle collects the documents, writes the archive, and prints a summary.
func (s *session) writeSupportBundle(ctx context.Context, given bundleRequest) error {
	status, err := parseStatusAddresses(given.statusAddresses)

	switch {
	case err != nil:
		return err
	case given.instance != "" && given.operation != "":
		return usage("--instance and --operation cannot be combined: --operation adds the instance, too")
	case given.maxTime <= 0 || given.maxSize < 1 || given.maxSize > maxBundleSize:
		return usage("--max-time must be positive, and --max-size between 1 and %d", maxBundleSize)
	}

	settings, err := s.settings()
	if err != nil {
		return err
	}

	at := s.Clock.Now().UTC()
	folder := "support-bundle-" + at.Format("20060102T150405Z")

	if given.file == "" {
		given.file = folder + ".tgz"
	}

	if _, err := os.Lstat(given.file); err == nil {
		return usage("%s already exists: choose another file", given.file)
	}

	limited, cancel := context.WithTimeout(ctx, given.maxTime)
	defer cancel()

	provisioner, behind, hasProvisioner := s.behind()
	redactor := supportbundle.NewRedactor(
		settings.Password.Reveal(), settings.Token.Reveal(), behind.Password.Reveal(), behind.Token.Reveal())
	collected := &bundleCollector{
		Bundle: supportbundle.New(redactor, given.maxSize<<20), session: s, client: s.clientOf(settings), folder: "broker",
	}

	subject, err := collected.resolve(limited, given)
	if err != nil {
		return err
	}

	collected.general(limited)
	collected.broker(limited, &subject)

	if hasProvisioner {
		behindIt := &bundleCollector{Bundle: collected.Bundle, session: provisioner, client: provisioner.clientOf(behind), folder: "provisioner"}
		behindIt.provisioner(limited, subject)
	} else {
		collected.Miss("provisioner", "the state of the Provisioner", "no credentials for the Provisioner are configured: see 'ebctl provisioner --help'")
	}

	collected.status(limited, status, s.timeout)

	if ctx.Err() != nil {
		return ctx.Err()
	}

	return s.saveSupportBundle(collected.Bundle, given.file, folder, supportbundle.Manifest{
		CreatedAt: at, CreatedBy: "ebctl " + s.Version, Subject: subject.text(),
	})
}

// saveSupportBundle writes the archive to a new file, and prints a summary.
func (s *session) saveSupportBundle(bundle *supportbundle.Bundle, file, folder string, manifest supportbundle.Manifest) error {
	var archive bytes.Buffer

	manifest, err := bundle.Write(&archive, folder, manifest)
	if err != nil {
		return fmt.Errorf("writing the archive: %w", err)
	}

	if err := createFile(file, archive.Bytes()); err != nil {
		return err
	}

	rows := output.Rows{Head: []string{"MISSING", "REASON"}}
	for _, missing := range manifest.Missing {
		rows.Rows = append(rows.Rows, []string{missing.Name, missing.Reason})
	}

	fmt.Fprintf(s.Out, "Wrote %s: %d files, %d missing, %d KiB.\n", file, len(manifest.Files), len(manifest.Missing), (archive.Len()+1023)>>10) //nolint:mnd // rounds up to KiB

	if len(rows.Rows) > 0 {
		fmt.Fprintln(s.Out)

		return rows.WriteText(s.Out)
	}

	return nil
}

// createFile writes a new file. It fails if the file already exists. If writing fails, it removes the incomplete file.
func createFile(path string, content []byte) error {
	file, err := os.OpenFile(filepath.Clean(path), os.O_CREATE|os.O_EXCL|os.O_WRONLY, bundleMode)
	if err != nil {
		return fmt.Errorf("creating the archive: %w", err)
	}

	_, err = file.Write(content)
	if err = errors.Join(err, file.Close()); err != nil {
		return errors.Join(fmt.Errorf("writing the archive: %w", err), os.Remove(path))
	}

	return nil
}

// statusAddress is the status URL of a replica.
type statusAddress struct {
	// folder is the folder for the replica's files: the name of the service, followed by a number from the second replica on.
	folder, url string
}

// parseStatusAddresses parses the values of --status-address.
func parseStatusAddresses(given []string) ([]statusAddress, error) {
	var addresses []statusAddress

	replicas := map[string]int{}

	for _, text := range given {
		service, address, found := strings.Cut(text, "=")
		if !found || service != "broker" && service != "provisioner" && service != "bundler" {
			return nil, usage("--status-address %q must be broker=URL, provisioner=URL or bundler=URL", text)
		}

		address = completed(address)
		if err := (Sources{Provisioner: service == "provisioner"}).checkAddress(address); err != nil {
			return nil, &usageError{cause: fmt.Errorf("--status-address %s: %w", service, err)}
		}

		replicas[service]++

		folder := service
		if number := replicas[service]; number > 1 {
			folder = fmt.Sprintf("%s-%d", service, number)
		}

		addresses = append(addresses, statusAddress{folder: folder, url: address})
	}

	return addresses, nil
}
