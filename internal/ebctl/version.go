package ebctl

import (
	"runtime"

	"github.com/spf13/cobra"

	"github.com/environment-broker/environment-broker/internal/ebctl/output"
)

// version is which ebctl this is.
type version struct {
	Version string `json:"version"`
	Go      string `json:"go"`
	System  string `json:"system"`
}

func newVersionCommand(session *session) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Tell which version of ebctl this is",
		Args:  arguments(),
		RunE: func(*cobra.Command, []string) error {
			this := version{Version: session.Version, Go: runtime.Version(), System: runtime.GOOS + "/" + runtime.GOARCH}

			return session.print(this, output.Fields{
				{Name: "ebctl", Value: this.Version},
				{Name: "Go", Value: this.Go},
				{Name: "System", Value: this.System},
			})
		},
	}
}
