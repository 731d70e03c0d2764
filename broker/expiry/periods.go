package expiry

import (
	"fmt"
	"strings"
	"time"
)

// Periods are the plans, by their names, that do not promise to last: their instances may be suspended and expire. The value is how long
// an instance lasts, 0 as long as nobody has it expire.
type Periods map[string]time.Duration

// Has reports whether instances of the plan may be suspended and expire.
func (p Periods) Has(plan string) bool {
	_, has := p[plan]

	return has
}

// End returns when an instance of the plan expires, zero for never.
func (p Periods) End(plan string, created time.Time) time.Time {
	if p[plan] == 0 {
		return time.Time{}
	}

	return created.Add(p[plan])
}

// Check finds what cannot be meant.
func (p Periods) Check() error {
	for plan, period := range p {
		if period < 0 || strings.TrimSpace(plan) == "" {
			return fmt.Errorf("plan %q with %s: write plan:duration, where the duration is not negative", plan, period)
		}
	}

	return nil
}
