package fleet

import (
	"slices"
	"strconv"
	"strings"

	"github.com/environment-broker/environment-broker/internal/failure"
)

// Conditions returns the names of the conditions that ParseTarget accepts.
func Conditions() []string {
	return []string{"account", "subaccount", "region", "plan", "state", "kubernetes-version", "kyma-version", "label", "percentage", "instance", "runtime", "shoot"}
}

// ParseTarget parses the text form of a target: "all", or conditions such as plan=aws,region=^eu-,label=ring=canary that must all
// hold. Commas in values are escaped with a backslash. Only label can be repeated. A percentage without other conditions is a
// share of all instances. Errors are of type ValidationError. The returned target is valid.
func ParseTarget(text string) (Target, error) {
	if text == targetAll {
		return Target{Target: targetAll}, nil
	}

	var (
		target Target
		given  []string
	)

	for _, condition := range split(text) {
		name, value, found := strings.Cut(condition, "=")

		switch {
		case !slices.Contains(Conditions(), name):
			return Target{}, invalid("%q is not a condition of a selector; use %s, or all%s", condition, strings.Join(Conditions(), ", "),
				failure.Suggestion(name, Conditions()))
		case !found || value == "":
			return Target{}, invalid("the condition %s of a selector has no value; use %s=VALUE", name, name)
		case slices.Contains(given, name) && name != "label":
			return Target{}, invalid("the condition %s is repeated; use several selectors", name)
		}

		given = append(given, name)

		if err := target.set(name, value); err != nil {
			return Target{}, err
		}
	}

	if target == (Target{Percentage: target.Percentage}) {
		target.Target = targetAll
	}

	if problems := target.problems(); len(problems) > 0 {
		return Target{}, invalid("the selector %q is invalid: %s", text, strings.Join(slices.Compact(problems), "; "))
	}

	return target, nil
}

// set sets the field for the named condition.
func (t *Target) set(name, value string) error {
	switch name {
	case "percentage":
		percentage, err := strconv.Atoi(value)
		if err != nil || percentage < 1 {
			return invalid("percentage must be a number from 1 to %d", maxPercentage)
		}

		t.Percentage = Share(percentage)
	case "label":
		t.Labels = strings.TrimPrefix(t.Labels+","+value, ",")
	default:
		*map[string]*string{
			"account": &t.GlobalAccount, "subaccount": &t.SubAccount, "region": &t.Region, "plan": &t.PlanName, "state": &t.State,
			"kubernetes-version": &t.KubernetesVersion, "kyma-version": &t.KymaVersion,
			"instance": &t.InstanceID, "runtime": &t.RuntimeID, "shoot": &t.Shoot,
		}[name] = value
	}

	return nil
}

// split splits the text at each comma that has no backslash before it. It removes the backslashes before the remaining commas.
func split(text string) []string {
	const comma = "\x00"

	parts := strings.Split(strings.ReplaceAll(text, `\,`, comma), ",")
	for i := range parts {
		parts[i] = strings.ReplaceAll(parts[i], comma, ",")
	}

	return parts
}
