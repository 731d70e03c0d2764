package ebctl

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/environment-broker/environment-broker/internal/ebctl/brokerclient"
	"github.com/environment-broker/environment-broker/internal/ebctl/follow"
	"github.com/environment-broker/environment-broker/internal/ebctl/output"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
	"github.com/environment-broker/environment-broker/internal/operatorapi/explain"
)

// App is the ebctl program with everything that it needs from the process and the operating system. Tests replace these fields to
// run commands without a terminal, real time or random IDs. All fields except Environ, Colors and Keys are required.
type App struct {
	In       io.Reader
	Out, Err io.Writer
	// Environment returns the value of an environment variable, or an empty string.
	Environment func(name string) string
	// Environ contains all environment variables, in the form of os.Environ. Nil means that 'ebctl doctor' does not look for unknown ones.
	Environ []string
	// Terminal returns the size of the terminal that Err writes to, or false if Err is not a terminal.
	Terminal func() (follow.Size, bool)
	// Colors reports whether Out is a terminal that can show colors. Nil means no colors.
	Colors func() bool
	// Interactive reports whether In is a terminal, so that ebctl can prompt the user.
	Interactive func() bool
	// ReadPassword reads a line from In, which must be a terminal, without echoing it.
	ReadPassword func() (string, error)
	// Keys returns the keys that the user presses, without waiting for Enter, and a function that restores the mode of the
	// terminal. Nil means that commands cannot read keys.
	Keys  func() (keys <-chan byte, restore func(), err error)
	Clock follow.Clock
	// NewID returns a new UUID for an instance, a binding or a request.
	NewID func() string
	// PollInterval is the minimum time between two polls of an operation.
	PollInterval time.Duration
	// Version is the version of ebctl, for 'ebctl version' and the User-Agent header.
	Version string

	// printed, if set, is called with each printed result. Only tests set it.
	printed func(output.Text)
}

// Run executes the command line and returns the exit code of the process. It prints an error to Err and, if there is a hint for
// this error, the hint on the next line. When ctx ends, the current request or wait ends too.
func (a App) Run(ctx context.Context, args []string) int {
	root := newRootCommand(&session{App: a, globals: &globals{}})
	root.SetArgs(args)
	root.SetIn(a.In)
	root.SetOut(a.Out)
	root.SetErr(a.Err)

	command, err := root.ExecuteContextC(ctx)
	if err == nil {
		return ExitOK
	}

	exit := exitFor(err)

	fmt.Fprintf(a.Err, "ebctl: %v\n", err)

	if strings.HasPrefix(command.CommandPath(), provisionerCommands) {
		exit.hint = explain.ForProvisioner(exit.hint)
	}

	if hint := exit.hintFor(command, err); hint != "" {
		fmt.Fprintf(a.Err, "  %s\n", hint)
	}

	return exit.code
}

// session is one execution of the command line against either the broker or the Provisioner: the App and the values of the global
// flags.
type session struct {
	App
	*globals

	// provisioner is true if the commands call the Provisioner, whose operator API represents runtimes as instances.
	provisioner bool
}

// globals are the values of the global flags, which all sessions of a command line share. Cobra sets them before a command runs.
type globals struct {
	flags      Settings
	configFile string
	// contextName is set by --context, which selects a context of the configuration file.
	contextName string
	format      output.Format
	// yes is set by --yes, which skips the confirmation prompt of the running command.
	yes     bool
	timeout time.Duration
	// noHeaders is set by --no-headers of list commands without pages.
	noHeaders bool
}

// client returns a client for the configured service.
func (s *session) client() (*brokerclient.Client, error) {
	resolved, err := s.settings()
	if err != nil {
		return nil, err
	}

	return s.clientOf(resolved), nil
}

// settings returns the address and the credentials of the service. Invalid flags, variables and files are usage errors.
func (s *session) settings() (Settings, error) {
	if s.timeout <= 0 {
		return Settings{}, usage("--timeout must be positive")
	}

	resolved, err := Resolve(s.sources())
	if err != nil {
		return Settings{}, &usageError{cause: err}
	}

	return resolved, nil
}

func (s *session) sources() Sources {
	return Sources{Flags: s.flags, ConfigFile: s.configFile, Context: s.contextName, Environment: s.Environment, Provisioner: s.provisioner}
}

func (s *session) clientOf(resolved Settings) *brokerclient.Client {
	return brokerclient.New(brokerclient.Config{
		Address:   resolved.Address,
		Username:  resolved.Username,
		Password:  resolved.Password,
		Token:     resolved.Token,
		Timeout:   s.timeout,
		UserAgent: "ebctl/" + s.Version,
		NewID:     s.NewID,

		Provisioner: s.provisioner,
	})
}

