package ebctl

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"github.com/environment-broker/environment-broker/internal/ebctl/output"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
	"github.com/environment-broker/environment-broker/internal/secret"
)

// newProvisionerLoginCommand returns the command that checks the credentials of a user with the Provisioner and stores them, with
// the address, in a context.
func newProvisionerLoginCommand(session *session) *cobra.Command {
	command := newLoginCommand(session)
	command.Short = "Check credentials for the Provisioner and store them in a context"
	command.Long = "Check the credentials of a Provisioner user and store them, with the address, in a context of the configuration file, next to the address and credentials of " +
		"the broker.\n\nAs with 'ebctl login', ebctl prompts for the password or reads it from standard input."
	command.Example = "  ebctl provisioner login provisioner.example.com --username jane"
	command.Flags().Lookup("name").Usage = "the name of the context; the default is the current context, or the host of the address if there is none"

	return command
}

// newLoginCommand returns the command that checks the credentials of a user with the broker and stores them, with the address, as
// a context.
func newLoginCommand(session *session) *cobra.Command {
	var name string

	command := &cobra.Command{
		Use:   "login ADDRESS",
		Short: "Check credentials and store them as a context",
		Long: "Check the credentials of a user and store them, with the address, as a context in the configuration file, which only its owner can read.\n\n" +
			"Without --password, --token and their variables, ebctl prompts for the password. If standard input is not a terminal, ebctl reads the first line. " +
			"The new context becomes the current one.",
		Example: "  ebctl login broker.example.com --username jane\n" +
			"  ebctl login 127.0.0.1:8080 --username sandbox --name sandbox < password.txt",
		Args: arguments("ADDRESS"),
		RunE: func(command *cobra.Command, args []string) error {
			session.flags.Address = args[0]

			return session.login(command.Context(), name)
		},
	}

	command.Flags().StringVar(&name, "name", "", "the name of the context (default: the host of the address)")

	return command
}

// login prompts for the password if neither a password nor a token is given, checks the credentials, and stores and selects the
// context.
func (s *session) login(ctx context.Context, name string) error {
	wanted := s.sources().given()

	var err error
	if wanted.Address, err = s.sources().baseURL(s.flags.Address); err != nil {
		return &usageError{cause: err}
	}

	if wanted.Token == "" && wanted.Username == "" {
		return usage("missing credentials: set --username or --token")
	}

	if wanted.Token == "" && wanted.Password == "" {
		password, err := s.askPassword(wanted)
		if err != nil {
			return err
		}

		wanted.Password = password
	}

	if err := s.authenticate(ctx, wanted); err != nil {
		return fmt.Errorf("logging in to %s: %w", wanted.Address, err)
	}

	err = s.sources().change(func(c *configuration) error {
		name = s.contextFor(*c, name, wanted.Address)

		if c.Contexts == nil {
			c.Contexts = map[string]entry{}
		}

		stored := login{
			Address: wanted.Address, Username: wanted.Username,
			Password: secret.Stored(wanted.Password.Reveal()), Token: secret.Stored(wanted.Token.Reveal()),
		}

		changed := c.Contexts[name]
		if s.provisioner {
			changed.Provisioner = stored
		} else {
			changed.login = stored
		}

		c.Context = name
		c.Contexts[name] = changed

		return nil
	})
	if err != nil {
		return err
	}

	fmt.Fprintf(s.Err, "Logged in to %s as context %s\n", wanted.Address, name)

	return nil
}

// contextFor returns the name of the context that a login changes: the given name or, by default, the host of the address. A
// login to the Provisioner changes the selected context by default, because the Provisioner belongs to the broker of that
// context.
func (s *session) contextFor(stored configuration, name, address string) string {
	if s.provisioner {
		name = cmp.Or(name, s.sources().contextName(), stored.Context)
	}

	if name == "" {
		if parsed, err := url.Parse(address); err == nil {
			name = parsed.Host
		}
	}

	return name
}

