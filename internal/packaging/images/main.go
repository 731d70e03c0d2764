// Command images writes the container images of a release as OCI image layouts, without Docker: for amd64 and arm64, each with an
// SBOM. The images have the same content and settings as those that the Dockerfiles describe.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

func main() {
	if err := run(os.Args[1:], os.Getenv("SOURCE_DATE_EPOCH")); err != nil {
		fmt.Fprintln(os.Stderr, "images:", err)
		os.Exit(1)
	}
}

// order contains the command-line flags and the modification time of the files.
type order struct {
	// programs is the folder with the compiled programs, in the subfolders linux_amd64 and linux_arm64. out is the folder to
	// which the OCI image layouts are written.
	programs, out string
	version       string
	// created is the modification time of all files. Because it does not depend on the clock, the same programs result in the same
	// digests.
	created time.Time
}

// run writes an OCI layout for each image. epoch is the modification time of all files, in seconds since 1970; if it is empty, the
// time is 1970-01-01.
func run(arguments []string, epoch string) error {
	var wanted order

	flags := flag.NewFlagSet("images", flag.ContinueOnError)
	flags.StringVar(&wanted.programs, "programs", "", "`folder` with the compiled programs, in the subfolders linux_amd64 and linux_arm64")
	flags.StringVar(&wanted.out, "out", "", "`folder` to which the layouts are written")
	flags.StringVar(&wanted.version, "version", "", "version and tag of the images, such as 1.2.3")

	if err := flags.Parse(arguments); err != nil {
		return fmt.Errorf("reading the arguments: %w", err)
	}

	if wanted.programs == "" || wanted.out == "" || wanted.version == "" || flags.NArg() > 0 {
		return errors.New("-programs, -out and -version are required; no positional arguments are allowed")
	}

	wanted.created = time.Unix(0, 0).UTC()

	if epoch != "" {
		seconds, err := strconv.ParseInt(epoch, 10, 64)
		if err != nil {
			return fmt.Errorf("SOURCE_DATE_EPOCH: %w", err)
		}

		wanted.created = time.Unix(seconds, 0).UTC()
	}

	for _, each := range images() {
		if err := wanted.write(each, filepath.Join(wanted.out, each.name)); err != nil {
			return fmt.Errorf("writing the image %s: %w", each.name, err)
		}
	}

	return nil
}
