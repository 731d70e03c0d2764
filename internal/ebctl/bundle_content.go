package ebctl

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/environment-broker/environment-broker/bundle/api/v1alpha1"
	"github.com/environment-broker/environment-broker/bundle/archive"
	"github.com/environment-broker/environment-broker/internal/ebctl/output"
)

// bundleContent is the JSON output of 'bundle content'.
type bundleContent struct {
	Bundle string       `json:"bundle"`
	Digest string       `json:"digest"`
	Files  []bundleFile `json:"files"`
}

type bundleFile struct {
	Path string `json:"path"`
	// Size is in bytes.
	Size int64 `json:"size"`
}

func newBundleContentCommand(session *session, cluster *clusterFlags) *cobra.Command {
	var (
		server contentFlags
		file   string
	)

	command := &cobra.Command{
		Use:   "content BUNDLE",
		Short: "List the files of an unpacked Bundle, or write its archive",
		Long: "List the files of an unpacked Bundle, or write its archive.\n\n" +
			"The command sends the token to the contentURL of the Bundle. The token needs the bundle-reader ClusterRole.",
		Example: "  ebctl bundle content my-addon-abc --output-file my-addon.tgz",
		Args:    arguments("BUNDLE"),
		RunE: session.withBundles(cluster, func(ctx context.Context, client bundleClient, args []string) error {
			return session.bundleContent(ctx, client, *cluster, server, args[0], file)
		}),
	}

	server.add(command)
	command.Flags().StringVar(&file, "output-file", "", "write the archive to this file instead of listing its files")

	return command
}

// bundleContent fetches the content of a Bundle, and lists its files or, if file is not empty, writes the archive to file.
func (s *session) bundleContent(ctx context.Context, client bundleClient, cluster clusterFlags, server contentFlags, name, file string) error {
	bundle, err := client.bundle(ctx, name)
	if err != nil {
		return fmt.Errorf("reading the Bundle %s: %w", name, err)
	}

	if bundle.Status.ContentURL == "" {
		return fmt.Errorf("the Bundle %s has no content yet: %s", name, unpackedText(bundle))
	}

	folder := ""
	if file != "" {
		folder = filepath.Dir(file)
	}

	// Write to a temporary file, so that the file gets its final name only once the archive is complete and verified.
	stored, err := os.CreateTemp(folder, ".bundle-*.tgz")
	if err != nil {
		return fmt.Errorf("storing the content: %w", err)
	}
	defer func() { _ = os.Remove(stored.Name()) }()
	defer stored.Close()

	digest, err := s.download(ctx, cluster, server, bundle, stored)
	if err != nil {
		return fmt.Errorf("fetching the content of the Bundle %s: %w", name, err)
	}

	files, err := filesOf(ctx, stored)
	if err != nil {
		return fmt.Errorf("reading the content of the Bundle %s: %w", name, err)
	}

	if file != "" {
		if err := errors.Join(stored.Close(), os.Rename(stored.Name(), file)); err != nil {
			return fmt.Errorf("storing the content: %w", err)
		}

		fmt.Fprintf(s.Err, "Content %s written to %s\n", digest, file)

		return nil
	}

	table := output.Rows{Head: []string{"FILE", "BYTES"}, None: "The Bundle has no files.", IDs: []string{}}
	for _, each := range files {
		table.Add(each.Path, each.Path, strconv.FormatInt(each.Size, 10))
	}

	return s.print(bundleContent{name, digest, files}, table)
}

// download writes the archive of a Bundle to a file and returns its digest. If the status of the Bundle contains a digest, the
// two must match; some bundle provisioners do not report one.
func (s *session) download(ctx context.Context, cluster clusterFlags, server contentFlags, bundle v1alpha1.Bundle, into io.Writer) (string, error) {
	body, err := s.callContent(ctx, cluster, server, bundle.Status.ContentURL, nil)
	if err != nil {
		return "", err
	}
	defer func() { _ = body.Close() }()

	limit := archive.DefaultLimits().CompressedBytes
	hash := sha256.New()

	read, err := io.Copy(io.MultiWriter(into, hash), io.LimitReader(body, limit+1))
	if err != nil {
		return "", fmt.Errorf("reading the response: %w", err)
	}

	if read > limit {
		return "", fmt.Errorf("the content has more than %d bytes", limit)
	}

	digest := "sha256:" + hex.EncodeToString(hash.Sum(nil))
	if want := bundle.Status.Digest; want != "" && want != digest {
		return "", fmt.Errorf("the content has the digest %s instead of %s", digest, want)
	}

	return digest, nil
}

// filesOf extracts an archive into a temporary folder, lists the files, and removes the folder.
func filesOf(ctx context.Context, stored io.ReadSeeker) ([]bundleFile, error) {
	folder, err := os.MkdirTemp("", "bundle-*")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(folder) }()

	root, err := os.OpenRoot(folder)
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }()

	if _, err := stored.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}

	if err := archive.Extract(ctx, stored, root, archive.DefaultLimits()); err != nil {
		return nil, err
	}

	files := []bundleFile{}

	err = fs.WalkDir(root.FS(), ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}

		info, err := entry.Info()
		if err == nil {
			files = append(files, bundleFile{path, info.Size()})
		}

		return err
	})

	return files, err
}

// unpackedText describes why a Bundle has no content.
func unpackedText(bundle v1alpha1.Bundle) string {
	if unpacked := meta.FindStatusCondition(bundle.Status.Conditions, v1alpha1.TypeUnpacked); unpacked != nil {
		return describe(*unpacked)
	}

	return "no provisioner has processed it"
}
