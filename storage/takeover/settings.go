package takeover

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/environment-broker/environment-broker/internal/program"
	"github.com/environment-broker/environment-broker/internal/secret"
)

// maxFile is the maximum size of a file with a connection string or a key, in bytes.
const maxFile = 64 << 10

// Config configures the access to the database to take over. Only the adopt command uses it.
type Config struct {
	DatabaseURL secret.String `env:"DATABASE_URL"        help:"for adopt: connection string of the database to take over, such as postgres://user:password@host/name?sslmode=require; --former-dsn-file replaces it"`
	SecretKey   secret.String `env:"DATABASE_SECRET_KEY" help:"for adopt: key of 16, 24 or 32 bytes with which columns of this database are encrypted; --former-key-file replaces it"`
}

// Options contains the values of the adopt command's flags.
type Options struct {
	// DryRun means that the command makes no changes, and that the report describes the changes that it would make.
	DryRun bool
	// Only contains the IDs or Shoot names of the rows to take over. If it is empty, all rows are taken over.
	Only []string
	// IgnoreUsers are database users whose sessions do not mean that Kyma Provisioner or KEB is running.
	IgnoreUsers []string
	// JSON writes the report as JSON.
	JSON bool

	// urlFile and keyFile are the paths of files whose contents replace the values of Config.
	urlFile, keyFile string
}

// Register adds the flags of the command. Neither the connection string nor the key is a flag, because other users can see flags
// in the process list.
func (o *Options) Register(flags *flag.FlagSet) {
	flags.BoolVar(&o.DryRun, "dry-run", false, "check everything and report, but change nothing")
	flags.BoolVar(&o.JSON, "json", false, "write the report as JSON")
	flags.Func("only", "take over only the rows with these comma-separated `IDs` or Shoot names; can be repeated", collect(&o.Only))
	flags.Func("ignore-users", "database `users` whose sessions do not prevent the adoption, such as the user of a monitoring agent", collect(&o.IgnoreUsers))
	flags.StringVar(&o.urlFile, "former-dsn-file", "", "`file` with the connection string of the database to take over; replaces "+program.Prefix+"FORMER_DATABASE_URL")
	flags.StringVar(&o.keyFile, "former-key-file", "", "`file` with the key that encrypts columns of this database; replaces "+program.Prefix+"FORMER_DATABASE_SECRET_KEY")
}

// collect returns a flag value that appends comma-separated words to a list.
func collect(into *[]string) func(string) error {
	return func(text string) error {
		for word := range strings.SplitSeq(text, ",") {
			if word = strings.TrimSpace(word); word != "" {
				*into = append(*into, word)
			}
		}

		return nil
	}
}

// Selected reports whether an object with these names must be taken over: Only is empty or contains one of them.
func (o *Options) Selected(names ...string) bool {
	return len(o.Only) == 0 || slices.ContainsFunc(names, func(name string) bool { return slices.Contains(o.Only, name) })
}

// Resolve returns the configuration with the contents of the files that the flags name. The error names the missing settings and
// never contains a value.
func (o *Options) Resolve(config Config) (Config, error) {
	var errs []error

	for _, each := range []struct {
		path, flag, variable string
		into                 *secret.String
	}{
		{o.urlFile, "--former-dsn-file", "DATABASE_URL", &config.DatabaseURL},
		{o.keyFile, "--former-key-file", "DATABASE_SECRET_KEY", &config.SecretKey},
	} {
		if each.path != "" {
			content, err := readFile(each.path)
			errs = append(errs, err)
			*each.into = secret.String(content)
		}

		if each.path == "" && *each.into == "" {
			errs = append(errs, fmt.Errorf("set %sFORMER_%s, or use %s", program.Prefix, each.variable, each.flag))
		}
	}

	return config, errors.Join(errs...)
}

// readFile returns the content of a file without the line breaks at its end.
func readFile(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("reading a file: %w", err)
	}
	defer file.Close()

	content, err := io.ReadAll(io.LimitReader(file, maxFile+1))
	if err != nil {
		return "", fmt.Errorf("reading %s: %w", path, err)
	}

	if len(content) > maxFile {
		return "", fmt.Errorf("%s has more than %d bytes", path, maxFile)
	}

	return string(bytes.TrimRight(content, "\r\n")), nil
}
