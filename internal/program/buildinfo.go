package program

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/prometheus/client_golang/prometheus"
)

const (
	// unknownVersion stands for a missing version. Go itself records it for a module that was built without version control.
	unknownVersion = "(devel)"
	unknownCommit  = "unknown"
)

// Build describes a binary. No field is empty.
type Build struct {
	// Version is the tag, such as v0.2.0, or Go's pseudo-version of a commit between tags. It ends with +dirty if the sources had
	// uncommitted changes. It is (devel) if the toolchain recorded no version.
	Version string
	// Commit is the full hash of the Git commit, or "unknown".
	Commit string
	// Go is the version of the toolchain, such as go1.26.0.
	Go string
}

// ReadBuild returns the description of the running binary, as recorded by the Go toolchain. Builds need no linker flags: a build
// in a clone of the repository records the tag and the commit automatically. Builds without a .git folder, builds in linked Git
// worktrees, and builds by `go test` record neither.
func ReadBuild() Build {
	build, known := debug.ReadBuildInfo()
	if !known {
		build = &debug.BuildInfo{}
	}

	return of(build)
}

// of converts the build information that the Go toolchain recorded.
func of(build *debug.BuildInfo) Build {
	info := Build{Version: unknownVersion, Commit: unknownCommit, Go: runtime.Version()}
	if build.Main.Version != "" {
		info.Version = build.Main.Version
	}

	for _, setting := range build.Settings {
		if setting.Key == "vcs.revision" {
			info.Commit = setting.Value
		}
	}

	return info
}

// String returns the description as one line, as --version prints it.
func (i Build) String() string { return fmt.Sprintf("%s (commit %s, %s)", i.Version, i.Commit, i.Go) }

// Metric returns a gauge with the value 1 and the description as labels. Queries join it with other metrics to compare versions.
func (i Build) Metric() prometheus.Collector {
	gauge := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "environment_broker_build_info", Help: "Always 1. The labels are the version, the commit and the Go version of the binary.",
		ConstLabels: prometheus.Labels{"version": i.Version, "commit": i.Commit, "go_version": i.Go},
	})
	gauge.Set(1)

	return gauge
}
