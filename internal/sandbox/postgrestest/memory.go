package postgrestest

import (
	"fmt"
	"os"
	"syscall"
)

const (
	// memoryFileSystem is the in-memory file system on Linux.
	memoryFileSystem = "/dev/shm"
	// memoryNeeded is the free space in bytes that MemoryFolder requires. It is enough for the servers of several test binaries,
	// each of which needs about 100 MB. Docker's default size of the file system, 64 MB, is too small.
	memoryNeeded = 2 << 30
)

// MemoryFolder creates a temporary folder in memory, or on disk if the system has no memory file system with 2 GB of free space.
// The caller must remove the folder. Creating a database writes a thousand files; on disk, this takes several times as much CPU
// time, even without fsync.
func MemoryFolder(pattern string) (string, error) {
	parent := ""

	var system syscall.Statfs_t
	if syscall.Statfs(memoryFileSystem, &system) == nil && system.Bavail*uint64(system.Bsize) >= memoryNeeded { //nolint:gosec // the types differ between systems
		parent = memoryFileSystem
	}

	folder, err := os.MkdirTemp(parent, pattern)
	if err != nil {
		return "", fmt.Errorf("creating a temporary folder: %w", err)
	}

	return folder, nil
}
