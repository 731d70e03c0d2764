package ebctl

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/spf13/cobra"

	"github.com/environment-broker/environment-broker/internal/ebctl/brokerclient"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
)

// lookup returns the instance with the given ID or name. An ID takes precedence over a name. If idOrName is empty, lookup returns
// no instance and no error. If there is no match, it returns a notFoundError; if several instances have the name, it returns a
// usageError with their IDs.
func lookup(ctx context.Context, client *brokerclient.Client, idOrName string) (operatorapi.Runtime, error) {
	if idOrName == "" {
		return operatorapi.Runtime{}, nil
	}

	byID, err := client.ListRuntimes(ctx, operatorapi.ListRuntimesParams{InstanceID: idOrName})
	if err != nil {
		return operatorapi.Runtime{}, fmt.Errorf("finding %s %s: %w", client.Noun(), idOrName, err)
	}

	if len(byID.Data) > 0 {
		return byID.Data[0], nil
	}

	named, err := client.ListRuntimes(ctx, operatorapi.ListRuntimesParams{Name: idOrName})
	if err != nil {
		return operatorapi.Runtime{}, fmt.Errorf("finding the %s named %s: %w", client.Noun(), idOrName, err)
	}

	switch len(named.Data) {
	case 0:
		return operatorapi.Runtime{}, &notFoundError{
			text:       fmt.Sprintf("no %s has the ID or the name %s", client.Noun(), idOrName),
			suggestion: similarName(ctx, client, idOrName),
		}
	case 1:
		return named.Data[0], nil
	}

	ids := make([]string, 0, len(named.Data))
	for _, one := range named.Data {
		ids = append(ids, one.InstanceID)
	}

	if named.Cursor != "" {
		ids = append(ids, "…")
	}

	return operatorapi.Runtime{}, usage("several %ss are named %s: use one of the IDs %s", client.Noun(), idOrName, strings.Join(ids, ", "))
}

// similarName returns a suggestion with the most similar name on the first page of instances, or an empty string. It ignores
// errors, so that the command still reports the missing instance.
func similarName(ctx context.Context, client *brokerclient.Client, name string) string {
	first, err := client.ListRuntimes(ctx, operatorapi.ListRuntimesParams{})
	if err != nil {
		return ""
	}

	names := make([]string, 0, len(first.Data))
	for _, one := range first.Data {
		names = append(names, one.Name)
	}

	return failure.Suggestion(name, names)
}

// instanceID returns the ID of the instance with the given ID or name. It accepts the ID of a deleted instance if the broker
// still has operations of this instance. If idOrName is empty, it returns an empty ID.
func instanceID(ctx context.Context, client *brokerclient.Client, idOrName string) (string, error) {
	found, err := lookup(ctx, client, idOrName)
	if !is[*notFoundError](err) {
		return found.InstanceID, err
	}

	former, failed := client.ListOperations(ctx, operatorapi.ListOperationsParams{InstanceID: idOrName, PageSize: 1})
	if failed != nil {
		return "", fmt.Errorf("finding operations of %s %s: %w", client.Noun(), idOrName, failed)
	}

	if len(former.Data) == 0 {
		return "", err
	}

	return idOrName, nil
}

// anyID returns the ID of the instance with the given ID or name. Audit entries and events may concern an instance that was deleted or
// never existed, so an argument that matches no instance is used as an ID. A message says so, because it may be a misspelled name.
func (s *session) anyID(ctx context.Context, client *brokerclient.Client, idOrName string) (string, error) {
	found, err := lookup(ctx, client, idOrName)
	if is[*notFoundError](err) {
		fmt.Fprintf(s.Err, "%s; %s is used as the ID of a deleted %s\n", err, idOrName, client.Noun())

		return idOrName, nil
	}

	return found.InstanceID, err
}

