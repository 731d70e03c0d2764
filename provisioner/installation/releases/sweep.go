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
	// keptFor is how long a source stays in the cache after its last use, even if the cache is too large, because a replica may
	// be reading it. A temporary folder that is older than keptFor was left behind by a replica that died during a download or a
	// removal.
	keptFor = time.Hour

	// prefixPartial and prefixRemoved are the prefixes of the temporary folders for downloads and removals in progress.
	prefixPartial = ".partial-"
	prefixRemoved = ".removed-"
)

// cached is a source in the cache. The time of its last use is the modification time of its folder.
type cached struct {
	folder string
	used   time.Time
	size   int64
}

// touch records a use of the source. It ignores errors, which occur on a read-only file system: Sweep cannot remove the source
// there either.
func touch(folder string) {
	now := time.Now()
	_ = os.Chtimes(folder, now, now)
}

// Sweep limits the size of the cache: it removes the least recently used sources until the others fit. It keeps sources that were
// used within the last hour. It also removes the temporary folders of replicas that died, and keeps files that it does not know.
// Sweep runs when a replica starts and after every download of a source. It ignores errors, because the next Sweep tries again.
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

// discard removes a source and reports whether it succeeded. It renames the folder first, so that no replica reads an incomplete source.
func (s *Sources) discard(folder string) bool {
	removed, err := os.MkdirTemp(s.cache, prefixRemoved)
	if err != nil {
		return false
	}
	defer os.RemoveAll(removed) //nolint:errcheck // The next Sweep removes it.

	return os.Rename(folder, filepath.Join(removed, "content")) == nil
}

// isDigest reports whether a folder name is a digest. In the cache, only the folders of sources have such names.
func isDigest(name string) bool {
	decoded, err := hex.DecodeString(name)

	return err == nil && len(decoded) == sha256.Size
}

// sizeOf returns the total size of the files in a folder. It ignores files that are removed while it reads the folder.
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
