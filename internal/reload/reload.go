// Package reload keeps what a service has read from files up to date: files are looked at again and again, and what a bad file holds is
// not taken over.
package reload

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"os"
	"sync/atomic"
)

// Value is made of one file or several, which belong together. Get returns the newest one that could be made.
type Value[T any] struct {
	name  string
	paths []string
	parse func(contents [][]byte) (T, error)

	current atomic.Pointer[T]
	// seen is the digest of what was last looked at, good or bad.
	seen [sha256.Size]byte
}

// Load makes the value for the first time: then a bad file is an error. The name stands for it in the metric and in the log.
func Load[T any](name string, parse func(contents [][]byte) (T, error), paths ...string) (*Value[T], error) {
	value := &Value[T]{name: name, paths: paths, parse: parse}

	if _, err := value.look(); err != nil {
		return nil, err
	}

	return value, nil
}

// Get returns the value.
func (v *Value[T]) Get() T { return *v.current.Load() }

// look makes the value anew when a file has changed. It reports whether there is something to tell: a new value, or an error. What was
// found wrong once is not told again.
func (v *Value[T]) look() (changed bool, err error) {
	contents, err := read(v.paths)
	if err != nil {
		v.seen = [sha256.Size]byte{} // what is there once it can be read again is news

		return true, err
	}

	digest := digestOf(contents)
	if v.current.Load() != nil && digest == v.seen {
		return false, nil
	}

	v.seen = digest

	made, err := v.parse(contents)
	if err != nil {
		return true, err
	}

	v.current.Store(&made)

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

// digestOf tells contents apart, also those of which one's end is the other's begin.
func digestOf(contents [][]byte) [sha256.Size]byte {
	var all []byte

	for _, content := range contents {
		all = binary.BigEndian.AppendUint64(all, uint64(len(content)))
		all = append(all, content...)
	}

	return sha256.Sum256(all)
}
