package source_test

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"github.com/environment-broker/environment-broker/bundle/api/v1alpha1"
	"github.com/environment-broker/environment-broker/bundle/archive"
	"github.com/environment-broker/environment-broker/bundle/source"
)

// gitRepository is a repository that the git program has created.
type gitRepository struct {
	t      *testing.T
	parent string
	folder string
}

// newGit creates a repository named app.git.
func newGit(t *testing.T) *gitRepository {
	t.Helper()

	g := &gitRepository{t: t, parent: t.TempDir()}
	g.folder = filepath.Join(g.parent, "app.git")
	g.run("init", "--quiet", "--initial-branch=main", g.folder)

	return g
}

// run runs git without the user's configuration.
func (g *gitRepository) run(args ...string) string {
	g.t.Helper()

	command := exec.CommandContext(g.t.Context(), "git", args...)
	command.Dir = g.parent
	command.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com")

	output, err := command.CombinedOutput()
	if err != nil {
		g.t.Fatalf("git %v: %v\n%s", args, err, output)
	}

	return strings.TrimSpace(string(output))
}

// commit replaces the files and commits them. If a name ends with ->, the file is a link.
func (g *gitRepository) commit(files map[string]string) string {
	g.t.Helper()
	g.run("-C", g.folder, "rm", "-r", "--force", "--quiet", "--ignore-unmatch", ".")

	for name, content := range files {
		name, isLink := strings.CutSuffix(name, "->")
		path := filepath.Join(g.folder, name)

		err := os.MkdirAll(filepath.Dir(path), 0o750)
		if err == nil && isLink {
			err = os.Symlink(content, path)
		} else if err == nil {
			err = os.WriteFile(path, []byte(content), 0o600)
		}

		if err != nil {
			g.t.Fatal(err)
		}
	}

	g.run("-C", g.folder, "add", "--all")
	g.run("-C", g.folder, "commit", "--quiet", "--allow-empty", "--message=change")

	return g.run("-C", g.folder, "rev-parse", "HEAD")
}