// askPassword prompts for the password on a terminal, without echo. If standard input is not a terminal, it reads the first line.
func (s *session) askPassword(wanted Settings) (secret.String, error) {
	if s.Interactive() {
		fmt.Fprintf(s.Err, "Password of %s at %s: ", wanted.Username, wanted.Address)

		password, err := s.ReadPassword()

		fmt.Fprintln(s.Err)

		if err != nil {
			return "", fmt.Errorf("reading the password: %w", err)
		}

		return secret.String(password), nil
	}

	line, _ := bufio.NewReader(s.In).ReadString('\n') // a missing line break is not an error
	if line = strings.TrimRight(line, "\r\n"); line == "" {
		return "", errors.New("standard input contains no password: enter the password there, or set --password or --token")
	}

	return secret.String(line), nil
}

// authenticate returns an error unless the service accepts the credentials. A user who only lacks the role for the request has
// valid credentials, so this is not an error.
func (s *session) authenticate(ctx context.Context, wanted Settings) error {
	client := s.clientOf(wanted)

	var err error
	if s.provisioner {
		_, err = client.ListOperations(ctx, operatorapi.ListOperationsParams{PageSize: 1})
	} else {
		_, err = client.GetCatalog(ctx)
	}

	if answered(http.StatusForbidden)(err) {
		return nil
	}

	return err
}

// newContextListCommand returns the command that lists the contexts without their secrets.
func newContextListCommand(session *session) *cobra.Command {
	return &cobra.Command{
		Use:   listCommand,
		Short: "List the contexts in the configuration file",
		Args:  arguments(),
		RunE: func(*cobra.Command, []string) error {
			stored, err := session.sources().configuration()
			if err != nil {
				return &usageError{cause: err}
			}

			type shownContext struct {
				Name     string `json:"name"`
				Current  bool   `json:"current"`
				Address  string `json:"address"`
				Username string `json:"username,omitempty"`
				// Provisioner is the address of the Provisioner, or empty.
				Provisioner string `json:"provisioner,omitempty"`
			}

			var (
				shown = []shownContext{}
				rows  = output.Rows{
					Head: []string{"CURRENT", "NAME", "ADDRESS", "USER", "PROVISIONER"}, IDs: append([]string{}, stored.names()...),
					WideColumns: 1, // the Provisioner
					None:        "No contexts found. 'ebctl login' creates one.",
				}
				current = cmp.Or(session.sources().contextName(), stored.Context)
			)

			for _, name := range stored.names() {
				found, mark := stored.Contexts[name], ""
				if name == current {
					mark = "*"
				}

				shown = append(shown, shownContext{
					Name: name, Current: name == current, Address: found.Address, Username: found.Username, Provisioner: found.Provisioner.Address,
				})
				rows.Rows = append(rows.Rows, []string{mark, name, found.Address, found.Username, found.Provisioner.Address})
			}

			return session.print(shown, rows)
		},
	}
}

func newContextUseCommand(session *session) *cobra.Command {
	return newContextChangeCommand(session, "use", "Select the context for later commands", func(c *configuration, name string) {
		c.Context = name
	})
}

// newContextDeleteCommand returns the command that removes a context and its credentials from the file. It does not invalidate
// the credentials.
func newContextDeleteCommand(session *session) *cobra.Command {
	return newContextChangeCommand(session, "delete", "Remove a context and its credentials", func(c *configuration, name string) {
		delete(c.Contexts, name)

		if c.Context == name {
			c.Context = ""
		}
	})
}

// newContextChangeCommand returns a command that changes an existing context in the configuration file.
func newContextChangeCommand(session *session, verb, short string, apply func(c *configuration, name string)) *cobra.Command {
	return &cobra.Command{
		Use:               verb + " NAME",
		Short:             short,
		Args:              arguments("NAME"),
		ValidArgsFunction: session.completeContext,
		RunE: func(_ *cobra.Command, args []string) error {
			return session.sources().change(func(c *configuration) error {
				if _, exists := c.Contexts[args[0]]; !exists {
					return &usageError{cause: c.unknown(args[0])}
				}

				apply(c, args[0])

				return nil
			})
		},
	}
}

// completeContext returns the context names for shell completion.
func (s *session) completeContext(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	stored, err := s.sources().configuration()
	if err != nil || len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}

	return stored.names(), cobra.ShellCompDirectiveNoFileComp
}
