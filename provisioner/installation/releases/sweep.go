package releases

import (
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

const (
	// cacheSize is the default of SourcesOptions.CacheSize.
	cacheSize = 1 << 30
	// keptFor is the time after its last use during which a source stays in the cache whatever its size, because a replica may be
	// reading it. A folder of a download or of a removal that is older belongs to a replica that has died.
	keptFor = time.Hour

	// prefixPartial and prefixRemoved begin the names of the folders of downloads and removals in progress.
	prefixPartial = ".partial-"
	prefixRemoved = ".removed-"
)

// cached is a source in the cache. The time of its last use is the modification time of its folder.
type cached struct {
	folder string
	used   time.Time
	size   int64
}

// touch records that the source is used. On a file system that cannot be written, nothing is ever removed either.
func touch(folder string) {
	now := time.Now()
	_ = os.Chtimes(folder, now, now)
}

// Sweep bounds the cache: it removes the sources that were not used for the longest time until the others fit into the size. Sources
// that were used within an hour stay. It also removes what replicas that died have left. Files that it does not know stay. Every fetch
// of a source ends with a Sweep. Problems are ignored, because the next Sweep tries again.
func (s *Sources) Sweep() {
	entries, err := os.ReadDir(s.cache)
	if err != nil {
		return // there is no cache yet
	}

	var (
		sources []cached
		total   int64
		now     = time.Now()
	)

	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil || !entry.IsDir() {
			continue
		}

		folder, old := filepath.Join(s.cache, entry.Name()), now.Sub(info.ModTime()) > keptFor

		switch {
		case isDigest(entry.Name()):
			source := cached{folder: folder, used: info.ModTime(), size: sizeOf(folder)}
			sources, total = append(sources, source), total+source.size
		case old && (strings.HasPrefix(entry.Name(), prefixPartial) || strings.HasPrefix(entry.Name(), prefixRemoved)):
			_ = os.RemoveAll(folder)
		}
	}

	slices.SortFunc(sources, func(a, b cached) int { return a.used.Compare(b.used) })

	for _, source := range sources {
		if total <= s.size || now.Sub(source.used) <= keptFor {
			return
		}

		if s.discard(source.folder) {
			total -= source.size
		}
	}
}

// discard removes a source. It renames the folder first, so that nobody reads a part of the source.
func (s *Sources) discard(folder string) bool {
	removed, err := os.MkdirTemp(s.cache, prefixRemoved)
	if err != nil {
		return false
	}
	defer os.RemoveAll(removed) //nolint:errcheck // The next Sweep removes it.

	return os.Rename(folder, filepath.Join(removed, "content")) == nil
}

// isDigest reports whether the name is that of a source in the cache.
func isDigest(name string) bool {
	decoded, err := hex.DecodeString(name)

	return err == nil && len(decoded) == sha256.Size
}

// sizeOf returns the size of the files in a folder. Files that disappear meanwhile do not count.
func sizeOf(folder string) int64 {
	var size int64

	_ = filepath.WalkDir(folder, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return nil //nolint:nilerr // see above
		}

		if info, err := entry.Info(); err == nil {
			size += info.Size()
		}

		return nil
	})

	return size
}
