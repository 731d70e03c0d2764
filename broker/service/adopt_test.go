package service_test

import (
	"strings"
	"testing"

	"github.com/environment-broker/environment-broker/broker/service"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/storage/takeover"
)

// TestAdoptionForUnknownPlatforms checks that no instance is adopted for a platform that the broker does not have.
func TestAdoptionForUnknownPlatforms(t *testing.T) {
	t.Parallel()

	const platforms = "platforms: [{name: cf, users: [u]}, {name: btp, users: [v]}]"

	for name, c := range map[string]struct{ file, platform, want string }{
		"misspelled":          {platforms, "fc", `no platform "fc": choose one of cf, btp with --platform`},
		"not chosen":          {platforms, "", `no platform "default": choose one of cf, btp with --platform`},
		"without platforms":   {"", "cf", `no platform "cf": choose one of default with --platform`},
		"with an empty file":  {"platforms: []", "cf", "APP_PLATFORMS_FILE: the file has no platforms"},
		"with a missing file": {"missing", "cf", "APP_PLATFORMS_FILE: open missing"},
	} {
		config := usable(t)
		config.Former = takeover.Config{DatabaseURL: "postgres://127.0.0.1:1/keb?sslmode=disable", SecretKey: "sixteen bytes ok"}

		if config.PlatformsFile = c.file; strings.Contains(c.file, ":") {
			config.PlatformsFile = written(t, c.file)
		}

		_, err := service.Adopt(t.Context(), config, service.AdoptOptions{Platform: c.platform}, logging.Discard())
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: want %q, got %v", name, c.want, err)
		}
	}
}
