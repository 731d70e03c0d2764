package ebctl

import "github.com/spf13/cobra"

// listsOf returns the commands, with quotes, that list the objects which the command takes as arguments. It returns none if these are
// instances, runtimes or operations, or only filters of a list.
func listsOf(command *cobra.Command) []string {
	if command.Name() == listCommand {
		return nil
	}

	for at := command; at.HasParent(); at = at.Parent() {
		if lists, known := knownLists()[at.CommandPath()]; known {
			return lists
		}
	}

	for at := command; at.HasParent(); at = at.Parent() {
		for _, sibling := range at.Parent().Commands() {
			if sibling.Name() == listCommand {
				return []string{"'" + sibling.CommandPath() + "'"}
			}
		}
	}

	return nil
}

// knownLists returns the lists for commands, and for groups of commands, to which the rule does not apply that the group of a command
// lists its objects.
func knownLists() map[string][]string {
	const instances = "'ebctl instance list'"

	plans := []string{"'ebctl upgrade plans'"}

	return map[string][]string{
		"ebctl instance":            nil,
		"ebctl operation":           nil,
		"ebctl event":               nil,
		"ebctl audit verify":        nil,
		"ebctl binding":             {instances, "'ebctl binding list INSTANCE'"},
		"ebctl platform":            {instances, "'ebctl platform list'"},
		"ebctl credentials":         {instances, "'ebctl credentials list'"},
		"ebctl leftover":            {"'ebctl instance list --leftovers'"},
		"ebctl upgrade show":        plans,
		"ebctl upgrade apply":       plans,
		"ebctl orchestration start": nil,
		"ebctl accounts":            {"'ebctl accounts list'", "docs/operator/account-pool.md"},
		"ebctl provisioner":         nil,
	}
}