// serve serves the repository over HTTP with git http-backend.
func (g *gitRepository) serve(wrap func(http.Handler) http.Handler) *httptest.Server {
	g.t.Helper()

	program, err := exec.LookPath("git")
	if err != nil {
		g.t.Fatal(err)
	}

	server := httptest.NewServer(wrap(&cgi.Handler{
		Path: program, Args: []string{"http-backend"}, Stderr: io.Discard,
		Env: []string{"GIT_PROJECT_ROOT=" + g.parent, "GIT_HTTP_EXPORT_ALL=1", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null"},
	}))
	g.t.Cleanup(server.Close)

	return server
}

func open(handler http.Handler) http.Handler { return handler }

func fromGit(repository string, ref v1alpha1.GitRef, change ...func(*v1alpha1.GitSource)) v1alpha1.BundleSource {
	from := &v1alpha1.GitSource{Repository: repository, Ref: ref}
	for _, change := range change {
		change(from)
	}

	return v1alpha1.BundleSource{Type: v1alpha1.SourceTypeGit, Git: from}
}

func inFolder(directory string) func(*v1alpha1.GitSource) {
	return func(from *v1alpha1.GitSource) { from.Directory = directory }
}

// TestGit checks that branches and tags are resolved to their commits, and that the resolved source has the same content after
// they have moved.
func TestGit(t *testing.T) {
	repository := newGit(t)
	repository.commit(map[string]string{"a": "history"})
	first := repository.commit(map[string]string{"a": "1", "d/b": "2"})
	repository.run("-C", repository.folder, "tag", "light")
	repository.run("-C", repository.folder, "tag", "--annotate", "--message=x", "annotated")

	url := repository.serve(open).URL + "/app.git"
	want := map[string]string{"a": "1", "d/b": "2"}

	var pinned []v1alpha1.BundleSource

	for _, ref := range []v1alpha1.GitRef{{Branch: "main"}, {Tag: "light"}, {Tag: "annotated"}, {Commit: first}} {
		resolved := mustFetch(t, source.Options{}, fromGit(url, ref), want)
		if resolved.Git.Ref != (v1alpha1.GitRef{Commit: first}) {
			t.Errorf("%+v is resolved to %+v", ref, resolved.Git.Ref)
		}

		pinned = append(pinned, resolved)
	}

	second := repository.commit(map[string]string{"a": "moved"})
	repository.run("-C", repository.folder, "tag", "--force", "light")
	repository.run("-C", repository.folder, "tag", "--delete", "annotated")

	// The commit is not the newest of a branch any more.
	for _, from := range pinned {
		mustFetch(t, source.Options{}, from, want)
	}

	mustFetch(t, source.Options{}, fromGit(url, v1alpha1.GitRef{Tag: "light"}), map[string]string{"a": "moved"})

	// Some servers, such as GitHub's, return any commit.
	repository.run("-C", repository.folder, "config", "uploadpack.allowReachableSHA1InWant", "true")
	mustFetch(t, source.Options{}, pinned[0], want)
	repository.run("-C", repository.folder, "config", "--unset", "uploadpack.allowReachableSHA1InWant")

	repository.run("-C", repository.folder, "checkout", "--quiet", "--orphan", "other")
	repository.commit(map[string]string{"a": "other"})
	repository.run("-C", repository.folder, "branch", "--delete", "--force", "main")
	repository.run("-C", repository.folder, "tag", "--delete", "light")
	mustFail(t, "nothing refers to the commit any more", source.Options{}, pinned[0], false, "the repository has no commit "+first)
	mustFail(t, "the branch may be pushed later", source.Options{}, fromGit(url, v1alpha1.GitRef{Branch: "main"}), false,
		"the repository has no refs/heads/main: push it")
	mustFail(t, "the tag may be pushed later", source.Options{}, fromGit(url, v1alpha1.GitRef{Tag: "other"}), false,
		"the repository has no refs/tags/other: push it")
	mustFail(t, "the repository may be created", source.Options{}, fromGit(strings.Replace(url, "app", "none", 1),
		v1alpha1.GitRef{Commit: second}), false, "has no such repository")
}

// TestGitDirectories checks different values of source.git.directory.
func TestGitDirectories(t *testing.T) {
	repository := newGit(t)
	repository.commit(map[string]string{
		"root": "r", "a/x": "1", "ab/y": "2", "ab/deep/z": "3", "link->": "a", "out/l->": "../../secret", "up/l->": "../a/x", "in/l->": "x", "in/x": "4",
	})

	url := repository.serve(open).URL + "/app.git"
	main := v1alpha1.GitRef{Branch: "main"}

	for directory, want := range map[string]map[string]string{
		"a": {"x": "1"}, "a/": {"x": "1"}, "./a": {"x": "1"}, "ab": {"y": "2", "deep/z": "3"}, "ab/deep": {"z": "3"}, "in": {"l": "4", "x": "4"},
	} {
		mustFetch(t, source.Options{}, fromGit(url, main, inFolder(directory)), want)
	}

	for directory, want := range map[string]string{
		"..": "leaves the repository", "../x": "leaves the repository", "/x": "leaves the repository", "a/../../b": "leaves the repository",
		"link": "has no folder link", "none": "has no folder none", "root": "has no folder root",
		"out": `"l" is a link to "../../secret", which is outside the folder`, "up": `"l" is a link to "../a/x", which is outside the folder`,
	} {
		mustFail(t, directory, source.Options{}, fromGit(url, main, inFolder(directory)), true, want)
	}

	mustFail(t, "the root has links out", source.Options{}, fromGit(url, main), true, "which is outside the folder")
	repository.commit(map[string]string{"root": "r"})

	for _, directory := range []string{"", ".", "./"} {
		mustFetch(t, source.Options{}, fromGit(url, main, inFolder(directory)), map[string]string{"root": "r"})
	}
}

// TestGitLimits checks that a repository cannot use up memory, disk or time.
func TestGitLimits(t *testing.T) {
	repository := newGit(t)
	random := make([]byte, 300_000)
	_, _ = rand.Read(random)
	repository.commit(map[string]string{"random": string(random), "zeros": strings.Repeat("\x00", 8<<20)})

	release := make(chan struct{})
	server := repository.serve(func(handler http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.HasPrefix(r.URL.Path, "/slow") {
				<-release
			}

			handler.ServeHTTP(w, r)
		})
	})
	t.Cleanup(func() { close(release) })

	main := v1alpha1.GitRef{Branch: "main"}
	for name, test := range map[string]struct {
		limits archive.Limits
		want   string
	}{
		"pack":    {archive.Limits{CompressedBytes: 100_000}, "more than 100000 compressed bytes"},
		"objects": {archive.Limits{Bytes: 1 << 20}, "more than 2097152 bytes in total"},
		"files":   {archive.Limits{Files: 1}, "more than 1 files"},
		"content": {archive.Limits{Bytes: 5 << 20}, "or more than 5 MiB"},
	} {
		mustFail(t, name, source.Options{Limits: test.limits}, fromGit(server.URL+"/app.git", main), true, test.want)
	}

	mustFail(t, "slow", source.Options{Timeout: 300 * time.Millisecond}, fromGit(server.URL+"/slow/app.git", main), false, "in time")
}

