package ebctl

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/environment-broker/environment-broker/bundle/archive"
	"github.com/environment-broker/environment-broker/internal/ebctl/output"
)

// pushed is the JSON output of 'bundle push'.
type pushed struct {
	Bundle string `json:"bundle"`
	// Bytes is the size of the archive.
	Bytes int64 `json:"bytes"`
}

func newBundlePushCommand(session *session, cluster *clusterFlags) *cobra.Command {
	var (
		credentials contentFlags
		server      string
	)

	command := &cobra.Command{
		Use:   "push BUNDLE FOLDER",
		Short: "Upload a folder as the content of a Bundle that was created with --upload",
		Long: "Upload a folder as the content of a Bundle that was created with --upload.\n\n" +
			"The same folder always produces the same archive, so the command is idempotent. The token needs the bundle-uploader ClusterRole.",
		Example: "  ebctl bundle push my-addon-abc ./my-addon",
		Args:    arguments("BUNDLE", "FOLDER"),
		RunE: func(command *cobra.Command, args []string) error {
			return session.push(command.Context(), *cluster, credentials, server, args[0], args[1])
		},
	}

	credentials.add(command)
	command.Flags().StringVar(&server, "server", "", "the https address of the content server (default: the uploadURL of the Bundle)")

	return command
}

func (s *session) push(ctx context.Context, cluster clusterFlags, credentials contentFlags, server, bundle, folder string) error {
	archive, err := pack(ctx, folder)
	if err != nil {
		return err
	}
	defer archive.Close()

	address, err := s.pushAddress(ctx, cluster, server, bundle)
	if err != nil {
		return err
	}

	if err := s.upload(ctx, cluster, credentials, address, archive); err != nil {
		return fmt.Errorf("uploading the content of the Bundle %s: %w", bundle, err)
	}

	return s.print(pushed{bundle, archive.size}, output.WithID{ID: bundle, Text: output.Fields{
		{Name: "Uploaded", Value: bundle}, {Name: "Bytes", Value: strconv.FormatInt(archive.size, 10)},
	}})
}

// pushAddress returns the URL to which the content of a Bundle is uploaded: a URL of the given server or, if server is empty, the
// URL in the Bundle's status.
func (s *session) pushAddress(ctx context.Context, cluster clusterFlags, server, bundle string) (string, error) {
	if server != "" {
		return uploadAddress(server, bundle)
	}

	client, err := s.bundleClient(cluster)
	if err != nil {
		return "", err
	}

	found, err := client.bundle(ctx, bundle)
	if err != nil {
		return "", fmt.Errorf("reading the Bundle %s: %w", bundle, err)
	}

	if found.Status.UploadURL == "" {
		return "", usage("the Bundle %s reports no address for uploads: its source is %s. Use --server if you know the address", bundle, sourceText(found.Spec.Source))
	}

	return found.Status.UploadURL, nil
}

// packed is the archive of a folder, in a temporary file that Close removes.
type packed struct {
	file *os.File
	size int64
	// digest is the SHA-256 digest in hexadecimal digits.
	digest string
}

func (p *packed) Close() {
	_ = p.file.Close()
	_ = os.Remove(p.file.Name())
}

// pack creates the archive of a folder. The same content always results in the same archive.
func pack(ctx context.Context, folder string) (_ *packed, err error) {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return nil, usage("reading the folder: %w", err)
	}
	defer func() { _ = root.Close() }()

	file, err := os.CreateTemp("", "bundle-*.tgz")
	if err != nil {
		return nil, fmt.Errorf("packing the folder: %w", err)
	}

	made := &packed{file: file}

	defer func() {
		if err != nil {
			made.Close()
		}
	}()

	sum := sha256.New()
	if err := archive.Pack(ctx, root.FS(), io.MultiWriter(file, sum)); err != nil {
		return nil, fmt.Errorf("packing the folder: %w", err)
	}

	info, err := file.Stat()
	if err != nil {
		return nil, fmt.Errorf("packing the folder: %w", err)
	}

	if limit := archive.DefaultLimits().CompressedBytes; info.Size() > limit {
		return nil, fmt.Errorf("the archive of the folder has %d bytes; the maximum is %d", info.Size(), limit)
	}

	made.size, made.digest = info.Size(), hex.EncodeToString(sum.Sum(nil))

	return made, nil
}

func (s *session) upload(ctx context.Context, cluster clusterFlags, credentials contentFlags, address string, archive *packed) error {
	body, err := s.callContent(ctx, cluster, credentials, address, archive.file)
	if err != nil {
		return err
	}

	return body.Close()
}
