package environment_test

import (
	"testing"

	"github.com/environment-broker/environment-broker/internal/environment"
)

func TestBindingKeys(t *testing.T) {
	keys := map[string]string{}

	for _, ids := range [][2]string{{"a", "b"}, {"a/b", "c"}, {"a", "b/c"}, {"a%2Fb", "c"}, {"", "x"}, {"ä ö", "?&="}} {
		key := environment.BindingKey(ids[0], ids[1])
		if other, taken := keys[key]; taken {
			t.Errorf("%q and %q have the same key", ids, other)
		}

		keys[key] = ids[0] + " " + ids[1]

		if instance, binding, is := environment.BindingOf(key); !is || instance != ids[0] || binding != ids[1] {
			t.Errorf("the key of %q was decoded to %q, %q, %t", ids, instance, binding, is)
		}
	}

	for _, id := range []string{"a", "a/b", "service_bindings"} {
		if _, _, is := environment.BindingOf(id); is {
			t.Errorf("the instance ID %q was decoded as the key of a binding", id)
		}
	}
}
