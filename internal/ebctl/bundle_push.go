package ebctl

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/environment-broker/environment-broker/internal/archive"
	"github.com/environment-broker/environment-broker/internal/ebctl/output"
)

// pushed is the JSON output of 'bundle push'.
type pushed struct {
	Bundle string `json:"bundle"`
	// Bytes is the size of the archive.
	Bytes int64 `json:"bytes"`
}

// newBundlePushCommand returns the command that uploads the content of a Bundle.
func newBundlePushCommand(session *session, cluster *clusterFlags) *cobra.Command {
	var (
		credentials contentFlags
		server      string
	)

	command := &cobra.Command{
		Use:   "push BUNDLE FOLDER",
		Short: "Upload a folder as the content of a Bundle with the source upload",
		Long: "Upload a folder as the content of a Bundle with the source upload.\n\n" +
			"The same folder gives the same archive, so the command can be repeated. The token needs the ClusterRole bundle-uploader.",
		Example: "  ebctl bundle push my-addon-abc ./my-addon --server https://bundles.example.com",
		Args:    arguments("BUNDLE", "FOLDER"),
		RunE: func(command *cobra.Command, args []string) error {
			if server == "" {
				return usage("--server is missing: the address of the content server, as in the contentURL of other Bundles")
			}

			address, err := url.JoinPath(server, "uploads", url.PathEscape(args[0])+".tgz")
			if err != nil {
				return usage("--server is no address: %w", err)
			}

			size, err := session.push(command.Context(), *cluster, credentials, address, args[1])
			if err != nil {
				return fmt.Errorf("uploading the content of the Bundle %s: %w", args[0], err)
			}

			return session.print(pushed{args[0], size}, output.Fields{{Name: "Uploaded", Value: args[0]}, {Name: "Bytes", Value: strconv.FormatInt(size, 10)}})
		},
	}

	credentials.add(command)
	command.Flags().StringVar(&server, "server", "", "the https address of the content server")

	return command
}

// push uploads a folder to an address and returns the size of the archive.
func (s *session) push(ctx context.Context, cluster clusterFlags, credentials contentFlags, address, folder string) (int64, error) {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return 0, usage("reading the folder: %w", err)
	}
	defer func() { _ = root.Close() }()

	packed, err := os.CreateTemp("", "bundle-*.tgz")
	if err != nil {
		return 0, fmt.Errorf("packing the folder: %w", err)
	}
	defer func() { _ = os.Remove(packed.Name()) }()
	defer packed.Close()

	if err := archive.Pack(ctx, root.FS(), packed); err != nil {
		return 0, fmt.Errorf("packing the folder: %w", err)
	}

	info, err := packed.Stat()
	if err != nil {
		return 0, fmt.Errorf("packing the folder: %w", err)
	}

	if limit := archive.DefaultLimits().CompressedBytes; info.Size() > limit {
		return 0, fmt.Errorf("the archive of the folder has %d bytes, and more than %d are not accepted", info.Size(), limit)
	}

	body, err := s.callContent(ctx, cluster, credentials, address, packed)
	if err != nil {
		return 0, err
	}

	return info.Size(), body.Close()
}
