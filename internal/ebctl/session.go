package ebctl

import (
	"context"
	"fmt"
	"time"

	"github.com/environment-broker/environment-broker/internal/ebctl/brokerclient"
	"github.com/environment-broker/environment-broker/internal/ebctl/output"
	"github.com/environment-broker/environment-broker/internal/ebctl/settings"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
)

// session is one command line: the tool and its global flags.
type session struct {
	App

	flags      settings.Settings
	configFile string
	format     output.Format
	timeout    time.Duration
}

// client returns a client of the broker that flags, environment and file name.
func (s *session) client() (*brokerclient.Client, error) {
	if s.timeout <= 0 {
		return nil, usage("--timeout has to be longer than nothing")
	}

	resolved, err := settings.Resolve(settings.Sources{
		Flags: s.flags, ConfigFile: s.configFile, Environment: s.Environment,
	})
	if err != nil {
		return nil, &usageError{cause: err}
	}

	return brokerclient.New(brokerclient.Config{
		Address:   resolved.Address,
		Username:  resolved.Username,
		Password:  resolved.Password,
		Token:     resolved.Token,
		Timeout:   s.timeout,
		UserAgent: "ebctl/" + s.Version,
		NewID:     s.NewID,
	}), nil
}

// print writes a result in the format that was asked for.
func (s *session) print(value any, text output.Text) error {
	return s.format.Print(s.Out, value, text)
}

// age is how long ago something was.
func (s *session) age(moment time.Time) string {
	if moment.IsZero() {
		return ""
	}

	return output.Duration(s.Clock.Now().Sub(moment))
}

// runtime returns the runtime of the instance with that id or name, and a client of the broker that has it.
func (s *session) runtime(ctx context.Context, idOrName string) (*brokerclient.Client, operatorapi.Runtime, error) {
	client, err := s.client()
	if err != nil {
		return nil, operatorapi.Runtime{}, err
	}

	found, err := findRuntime(ctx, client, idOrName)

	return client, found, err
}

// findRuntime returns the runtime of the instance with that id, else the only one with that name.
func findRuntime(ctx context.Context, client *brokerclient.Client, idOrName string) (operatorapi.Runtime, error) {
	byID, err := client.Runtimes(ctx, brokerclient.RuntimeFilter{InstanceID: idOrName})
	if err != nil {
		return operatorapi.Runtime{}, fmt.Errorf("looking for instance %s: %w", idOrName, err)
	}

	if len(byID.Data) > 0 {
		return byID.Data[0], nil
	}

	var named []operatorapi.Runtime

	for runtime, err := range client.AllRuntimes(ctx, brokerclient.RuntimeFilter{}) {
		if err != nil {
			return operatorapi.Runtime{}, fmt.Errorf("looking for an instance named %s: %w", idOrName, err)
		}

		if runtime.Name == idOrName {
			named = append(named, runtime)
		}
	}

	switch len(named) {
	case 0:
		return operatorapi.Runtime{}, &notFoundError{text: "no instance has the id or the name " + idOrName}
	case 1:
		return named[0], nil
	default:
		return operatorapi.Runtime{}, usage("%d instances are named %s, among them %s and %s: give an id",
			len(named), idOrName, named[0].InstanceID, named[1].InstanceID)
	}
}
