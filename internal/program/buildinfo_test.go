package program

import (
	"runtime"
	"runtime/debug"
	"testing"
)

func TestInfo(t *testing.T) {
	cases := map[string]struct {
		reason string
		build  debug.BuildInfo
		want   string
	}{
		"release": {
			"a build in a clone records the tag and the commit",
			debug.BuildInfo{
				Main:     debug.Module{Version: "v0.2.0"},
				Settings: []debug.BuildSetting{{Key: "vcs", Value: "git"}, {Key: "vcs.revision", Value: "0123abc"}},
			},
			"v0.2.0 (commit 0123abc, " + runtime.Version() + ")",
		},
		"no version control": {
			"no field is empty", debug.BuildInfo{}, "(devel) (commit unknown, " + runtime.Version() + ")",
		},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := of(&c.build).String(); got != c.want {
				t.Errorf("%s: got %q, want %q", c.reason, got, c.want)
			}
		})
	}
}
