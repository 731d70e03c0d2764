package ebctl

import "github.com/spf13/cobra"

// listsOf returns the quoted names of the commands that list the objects on which the command works. It returns nil for list
// commands, and for commands on instances, runtimes and operations, because the hint of the error itself names the list commands
// for these.
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

// knownLists returns the exceptions to the rule that the list command of a group lists the objects on which the group works. The
// keys are commands and groups. For a key with a nil value, listsOf returns nil.
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
