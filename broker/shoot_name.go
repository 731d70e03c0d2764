package broker

import "math/rand/v2"

const (
	// shootNameLetters are those that a name may hold, without such that are easily mistaken for each other.
	shootNameLetters = "0123456789abcdefghjkmnpqrstvwxyz"
	// shootNameLength is how many random letters follow the prefix: 34 thousand million names. Gardener bounds the name together
	// with that of its project to 21 characters.
	shootNameLength = 7
)

// newShootName returns a name for a cluster.
func newShootName() string {
	name := []byte("c-")
	for range shootNameLength {
		name = append(name, shootNameLetters[rand.IntN(len(shootNameLetters))])
	}

	return string(name)
}
