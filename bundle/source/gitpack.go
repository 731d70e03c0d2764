package source

import (
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/sideband"

	"github.com/environment-broker/environment-broker/bundle/archive"
)

const (
	// maxObjects limits the number of objects in a repository, because the index of the objects is kept in memory.
	maxObjects = 500_000
	// deltaHeader is the maximum length of the two sizes at the start of a delta, in bytes.
	deltaHeader = 2 * binary.MaxVarintLen64
)

// savePack stores the packfile from a response, checks it, and opens it for reading.
func savePack(capabilities *capability.List, response io.Reader, folder string, limits archive.Limits) (*os.File, error) {
	switch {
	case capabilities.Supports(capability.Sideband64k):
		response = sideband.NewDemuxer(sideband.Sideband64k, response)
	case capabilities.Supports(capability.Sideband):
		response = sideband.NewDemuxer(sideband.Sideband, response)
	}

	pack, err := os.Create(filepath.Join(folder, "received.pack"))
	if err != nil {
		return nil, err
	}

	size, err := io.Copy(pack, io.LimitReader(response, limits.CompressedBytes+1))

	switch {
	case err != nil:
	case size > limits.CompressedBytes:
		err = terminal("the repository has more than %d compressed bytes", limits.CompressedBytes)
	default:
		err = checkPack(pack, limits)
	}

	if err == nil {
		_, err = pack.Seek(0, io.SeekStart)
	}

	if err != nil {
		return nil, errors.Join(err, pack.Close())
	}

	return pack, nil
}

// checkPack rejects a packfile whose objects need more memory or time than permitted. go-git decompresses objects into memory, so their
// sizes are checked first. The size of an object is in its header, and the size of a delta is at its start.
func checkPack(pack io.ReadSeeker, limits archive.Limits) error {
	if _, err := pack.Seek(0, io.SeekStart); err != nil {
		return err
	}

	largest := limits.Bytes
	if largest == 0 {
		largest = archive.DefaultLimits().Bytes
	}

	scanner := packfile.NewScanner(pack)

	_, count, err := scanner.Header()
	if err != nil {
		return transient("the server did not send a valid packfile")
	}

	if count > maxObjects {
		return terminal("the repository has %d objects; at most %d are permitted", count, maxObjects)
	}

	left := 2 * largest // The history contains more objects than the commit.

	for range count {
		header, err := scanner.NextObjectHeader()
		if err != nil {
			return transient("the server did not send a valid packfile")
		}

		if header.Length < 0 || header.Length > left {
			return tooLarge(largest)
		}
		left -= header.Length

		start := &prefix{}
		if _, _, err := scanner.NextObject(start); err != nil {
			return transient("the server did not send a valid packfile")
		}

		if header.Type != plumbing.OFSDeltaObject && header.Type != plumbing.REFDeltaObject {
			continue
		}

		size, valid := start.deltaSize()
		if !valid || size > uint64(left) { //nolint:gosec // left is not negative
			return tooLarge(largest)
		}
		left -= int64(size) //nolint:gosec // it is not larger than left
	}

	return nil
}

func tooLarge(bytes int64) error {
	return terminal("the objects of the repository have more than %d bytes in total: leave out large files, or use a tag or branch", 2*bytes)
}

// prefix is a writer that keeps only the first bytes that are written to it.
type prefix struct{ start []byte }

// Write implements io.Writer.
func (p *prefix) Write(content []byte) (int, error) {
	p.start = append(p.start, content[:min(len(content), deltaHeader-len(p.start))]...)

	return len(content), nil
}

// deltaSize returns the size of the object that a delta produces, or false if the delta is invalid. A delta starts with the size
// of the original object, followed by the size of the produced object.
func (p *prefix) deltaSize() (uint64, bool) {
	_, first := binary.Uvarint(p.start)
	if first <= 0 {
		return 0, false
	}

	size, second := binary.Uvarint(p.start[first:])

	return size, second > 0
}
