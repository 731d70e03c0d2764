package ebctl

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

// newManualCommand returns the command that writes the man pages and completion scripts of all commands. It is hidden, because
// 'make build' calls it and users need it only to install ebctl manually.
func newManualCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "manual FOLDER",
		Short: "Write man pages and shell completions",
		Long: "Write man pages and shell completions into a folder with the layout of /usr/local/share.\n\n" +
			"The pages carry the date in SOURCE_DATE_EPOCH or, if it is not set, today's date.",
		Hidden: true,
		Args:   arguments("FOLDER"),
		RunE:   func(command *cobra.Command, args []string) error { return writeManual(command.Root(), args[0]) },
	}
}

// writeManual writes the man pages and completion scripts to folder and creates missing folders.
func writeManual(root *cobra.Command, folder string) error {
	const readableByAll = 0o755

	files := map[string]func(path string) error{
		"man/man1/ebctl.1": func(path string) error {
			root.DisableAutoGenTag = true // the tag contains the build date

			return doc.GenManTree(root, &doc.GenManHeader{Section: "1", Source: "environment broker", Manual: "ebctl"}, filepath.Dir(path))
		},
		"bash-completion/completions/ebctl":    func(path string) error { return root.GenBashCompletionFileV2(path, true) },
		"zsh/site-functions/_ebctl":            root.GenZshCompletionFile,
		"fish/vendor_completions.d/ebctl.fish": func(path string) error { return root.GenFishCompletionFile(path, true) },
	}

	for name, write := range files {
		path := filepath.Join(folder, filepath.FromSlash(name))

		if err := os.MkdirAll(filepath.Dir(path), readableByAll); err != nil {
			return fmt.Errorf("writing the manual: %w", err)
		}

		if err := write(path); err != nil {
			return fmt.Errorf("writing %s: %w", path, err)
		}
	}

	return nil
}
