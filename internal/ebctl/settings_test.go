package ebctl_test

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/internal/ebctl"
)

const file = "address: http://file\nusername: file-user\npassword: file-password\n"

func TestResolve(t *testing.T) {
	t.Parallel()

	cases := map[string]struct {
		reason      string
		flags       ebctl.Settings
		environment map[string]string
		file        string
		want        ebctl.Settings
	}{
		"Defaults": {
			reason: "without any source the local broker is used, without credentials",
			want:   ebctl.Settings{Address: ebctl.DefaultAddress},
		},
		"File": {
			reason: "the file takes precedence over the defaults",
			file:   file,
			want:   ebctl.Settings{Address: "http://file", Username: "file-user", Password: "file-password"},
		},
		"Environment": {
			reason:      "each variable takes precedence over the field in the file",
			environment: map[string]string{"EBCTL_ADDRESS": "http://file", "EBCTL_PASSWORD": "variable-password"},
			file:        file,
			want:        ebctl.Settings{Address: "http://file", Username: "file-user", Password: "variable-password"},
		},
		"OtherAddress": {
			reason: "the credentials in the file are not for another broker",
			flags:  ebctl.Settings{Address: "http://other", Username: "flag-user"},
			file:   file,
			want:   ebctl.Settings{Address: "http://other", Username: "flag-user"},
		},
		"Unencrypted": {
			reason: "a password for https is not sent unencrypted",
			flags:  ebctl.Settings{Address: "http://broker.example.com"},
			file:   "address: https://broker.example.com\ntoken: file-token\n",
			want:   ebctl.Settings{Address: "http://broker.example.com"},
		},
		"SameAddress": {
			reason: "an equal address in a different notation keeps the credentials",
			flags:  ebctl.Settings{Address: "Broker.example.com/"},
			file:   "address: https://broker.example.com\ntoken: file-token\n",
			want:   ebctl.Settings{Address: "https://Broker.example.com", Token: "file-token"},
		},
		"NoAddress": {
			reason: "credentials without an address are sent to every broker",
			flags:  ebctl.Settings{Address: "http://other"},
			file:   "username: file-user\npassword: file-password\n",
			want:   ebctl.Settings{Address: "http://other", Username: "file-user", Password: "file-password"},
		},
		"EnvironmentAddress": {
			reason:      "a different address in a variable does not get the credentials in the file either",
			environment: map[string]string{"EBCTL_ADDRESS": "http://variable", "EBCTL_PASSWORD": "variable-password"},
			file:        file,
			want:        ebctl.Settings{Address: "http://variable", Password: "variable-password"},
		},
		"Flags": {
			reason:      "a flag takes precedence over a variable and the file",
			flags:       ebctl.Settings{Address: "https://flag", Username: "flag-user", Password: "flag-password"},
			environment: map[string]string{"EBCTL_ADDRESS": "http://variable", "EBCTL_USERNAME": "variable-user"},
			file:        file,
			want:        ebctl.Settings{Address: "https://flag", Username: "flag-user", Password: "flag-password"},
		},
		"UserInsteadOfToken": {
			reason:      "a user takes precedence over a token from a later source",
			flags:       ebctl.Settings{Username: "flag-user"},
			environment: map[string]string{"EBCTL_TOKEN": "variable-token", "EBCTL_PASSWORD": "variable-password"},
			file:        "address: http://file\ntoken: file-token\n",
			want:        ebctl.Settings{Address: "http://file", Username: "flag-user", Password: "variable-password"},
		},
		"TokenInsteadOfUser": {
			reason:      "a token takes precedence over a user from the same or a later source",
			flags:       ebctl.Settings{Token: "flag-token"},
			environment: map[string]string{"EBCTL_USERNAME": "variable-user"},
			file:        file,
			want:        ebctl.Settings{Address: "http://file", Username: "variable-user", Password: "file-password", Token: "flag-token"},
		},
		"Slash": {
			reason: "paths are appended to the address, so its trailing slash is removed",
			flags:  ebctl.Settings{Address: "https://broker.example.com/base/"},
			want:   ebctl.Settings{Address: "https://broker.example.com/base"},
		},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			environment := environmentWithFile(t, tc.file)
			maps.Copy(environment, tc.environment)

			got, err := ebctl.Resolve(ebctl.Sources{Flags: tc.flags, Environment: lookup(environment)})
			if err != nil {
				t.Fatalf("%s: %v", tc.reason, err)
			}

			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestResolveFindsTheFile(t *testing.T) {
	t.Parallel()

	folder := t.TempDir()
	write(t, filepath.Join(folder, ".config", "ebctl", "config.yaml"), "address: http://home\n")
	write(t, filepath.Join(folder, "variable.yaml"), "address: http://variable\n")
	write(t, filepath.Join(folder, "flag.yaml"), "address: http://flag\n")

	cases := map[string]struct {
		reason      string
		flag        string
		environment map[string]string
		want        string
	}{
		"Home": {
			reason:      "without XDG_CONFIG_HOME the file is in the home directory",
			environment: map[string]string{"HOME": folder},
			want:        "http://home",
		},
		"Variable": {
			reason:      "EBCTL_CONFIG replaces the default file",
			environment: map[string]string{"HOME": folder, "EBCTL_CONFIG": filepath.Join(folder, "variable.yaml")},
			want:        "http://variable",
		},
		"Flag": {
			reason:      "--config takes precedence over EBCTL_CONFIG",
			flag:        filepath.Join(folder, "flag.yaml"),
			environment: map[string]string{"EBCTL_CONFIG": filepath.Join(folder, "variable.yaml")},
			want:        "http://flag",
		},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			got, err := ebctl.Resolve(ebctl.Sources{ConfigFile: tc.flag, Environment: lookup(tc.environment)})
			if err != nil {
				t.Fatalf("%s: %v", tc.reason, err)
			}

			if got.Address != tc.want {
				t.Errorf("%s: got %s, want %s", tc.reason, got.Address, tc.want)
			}
		})
	}
}