// TestGitCredentials checks basic authentication, and addresses that are not accepted.
func TestGitCredentials(t *testing.T) {
	repository := newGit(t)
	repository.commit(map[string]string{"a": "1"})

	server := repository.serve(func(handler http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if user, password, _ := r.BasicAuth(); user != "reader" || password != hidden {
				w.Header().Set("WWW-Authenticate", "Basic")
				w.WriteHeader(http.StatusUnauthorized)

				return
			}

			handler.ServeHTTP(w, r)
		})
	})

	main := v1alpha1.GitRef{Branch: "main"}
	options := source.Options{Reader: login()}
	with := func(secret string) func(*v1alpha1.GitSource) {
		return func(from *v1alpha1.GitSource) { from.Auth.Secret.Name = secret }
	}

	mustFetch(t, options, fromGit(server.URL+"/app.git", main, with("login")), map[string]string{"a": "1"})
	mustFail(t, "the Secret can be corrected", options, fromGit(server.URL+"/app.git", main, with("wrong")), false, "rejects the credentials")
	mustFail(t, "a Secret is required", options, fromGit(server.URL+"/app.git", main), false, "rejects the credentials, or requires credentials")
	mustFail(t, "the Secret may be created", options, fromGit(server.URL+"/app.git", main, with("none")), false, "the Secret none does not exist")

	for address, want := range map[string]string{
		"https://user:" + hidden + "@example.com/x": "contains credentials", "https://" + hidden + "@example.com/x": "contains credentials",
		repository.folder: "use https, http or ssh", "file:///etc": "use https, http or ssh", "git://example.com/x": "use https, http or ssh",
		"ssh://git@example.com/x": "needs a Secret with the keys ssh-privatekey and ssh-knownhosts",
	} {
		mustFail(t, address, options, fromGit(address, main), true, want)
	}

	server.Close()
	mustFail(t, "the server may come back", options, fromGit(server.URL+"/app.git", main), false, "cannot be reached")
}

// TestGitRedirects checks that a server that a repository has moved to gets no credentials.
func TestGitRedirects(t *testing.T) {
	repository := newGit(t)
	repository.commit(map[string]string{"a": "1"})

	var leaked atomic.Bool

	moved := repository.serve(func(handler http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Authorization") != "" {
				leaked.Store(true)
			}

			handler.ServeHTTP(w, r)
		})
	})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, moved.URL+r.URL.RequestURI(), http.StatusFound)
	}))
	t.Cleanup(server.Close)

	from := fromGit(server.URL+"/app.git", v1alpha1.GitRef{Branch: "main"}, func(from *v1alpha1.GitSource) { from.Auth.Secret.Name = "login" })

	mustFetch(t, source.Options{Reader: login()}, from, map[string]string{"a": "1"})

	if leaked.Load() {
		t.Error("the credentials were sent to another host")
	}
}

// sshGit serves a repository over SSH with git-upload-pack, to clients with one key. It returns the address and the host key.
func sshGit(t *testing.T, repository *gitRepository, client ssh.PublicKey) (string, ssh.PublicKey) {
	t.Helper()

	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}

	host, err := ssh.NewSignerFromKey(private)
	if err != nil {
		t.Fatal(err)
	}

	config := &ssh.ServerConfig{PublicKeyCallback: func(connection ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
		if connection.User() != "git" || string(key.Marshal()) != string(client.Marshal()) {
			return nil, fmt.Errorf("unknown key of %s", connection.User())
		}

		return &ssh.Permissions{}, nil
	}}
	config.AddHostKey(host)

	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { listener.Close() })

	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}

			go serveSSH(connection, config, repository.parent)
		}
	}()

	return listener.Addr().String(), host.PublicKey()
}

