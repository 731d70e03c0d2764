package reload

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"os"
	"sync/atomic"
)

// Value is parsed from one file, or from several that belong together. It is safe for concurrent use once loaded.
type Value[T any] struct {
	name  string
	paths []string
	parse func(contents [][]byte) (T, error)

	current atomic.Pointer[T]
	// seen is the digest of the contents read last, valid or not.
	seen [sha256.Size]byte
}

// Load reads and parses the files. The name identifies the value in the log and in the metric of rejected files; parse gets the contents
// in the order of the paths. It returns an error if a file cannot be read or parsed.
func Load[T any](name string, parse func(contents [][]byte) (T, error), paths ...string) (*Value[T], error) {
	value := &Value[T]{name: name, paths: paths, parse: parse}

	if _, err := value.check(); err != nil {
		return nil, err
	}

	return value, nil
}

// Get returns the value parsed last from valid files.
func (v *Value[T]) Get() T { return *v.current.Load() }

// check parses the files again if their contents have changed. It returns true with a nil error when it replaced the value, true with an
// error when the files cannot be used, and false when nothing has changed. Contents that cannot be parsed are reported once; files that
// cannot be read are reported by every check.
func (v *Value[T]) check() (changed bool, err error) {
	contents, err := read(v.paths)
	if err != nil {
		v.seen = [sha256.Size]byte{} // the same contents count as a change once they can be read again

		return true, err
	}

	digest := digestOf(contents)
	if v.current.Load() != nil && digest == v.seen {
		return false, nil
	}

	v.seen = digest

	parsed, err := v.parse(contents)
	if err != nil {
		return true, err
	}

	v.current.Store(&parsed)

	return true, nil
}

func read(paths []string) ([][]byte, error) {
	contents := make([][]byte, 0, len(paths))

	for _, path := range paths {
		content, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("reading a file: %w", err)
		}

		contents = append(contents, content)
	}

	return contents, nil
}

// digestOf hashes contents with unambiguous boundaries: moving bytes from one file to the next changes the digest.
func digestOf(contents [][]byte) [sha256.Size]byte {
	var all []byte

	for _, content := range contents {
		all = binary.BigEndian.AppendUint64(all, uint64(len(content)))
		all = append(all, content...)
	}

	return sha256.Sum256(all)
}