func TestResolveRejects(t *testing.T) {
	t.Parallel()

	cases := map[string]struct {
		reason      string
		address     string
		config      string
		file        string
		want        string
		mustNotShow string
	}{
		"Scheme": {
			reason: "an address without http or https is rejected", address: "ftp://broker:8080", want: "does not have the form",
		},
		"NoHost": {
			reason: "an address without a host is rejected", address: "http://", want: "does not have the form",
		},
		"Credentials": {
			reason:  "a password in the address would show in process lists and errors",
			address: "http://me:hunter2@broker", want: "EBCTL_PASSWORD", mustNotShow: "hunter2",
		},
		"NoURL": {
			reason:  "the error does not quote an invalid address, because it may contain a password",
			address: "http://me:hunter2@bro ker", want: "not a URL", mustNotShow: "hunter2",
		},
		"MissingFile": {
			reason: "a named file must exist", config: "missing.yaml", want: "missing.yaml",
		},
		"UnknownField": {
			reason: "unknown fields are rejected", file: "url: http://broker\n", want: `unknown field "url"`,
		},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			_, err := ebctl.Resolve(ebctl.Sources{
				Flags:       ebctl.Settings{Address: tc.address},
				ConfigFile:  tc.config,
				Environment: lookup(environmentWithFile(t, tc.file)),
			})
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Fatalf("%s: got error %v, want one with %q", tc.reason, err, tc.want)
			}

			if tc.mustNotShow != "" && strings.Contains(err.Error(), tc.mustNotShow) {
				t.Errorf("%s: the error contains %q", tc.reason, tc.mustNotShow)
			}
		})
	}
}

// environmentWithFile returns an environment whose configuration folder contains a file with the content. If content is empty,
// there is no file.
func environmentWithFile(t *testing.T, content string) map[string]string {
	t.Helper()

	folder := t.TempDir()
	if content != "" {
		write(t, filepath.Join(folder, "ebctl", "config.yaml"), content)
	}

	return map[string]string{"XDG_CONFIG_HOME": folder}
}

func write(t *testing.T, path, content string) {
	t.Helper()

	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}

	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func lookup(environment map[string]string) func(string) string {
	return func(name string) string { return environment[name] }
}

func TestAddressWithoutAScheme(t *testing.T) {
	t.Parallel()

	for address, want := range map[string]string{
		"127.0.0.1:18080":         "http://127.0.0.1:18080",
		"localhost":               "http://localhost",
		"[::1]:8080/":             "http://[::1]:8080",
		"broker:8080":             "https://broker:8080",
		"broker.example.com/base": "https://broker.example.com/base",
		"http://broker:8080":      "http://broker:8080",
	} {
		got, err := ebctl.Resolve(ebctl.Sources{Flags: ebctl.Settings{Address: address}, Environment: lookup(nil)})
		if err != nil || got.Address != want {
			t.Errorf("%s: got %q, %v, want %q", address, got.Address, err, want)
		}
	}
}
