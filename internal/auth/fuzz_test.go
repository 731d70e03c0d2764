package auth_test

import (
	"strings"
	"testing"

	"github.com/environment-broker/environment-broker/internal/auth"
	"github.com/environment-broker/environment-broker/internal/secret"
)

// FuzzUsers parses arbitrary lists of users, user files, rules and platforms. It checks that errors about users have a bounded length and
// do not contain a password.
func FuzzUsers(f *testing.F) {
	for _, seed := range []string{
		"", ",", "u:p", "u:p:viewer+admin", "u%2C:p%3A:osb", "u:p:nobody", ":", "u:", "u:p,u:p", "# comment\nu:p:admin\n", strings.Repeat(",x", 40), "group=admins:admin", "platforms: [{name: a, users: [u]}, {name: b, users: [u]}]", "platforms: &x [*x]", "a=b:osb,c=d:viewer", "%zz:p",
	} {
		f.Add(seed)
	}

	f.Fuzz(func(t *testing.T, text string) {
		if _, err := auth.ParseUsers(secret.String(text)); err != nil && len(err.Error()) > 1000+100*len(text) {
			t.Errorf("the error has %d bytes", len(err.Error()))
		}

		if _, err := auth.ParseUserFile([]byte(text)); err != nil && len(err.Error()) > 1000+100*len(text) {
			t.Errorf("the error has %d bytes", len(err.Error()))
		}

		if _, err := auth.ParsePlatforms([]byte(text)); err != nil && err.Error() == "" {
			t.Error("an error without a text")
		}

		if _, err := auth.ParseRules(text); err != nil && err.Error() == "" {
			t.Error("an error without a text")
		}

		// This password must not appear in an error, whatever entries follow it.
		const password = "hunter2hunter2"
		if _, err := auth.ParseUsers(secret.String("root:" + password + ":admin," + text)); err != nil && strings.Contains(err.Error(), password) && !strings.Contains(text, password) {
			t.Errorf("the error contains a password: %v", err)
		}
	})
}
