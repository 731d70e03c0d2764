package archive

import "fmt"

// Limits bounds an archive and its content. For fields that are zero, the values of DefaultLimits apply.
type Limits struct {
	// CompressedBytes limits the size of the archive.
	CompressedBytes int64
	// Bytes limits the total size of all files.
	Bytes int64
	// Files limits the number of files, folders and links.
	Files int
	// Depth limits the number of elements in a path.
	Depth int
	// NoLinks means that all symbolic links are rejected. If it is false, links that stay inside the tree are accepted.
	NoLinks bool
}

// DefaultLimits returns the default limits, which are chosen for bundles.
func DefaultLimits() Limits {
	return Limits{CompressedBytes: 128 << 20, Bytes: 512 << 20, Files: 20_000, Depth: 64}
}

// withDefaults returns the limits with defaults for the fields that are zero.
func (l Limits) withDefaults() Limits {
	defaults := DefaultLimits()

	if l.CompressedBytes == 0 {
		l.CompressedBytes = defaults.CompressedBytes
	}

	if l.Bytes == 0 {
		l.Bytes = defaults.Bytes
	}

	if l.Files == 0 {
		l.Files = defaults.Files
	}

	if l.Depth == 0 {
		l.Depth = defaults.Depth
	}

	return l
}

// headers returns the maximum total size, in bytes, of everything in a tar archive except the contents of files: headers, long
// names and padding.
func (l Limits) headers() int64 {
	const perFile, atEnd = 4 << 10, 1 << 20

	return int64(l.Files)*perFile + atEnd
}

// InvalidError reports content that cannot be accepted. Reading the same content again would return the same error.
type InvalidError struct{ problem error }

// Error implements error.
func (e *InvalidError) Error() string { return e.problem.Error() }

// Unwrap returns the cause.
func (e *InvalidError) Unwrap() error { return e.problem }

func invalid(format string, args ...any) error { return &InvalidError{fmt.Errorf(format, args...)} }

// size formats a limit in bytes for an error message.
func size(bytes int64) string {
	if bytes < 1<<20 {
		return fmt.Sprintf("%d bytes", bytes)
	}

	return fmt.Sprintf("%d MiB", bytes>>20)
}