// withOperation calls run with idOrName as the ID of an operation. If the broker does not find the operation, withOperation
// treats idOrName as the ID or name of an instance, or as the ID of a deleted instance, and calls run with the ID of the instance's
// newest operation.
func withOperation[T any](ctx context.Context, client *brokerclient.Client, idOrName string, run func(id string) (T, error)) (T, error) {
	result, err := run(idOrName)
	if !answered(http.StatusNotFound)(err) {
		return result, err
	}

	found, failed := lookup(ctx, client, idOrName)

	unknown, isUnknown := errors.AsType[*notFoundError](failed)
	if isUnknown {
		if former, err := client.ListOperations(ctx, operatorapi.ListOperationsParams{InstanceID: idOrName, PageSize: 1}); err == nil && len(former.Data) > 0 {
			return run(former.Data[0].ID)
		}
	}

	switch {
	case isUnknown:
		return result, &notFoundError{
			text:       fmt.Sprintf("no operation has the ID %s, and no %s has this ID or name; operations are removed after their retention period", idOrName, client.Noun()),
			suggestion: unknown.suggestion,
		}
	case failed != nil:
		return result, failed
	case found.Status.LastOperation.ID == "":
		return result, err
	}

	return run(found.Status.LastOperation.ID)
}

// maxCompletions is the maximum number of suggestions for shell completion, which come from a single page of the operator API.
const maxCompletions = 100

// completeInstance returns names and IDs of instances for shell completion. Like completePlan, it returns nothing after an error.
func (s *session) completeInstance(command *cobra.Command, _ []string, given string) ([]cobra.Completion, cobra.ShellCompDirective) {
	var found []cobra.Completion

	client, err := s.client()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}

	list, err := client.ListRuntimes(command.Context(), operatorapi.ListRuntimesParams{PageSize: maxCompletions})
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}

	names := map[string]int{}
	for _, runtime := range list.Data {
		names[runtime.Name]++
	}

	for _, runtime := range list.Data {
		description := strings.TrimSpace(runtime.ServicePlanName + " " + string(runtime.Status.State))

		// Suggest only names that are unique. IDs are long, so suggest them only if the user has started to type one.
		if names[runtime.Name] == 1 && strings.HasPrefix(runtime.Name, given) {
			found = append(found, cobra.CompletionWithDesc(runtime.Name, description))
		}

		if strings.HasPrefix(runtime.InstanceID, given) && (given != "" || names[runtime.Name] > 1) {
			found = append(found, cobra.CompletionWithDesc(runtime.InstanceID, strings.TrimSpace(runtime.Name+" "+description)))
		}
	}

	return found, cobra.ShellCompDirectiveNoFileComp
}

// completeTarget returns the completions for commands on an instance: instances for the first argument, and bindings of the
// instance for the second argument, if the command has one.
func (s *session) completeTarget(command *cobra.Command, args []string, given string) ([]cobra.Completion, cobra.ShellCompDirective) {
	const bindingAt = 1

	switch words := strings.Fields(command.Use); {
	case len(args) == 0:
		return s.completeInstance(command, args, given)
	case len(args) == bindingAt && words[len(words)-1] == "BINDING":
		return s.completeBinding(command, args[0], given), cobra.ShellCompDirectiveNoFileComp
	default:
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
}

// completeBinding returns the IDs of an instance's bindings for shell completion.
func (s *session) completeBinding(command *cobra.Command, instance, given string) []cobra.Completion {
	found, err := s.find(command.Context(), instance)
	if err != nil {
		return nil
	}

	list, err := found.ListBindings(command.Context(), found.InstanceID)
	if err != nil {
		return nil
	}

	var bindings []cobra.Completion

	for _, binding := range list.Data {
		if strings.HasPrefix(binding.BindingID, given) {
			bindings = append(bindings, cobra.CompletionWithDesc(binding.BindingID, strings.TrimSpace(binding.Role+" "+binding.State)))
		}
	}

	return bindings
}

// completeOperation returns the completions for commands on an operation: the IDs of the newest operations, and the names of
// instances, each of which stands for the newest operation of the instance.
func (s *session) completeOperation(command *cobra.Command, args []string, given string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}

	found, directive := s.completeInstance(command, args, given)

	client, err := s.client()
	if err != nil {
		return found, directive
	}

	list, err := client.ListOperations(command.Context(), operatorapi.ListOperationsParams{PageSize: maxCompletions})
	if err != nil {
		return found, directive
	}

	for _, operation := range list.Data {
		if strings.HasPrefix(operation.ID, given) {
			found = append(found, cobra.CompletionWithDesc(operation.ID,
				strings.TrimSpace(fmt.Sprintf("%s of %s, %s", operation.Kind, operation.InstanceName, operation.State))))
		}
	}

	return found, directive
}
