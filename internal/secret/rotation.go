package secret

import (
	"maps"
	"slices"
	"strings"
)

// Prefix is what every envelope begins with that is sealed with the first key.
func (k *Keyring) Prefix() string { return k.current + ":" }

// Former lists the keys that open and do not seal, in the order of their ids.
func (k *Keyring) Former() []string {
	ids := slices.Sorted(maps.Keys(k.ciphers))

	return slices.DeleteFunc(ids, func(id string) bool { return id == k.current })
}

// Reencrypt returns the envelope sealed with the first key, unchanged if it is sealed with that already.
func (k *Keyring) Reencrypt(envelope, place string) (string, error) {
	if strings.HasPrefix(envelope, k.Prefix()) {
		return envelope, nil
	}

	plain, err := k.Open(envelope, place)
	if err != nil {
		return "", err
	}

	return k.Seal(plain, place), nil
}

// KeyOf is the id of the key that an envelope names.
func KeyOf(envelope string) string {
	id, _, _ := strings.Cut(envelope, ":")

	return id
}