// noun returns the word for an instance in output and messages: "instance" for the broker, and "runtime" for the Provisioner.
func (s *session) noun() string { return brokerclient.Noun(s.provisioner) }

// title returns noun with a capital letter, for use as a field name.
func (s *session) title() string { return strings.ToUpper(s.noun()[:1]) + s.noun()[1:] }

// text adapts a help text that was written for the broker: for the Provisioner, it replaces commands and nouns.
func (s *session) text(text string) string {
	if s.provisioner {
		return explain.ForProvisioner(text)
	}

	return text
}

// explanation explains the state of an operation at the current time, with the commands and nouns of the session's service.
func (s *session) explanation(operation operatorapi.Operation) explain.Explanation {
	if s.provisioner {
		return explain.OfProvisioner(operation, s.Clock.Now().UTC())
	}

	return explain.Of(operation, s.Clock.Now().UTC())
}

// print writes a result to Out in the selected format, with colors if Out shows them. An output.Plain is never colored.
func (s *session) print(value any, text output.Text) error {
	if s.printed != nil {
		s.printed(text)
	}

	if rows, is := text.(output.Rows); is && s.noHeaders {
		rows.NoHead = true
		text = rows
	}

	content := text
	if named, is := text.(output.WithID); is {
		content = named.Text
	}

	if _, verbatim := content.(output.Plain); verbatim || !s.colored() {
		return s.format.Print(s.Out, value, text)
	}

	var aligned strings.Builder
	if err := s.format.Print(&aligned, value, text); err != nil {
		return err
	}

	if _, err := io.WriteString(s.Out, output.Colored(aligned.String())); err != nil {
		return fmt.Errorf("writing the result: %w", err)
	}

	return nil
}

// colored reports whether to print results in colors. Any non-empty value of NO_COLOR turns colors off (https://no-color.org).
func (s *session) colored() bool {
	return s.format.ForPeople() && s.Colors != nil && s.Colors() && s.Environment("NO_COLOR") == ""
}

// age returns the time since moment as text, or an empty string for the zero time.
func (s *session) age(moment time.Time) string {
	if moment.IsZero() {
		return ""
	}

	return output.Duration(s.Clock.Now().Sub(moment))
}

// target is the instance that the command line names, with a client for further requests.
type target struct {
	*brokerclient.Client
	operatorapi.Runtime
}

// find returns the instance with the given ID or, if no instance has this ID, the only instance with this name. The client in the
// result sends OSB requests for the region of the instance, because a platform may be limited to certain regions.
func (s *session) find(ctx context.Context, idOrName string) (target, error) {
	client, err := s.client()
	if err != nil {
		return target{}, err
	}

	found, err := lookup(ctx, client, idOrName)

	return target{client.In(found.SubAccountRegion), found}, err
}

// size returns the size of the terminal.
func (s *session) size() follow.Size {
	size, _ := s.Terminal()

	return size
}

// defaultWait is the default value of --wait-timeout. Even the slowest operation, the creation of a cluster, takes less time.
const defaultWait = time.Hour

// waiting contains the flags of commands that can wait for an operation to end.
type waiting struct {
	// wanted is set by --wait, and limit by --wait-timeout.
	wanted bool
	limit  time.Duration
}

// wait follows the operation until it ends. It prints progress to standard error, so that standard output contains only the
// result.
func (s *session) wait(ctx context.Context, client *brokerclient.Client, operationID string, limit time.Duration,
) (operatorapi.Operation, error) {
	var view follow.View = follow.NewLines(s.Err)

	if _, found := s.Terminal(); found {
		view = follow.NewLive(s.Err, s.size)
	}

	return follow.Follower{
		Source: client, Noun: client.Noun(), Clock: s.Clock, View: view, Interval: s.PollInterval, Limit: limit,
	}.Follow(ctx, operationID)
}

// operation returns the current state of an operation, or its final state if the command waits. idOrName is the ID of the
// operation. It can also be the ID or name of an instance, and stands for the newest operation of that instance. If waiting
// fails, operation returns the last known state with the error, so that the command can print the state.
func (s *session) operation(ctx context.Context, idOrName string, waiting waiting) (operatorapi.Operation, error) {
	client, err := s.client()
	if err != nil {
		return operatorapi.Operation{}, err
	}

	return withOperation(ctx, client, idOrName, func(id string) (operatorapi.Operation, error) {
		if waiting.wanted {
			return s.wait(ctx, client, id, waiting.limit)
		}

		operation, _, err := client.Operation(ctx, id)
		if err != nil {
			return operatorapi.Operation{}, fmt.Errorf("reading operation %s: %w", id, err)
		}

		return operation, nil
	})
}
