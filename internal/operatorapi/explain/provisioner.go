package explain

import (
	"fmt"
	"strings"
	"time"

	"github.com/environment-broker/environment-broker/internal/operatorapi"
)

// OfProvisioner explains an operation of the Provisioner, like Of for the broker. The explanation refers to runtimes instead of
// instances, and to the commands of 'ebctl provisioner'.
func OfProvisioner(operation operatorapi.Operation, now time.Time) Explanation {
	explanation := Of(operation, now)
	explanation.Summary = fmt.Sprintf("The %s operation of runtime %s %s.", operation.Kind, operation.InstanceID, predicate(operation, now))
	explanation.Advice = advice(situation{Operation: operation, now: now, provisioner: true})

	return explanation
}

// ForProvisioner adapts a message about the broker to the Provisioner: it replaces instances with runtimes, and commands with the
// commands of 'ebctl provisioner'. Use it only for messages of ebctl, because it would also change names and messages from a server.
func ForProvisioner(text string) string {
	return strings.NewReplacer(
		"{instance}", "{instance}", // keep the placeholder, although it contains the word
		"ebctl operation", "ebctl provisioner operation",
		"'ebctl instance list', ", "'ebctl provisioner runtime list', ",
		"'ebctl instance list'", "'ebctl provisioner runtime list'",
		"ebctl audit", "ebctl provisioner audit",
		"ebctl account", "ebctl provisioner account",
		"ebctl reconcile", "ebctl provisioner reconcile",
		" and 'ebctl catalog'", "",
		"'ebctl instance delete' deletes the instance.", "A client of the Provisioner can still remove the runtime.",
		"--instance ", "--runtime ",
		"EBCTL_", "EBCTL_PROVISIONER_",
		"an instance", "a runtime", "instance", "runtime",
		"broker", "Provisioner",
	).Replace(text)
}
