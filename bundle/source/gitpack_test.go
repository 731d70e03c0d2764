package source

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/environment-broker/environment-broker/bundle/archive"
)

// pack returns a packfile with an object that declares its size.
func pack(tb testing.TB, kind plumbing.ObjectType, size int, content []byte) []byte {
	tb.Helper()

	var packed bytes.Buffer

	packed.WriteString("PACK")

	for _, number := range []uint32{2, 1} {
		if err := binary.Write(&packed, binary.BigEndian, number); err != nil {
			tb.Fatal(err)
		}
	}

	first := byte(kind)<<4 | byte(size&0x0f)
	if size >>= 4; size > 0 {
		first |= 0x80
	}

	packed.WriteByte(first)

	if size > 0 {
		packed.Write(binary.AppendUvarint(nil, uint64(size)))
	}

	if kind == plumbing.REFDeltaObject {
		packed.Write(make([]byte, 20))
	}

	zipped := zlib.NewWriter(&packed)
	if _, err := zipped.Write(content); err != nil {
		tb.Fatal(err)
	}

	zipped.Close()
	packed.Write(make([]byte, 20)) // the checksum, which is not read

	return packed.Bytes()
}

// delta returns a delta that declares an object of the given size.
func delta(size uint64) []byte { return binary.AppendUvarint(binary.AppendUvarint(nil, 10), size) }

// TestPackBombs checks that small packfiles with large objects are rejected before the objects are decompressed into memory.
func TestPackBombs(t *testing.T) {
	for name, test := range map[string]struct {
		pack []byte
		want string
	}{
		"accepted":    {pack(t, plumbing.BlobObject, 5, []byte("hello")), ""},
		"delta":       {pack(t, plumbing.REFDeltaObject, len(delta(100)), delta(100)), ""},
		"large":       {pack(t, plumbing.BlobObject, 3<<20, []byte("hello")), "more than 2097152 bytes in total"},
		"large delta": {pack(t, plumbing.REFDeltaObject, len(delta(1<<40)), delta(1<<40)), "more than 2097152 bytes in total"},
		"no sizes":    {pack(t, plumbing.REFDeltaObject, 1, []byte{0xff}), "more than 2097152 bytes in total"},
		"many":        {append([]byte("PACK\x00\x00\x00\x02\xff\xff\xff\xff"), make([]byte, 100)...), "has 4294967295 objects"},
		"more":        {pack(t, plumbing.BlobObject, 5, bytes.Repeat([]byte("x"), 1<<20)), "did not send a valid packfile"},
		"truncated":   {pack(t, plumbing.BlobObject, 5, []byte("hello"))[:14], "did not send a valid packfile"},
		"text":        {[]byte("error"), "did not send a valid packfile"},
	} {
		err := checkPack(bytes.NewReader(test.pack), archive.Limits{Bytes: 1 << 20})
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
	}
}

// FuzzPack checks arbitrary packfiles.
func FuzzPack(f *testing.F) {
	f.Add([]byte("PACK"))
	f.Add(pack(f, plumbing.BlobObject, 5, []byte("hello")))
	f.Add(pack(f, plumbing.REFDeltaObject, len(delta(1<<40)), delta(1<<40)))

	f.Fuzz(func(_ *testing.T, content []byte) {
		_ = checkPack(bytes.NewReader(content), archive.Limits{Bytes: 1 << 20}) // usually no packfile
	})
}