// serveSSH runs the commands of a connection.
func serveSSH(connection net.Conn, config *ssh.ServerConfig, folder string) {
	defer connection.Close()

	_, channels, requests, err := ssh.NewServerConn(connection, config)
	if err != nil {
		return
	}

	go ssh.DiscardRequests(requests)

	for offered := range channels {
		channel, requests, err := offered.Accept()
		if err != nil {
			return
		}

		for request := range requests {
			var message struct{ Command string }
			if request.Type != "exec" || ssh.Unmarshal(request.Payload, &message) != nil || !strings.HasPrefix(message.Command, "git-upload-pack '/") {
				request.Reply(false, nil)

				continue
			}

			request.Reply(true, nil)

			repository := filepath.Join(folder, filepath.Clean("/"+strings.Trim(strings.TrimPrefix(message.Command, "git-upload-pack "), "'")))
			command := exec.Command("git", "upload-pack", repository)
			command.Stdout, command.Stderr = channel, io.Discard

			// Run would wait for the end of the input, which the client does not close.
			if input, err := command.StdinPipe(); err == nil {
				go io.Copy(input, channel)
			}

			command.Run()
			channel.Close()
		}
	}
}

// TestGitOverSSH checks keys and known hosts.
func TestGitOverSSH(t *testing.T) {
	repository := newGit(t)
	commit := repository.commit(map[string]string{"d/a": "1"})

	newKey := func() (string, ssh.PublicKey) {
		public, private, err := ed25519.GenerateKey(rand.Reader)
		if err != nil {
			t.Fatal(err)
		}

		block, err := ssh.MarshalPrivateKey(private, "")
		if err != nil {
			t.Fatal(err)
		}

		key, err := ssh.NewPublicKey(public)
		if err != nil {
			t.Fatal(err)
		}

		return string(pem.EncodeToMemory(block)), key
	}

	private, public := newKey()
	otherPrivate, otherPublic := newKey()
	address, host := sshGit(t, repository, public)
	known := knownhosts.Line([]string{address}, host)

	options := source.Options{Reader: cluster{secrets: map[string]map[string]string{
		"right":        {"ssh-privatekey": private, "ssh-knownhosts": known},
		"other key":    {"ssh-privatekey": otherPrivate, "ssh-knownhosts": known},
		"changed host": {"ssh-privatekey": private, "ssh-knownhosts": knownhosts.Line([]string{address}, otherPublic)},
		"unknown host": {"ssh-privatekey": private, "ssh-knownhosts": knownhosts.Line([]string{"example.com"}, host)},
		"no host":      {"ssh-privatekey": private},
		"no key":       {"ssh-privatekey": hidden, "ssh-knownhosts": known},
		"no line":      {"ssh-privatekey": private, "ssh-knownhosts": hidden + " x y"},
	}}}
	from := func(secret string, change ...func(*v1alpha1.GitSource)) v1alpha1.BundleSource {
		return fromGit("ssh://git@"+address+"/app.git", v1alpha1.GitRef{Branch: "main"}, append(change, inFolder("d"), func(from *v1alpha1.GitSource) {
			from.Auth.Secret.Name = secret
		})...)
	}
	insecure := func(from *v1alpha1.GitSource) { from.Auth.InsecureSkipVerify = true }
	want := map[string]string{"a": "1"}

	pinned := mustFetch(t, options, from("right"), want)
	if pinned.Git.Ref.Commit != commit {
		t.Errorf("resolved to %+v", pinned.Git.Ref)
	}

	repository.commit(map[string]string{"d/a": "moved"})
	mustFetch(t, options, pinned, want)
	mustFetch(t, options, from("no host", insecure), map[string]string{"a": "moved"})
	mustFetch(t, options, from("changed host", insecure), map[string]string{"a": "moved"})

	for secret, want := range map[string]string{
		"other key": "rejects the key: correct ssh-privatekey", "changed host": "is not in ssh-knownhosts of the Secret",
		"unknown host": "is not in ssh-knownhosts of the Secret", "no host": "has no key ssh-knownhosts",
		"no key":  "has no valid ssh-privatekey",
		"no line": "has no valid ssh-knownhosts",
	} {
		mustFail(t, secret, options, from(secret), false, want)
	}

	missing := from("right")
	missing.Git.Repository = strings.Replace(missing.Git.Repository, "app", "none", 1)
	mustFail(t, "the repository may be created", options, missing, false, "has no such repository")

	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()

	slow := from("right", insecure)
	slow.Git.Repository = "ssh://git@" + silent.Addr().String() + "/app.git"
	options.Timeout = 300 * time.Millisecond
	mustFail(t, "a server that says nothing", options, slow, false, "did not respond in time")
}
