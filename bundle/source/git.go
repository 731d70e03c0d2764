package source

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"strings"

	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
	"github.com/go-git/go-git/v5/plumbing/storer"
	"github.com/go-git/go-git/v5/storage/filesystem"

	"github.com/environment-broker/environment-broker/bundle/api/v1alpha1"
)

// gitCache limits the size of a repository's objects in memory, in bytes.
const gitCache = 16 << 20

// gitSource fetches a folder of a Git commit.
type gitSource struct {
	options Options
	objects objects
}

// Fetch implements Fetcher. The resolved source contains the commit to which the branch or the tag currently refers. Fetch downloads only
// this commit if the server permits it, and otherwise all branches and tags.
func (s *gitSource) Fetch(ctx context.Context, request Request, into *os.Root) (Result, error) {
	ctx, cancel := context.WithTimeout(ctx, s.options.Timeout)
	defer cancel()

	source := *request.Source.Git

	directory := path.Clean(source.Directory)
	if strings.HasPrefix(source.Directory, "/") || !fs.ValidPath(directory) {
		return Result{}, terminal("source.git.directory %q leaves the repository: write a relative path without ..", source.Directory)
	}

	folder, err := os.MkdirTemp(s.options.Temporary, "bundle-git-")
	if err != nil {
		return Result{}, err
	}
	defer os.RemoveAll(folder) //nolint:errcheck // The operating system cleans up temporary folders, too.

	server, host, err := s.connect(ctx, source, folder)
	if err != nil {
		return Result{}, err
	}
	defer server.Close() //nolint:errcheck // Everything has been read.

	storage := filesystem.NewStorage(osfs.New(folder, osfs.WithBoundOS()), cache.NewObjectLRU(gitCache))
	defer storage.Close() //nolint:errcheck // It is removed.

	commit, err := s.download(ctx, server, source.Ref, storage, folder)
	if err != nil {
		return Result{}, gitError(ctx, host, err)
	}

	if err := writeCommit(commit, directory, into, s.options.Limits); err != nil {
		return Result{}, unpacked(err, "the commit "+commit.Hash.String())
	}

	source.Ref = v1alpha1.GitRef{Commit: commit.Hash.String()}

	return Result{Resolved: v1alpha1.BundleSource{Type: v1alpha1.SourceTypeGit, Git: &source}}, nil
}

// download stores the objects that the commit needs, and returns the commit.
func (s *gitSource) download(ctx context.Context, server gitServer, ref v1alpha1.GitRef, storage *filesystem.Storage, folder string) (*object.Commit, error) {
	advertised, err := server.AdvertisedReferencesContext(ctx)
	if err != nil {
		return nil, err
	}

	wants, shallow, err := wanted(advertised, ref)
	if err != nil {
		return nil, err
	}

	request := packp.NewUploadPackRequestFromCapabilities(advertised.Capabilities)
	request.Wants = wants

	if shallow && advertised.Capabilities.Supports(capability.Shallow) {
		request.Depth = packp.DepthCommits(1)

		if err := request.Capabilities.Set(capability.Shallow); err != nil {
			return nil, err
		}
	}

	response, err := server.UploadPack(ctx, request)
	if err != nil {
		return nil, err
	}
	defer response.Close() //nolint:errcheck // It has been read only.

	pack, err := savePack(request.Capabilities, response, folder, s.options.Limits)
	if err != nil {
		return nil, err
	}
	defer pack.Close()

	if err := packfile.UpdateObjectStorage(storage, pack); err != nil {
		return nil, err
	}

	if ref.Commit != "" {
		return commitOf(storage, plumbing.NewHash(ref.Commit))
	}

	return commitOf(storage, wants[0])
}

// wanted returns the objects to request from the server, and whether their history can be omitted.
func wanted(advertised *packp.AdvRefs, ref v1alpha1.GitRef) (wants []plumbing.Hash, shallow bool, err error) {
	name := "refs/heads/" + ref.Branch
	if ref.Tag != "" {
		name = "refs/tags/" + ref.Tag
	}

	if ref.Commit == "" {
		hash, exists := advertised.References[name]
		if !exists {
			return nil, false, transient("the repository has no %s: push it, or correct source.git.ref", name)
		}

		return []plumbing.Hash{hash}, true, nil
	}

	commit := plumbing.NewHash(ref.Commit)
	if advertised.Capabilities.Supports(capability.AllowReachableSHA1InWant) {
		return []plumbing.Hash{commit}, true, nil
	}

	for name, hash := range advertised.References {
		if hash == commit || advertised.Peeled[name] == commit {
			return []plumbing.Hash{hash}, true, nil
		}

		if strings.HasPrefix(name, "refs/heads/") || strings.HasPrefix(name, "refs/tags/") {
			wants = append(wants, hash)
		}
	}

	if len(wants) == 0 {
		return nil, false, noCommit(commit)
	}

	return wants, false, nil
}

func noCommit(commit plumbing.Hash) error {
	return transient("the repository has no commit %s in its branches and tags", commit)
}

// commitOf returns the commit with the given hash, or the commit to which the tag with this hash refers.
func commitOf(storage storer.EncodedObjectStorer, hash plumbing.Hash) (*object.Commit, error) {
	const longest = 10

	for range longest {
		commit, err := object.GetCommit(storage, hash)
		if !errors.Is(err, plumbing.ErrObjectNotFound) {
			return commit, err
		}

		tag, err := object.GetTag(storage, hash)
		if errors.Is(err, plumbing.ErrObjectNotFound) {
			return nil, noCommit(hash)
		}

		if err != nil {
			return nil, err
		}

		hash = tag.Target
	}

	return nil, terminal("the tag refers to more than %d other tags", longest)
}
