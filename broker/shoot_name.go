package broker

import (
	"crypto/sha256"
	"fmt"
	"strconv"

	"github.com/environment-broker/environment-broker/internal/environment"
)

const (
	// shootNameLetters omits letters that are easily confused.
	shootNameLetters = "0123456789abcdefghjkmnpqrstvwxyz"
	// shootNameLength is the number of letters after the prefix. It allows 34 billion names. Gardener limits the total length of a
	// Shoot's name and its project's name to 21 characters.
	shootNameLength = 7
)

// shootName returns the name of the Shoot of a new instance. The same order always gets the same name. If the database has lost
// the instance, for example in a failover with asynchronous replication, a repeated order therefore finds the existing Shoot.
//
// Orders of another platform or tenant get other names. An instance that reuses the ID of a deleted one also gets another name:
// former is the ID of the deleted instance's newest operation. taken is the number of names that were tried and belong to
// other instances, which a unique index in the database detects.
func shootName(instance environment.Instance, former string, taken int) string {
	// The values are quoted, so different values never have the same hash input.
	seed := []string{instance.ID, instance.Platform, instance.RuntimeTenant(), former, strconv.Itoa(taken)}
	hash := sha256.Sum256(fmt.Appendf(nil, "%q", seed))

	name := []byte("c-")
	for _, value := range hash[:shootNameLength] {
		name = append(name, shootNameLetters[int(value)%len(shootNameLetters)])
	}

	return string(name)
}
