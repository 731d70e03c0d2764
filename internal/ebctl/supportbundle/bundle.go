package supportbundle

import (
	"archive/tar"
	"cmp"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"time"
)

// Manifest lists the contents of an archive.
type Manifest struct {
	CreatedAt time.Time `json:"createdAt"`
	// CreatedBy is the program and its version.
	CreatedBy string `json:"createdBy"`
	// Subject is the instance or the operation that the archive is about, or empty if it is about the services in general.
	Subject string `json:"subject,omitempty"`
	// Redacted describes the kinds of content that were masked or replaced.
	Redacted string `json:"redacted"`
	Files    []File `json:"files"`
	// Missing are the files that could not be included.
	Missing []File `json:"missing"`
}

// File is an entry of a Manifest.
type File struct {
	Name    string `json:"name"`
	Content string `json:"content"`
	// Bytes is the size of a file that the archive contains.
	Bytes int `json:"bytes,omitempty"`
	// Reason explains why the archive does not contain the file.
	Reason string `json:"reason,omitempty"`
}

// ManifestName is the name of the manifest in the archive.
const ManifestName = "manifest.json"

const redacted = "Secrets are ***. Names, email addresses and network addresses of people are replaced by numbered pseudonyms. Strings in parameters, labels and changed " +
	"fields are ***, unless they come from a list of allowed values."

// fileMode makes the unpacked files readable only by the user.
const fileMode = 0o600

// Bundle collects the documents of an archive in memory. It is not safe for concurrent use.
type Bundle struct {
	redactor *Redactor
	// left is the number of bytes that remain for further documents, measured before redaction.
	left      int
	documents []document
	missing   []File
}

type document struct {
	File

	// value is a string or a decoded JSON document.
	value any
}

// New returns an empty bundle. limit is the maximum total size of its documents in bytes.
func New(redactor *Redactor, limit int) *Bundle { return &Bundle{redactor: redactor, left: limit} }

// Add adds the document that get returns: a string as text, any other value as JSON. If get fails, the context has ended, or the
// document is too large, Add records the reason in the manifest instead and returns false.
func (b *Bundle) Add(ctx context.Context, name, content string, get func(ctx context.Context) (any, error)) bool {
	value, err := obtained(ctx, get)
	if err == nil {
		err = b.add(File{Name: name, Content: content}, value)
	}

	if err != nil {
		b.Miss(name, content, err.Error())
	}

	return err == nil
}

// obtained calls get, unless the context has ended.
func obtained(ctx context.Context, get func(ctx context.Context) (any, error)) (any, error) {
	if ctx.Err() != nil {
		return nil, errTime
	}

	value, err := get(ctx)
	if ctx.Err() != nil {
		return nil, errTime
	}

	return value, err
}

var errTime = errors.New("the time limit was reached")

// Miss records that a document cannot be included.
func (b *Bundle) Miss(name, content, reason string) {
	b.missing = append(b.missing, File{Name: name, Content: content, Reason: reason})
}

func (b *Bundle) add(file File, value any) error {
	var size int

	if text, is := value.(string); is {
		size = len(text)
	} else {
		encoded, err := json.Marshal(value)
		if err != nil {
			return fmt.Errorf("encoding: %w", err)
		}

		size, value = len(encoded), nil
		if err := json.Unmarshal(encoded, &value); err != nil {
			return fmt.Errorf("decoding: %w", err)
		}
	}

	if size > b.left {
		return fmt.Errorf("the archive would be too large: the document has %d bytes, but only %d are left", size, b.left)
	}

	b.left -= size
	b.redactor.Learn(value)
	b.documents = append(b.documents, document{File: file, value: value})

	return nil
}

// Write writes the archive, a tar file compressed with gzip. All files are in one folder. It completes the manifest, writes it as the first
// file, and returns it.
func (b *Bundle) Write(to io.Writer, folder string, manifest Manifest) (Manifest, error) {
	manifest.Redacted, manifest.Files, manifest.Missing = redacted, []File{}, []File{}
	contents := make([][]byte, 0, len(b.documents))

	for _, one := range b.documents {
		content, err := b.redact(one.value)
		if err != nil {
			return manifest, fmt.Errorf("encoding %s: %w", one.Name, err)
		}

		one.Bytes = len(content)
		contents = append(contents, content)
		manifest.Files = append(manifest.Files, one.File)
	}

	for _, file := range b.missing {
		file.Reason = b.redactor.Text(file.Reason)
		manifest.Missing = append(manifest.Missing, file)
	}

	head, err := b.redact(manifest)
	if err != nil {
		return manifest, fmt.Errorf("encoding the manifest: %w", err)
	}

	zipped := gzip.NewWriter(to)
	archive := tar.NewWriter(zipped)

	err = put(archive, path.Join(folder, ManifestName), manifest.CreatedAt, head)
	for i, content := range contents {
		err = cmp.Or(err, put(archive, path.Join(folder, manifest.Files[i].Name), manifest.CreatedAt, content))
	}

	return manifest, errors.Join(err, archive.Close(), zipped.Close())
}

// redact returns the content of a document without secrets and names of people. It does not change the manifest, which is already
// redacted.
func (b *Bundle) redact(value any) ([]byte, error) {
	switch typed := value.(type) {
	case string:
		return []byte(b.redactor.Text(typed)), nil
	case Manifest:
		value = typed
	default:
		value = b.redactor.Value(value)
	}

	content, err := json.MarshalIndent(value, "", "  ")

	return append(content, '\n'), err
}

func put(archive *tar.Writer, name string, at time.Time, content []byte) error {
	if err := archive.WriteHeader(&tar.Header{Name: name, Mode: fileMode, ModTime: at, Size: int64(len(content))}); err != nil {
		return fmt.Errorf("writing %s: %w", name, err)
	}

	if _, err := archive.Write(content); err != nil {
		return fmt.Errorf("writing %s: %w", name, err)
	}

	return nil
}

// Has reports whether the bundle contains the document with the given name.
func (b *Bundle) Has(name string) bool {
	return slices.ContainsFunc(b.documents, func(one document) bool { return one.Name == name })
}
