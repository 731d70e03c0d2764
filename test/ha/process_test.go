package ha

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"text/template"

	"github.com/environment-broker/environment-broker/internal/sandbox/postgrestest"
)

//go:embed testdata
var templates embed.FS

// account starts programs as a user that can run PostgreSQL, in folders that this user owns.
type account struct {
	testing.TB

	attributes *syscall.SysProcAttr
	// owner is the ID of the user, or -1 for the user that runs the test.
	owner int
	// folder contains PostgreSQL's sockets. Its path must be short, because the path of a socket has at most 107 characters.
	folder string
}

func newAccount(t testing.TB) account {
	t.Helper()

	attributes, owner, err := postgrestest.Unprivileged()
	if err != nil {
		t.Fatal(err)
	}

	folder, err := os.MkdirTemp("", "ha")
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() {
		if err := os.RemoveAll(folder); err != nil {
			t.Error(err)
		}
	})

	a := account{TB: t, attributes: attributes, owner: owner, folder: folder}
	a.own(folder)

	return a
}

// own makes the user the owner of a file or folder.
func (a account) own(path string) {
	a.Helper()

	if a.owner < 0 {
		return
	}

	if err := os.Chown(path, a.owner, -1); err != nil {
		a.Fatal(err)
	}
}

// mkdir creates a folder that the user owns.
func (a account) mkdir(name string) (path string) {
	a.Helper()

	path = filepath.Join(a.folder, name)
	if err := os.Mkdir(path, 0o700); err != nil {
		a.Fatal(err)
	}

	a.own(path)

	return path
}

// write creates a file that the user owns.
func (a account) write(path, content string) {
	a.Helper()

	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		a.Fatal(err)
	}

	a.own(path)
}

// render writes a file from the named template in testdata.
func (a account) render(name, path string, values any) {
	a.Helper()

	var content strings.Builder

	parsed, err := template.ParseFS(templates, "testdata/"+name)
	if err == nil {
		err = parsed.Execute(&content, values)
	}

	if err != nil {
		a.Fatal(err)
	}

	a.write(filepath.Join(a.folder, path), content.String())
}

// program returns the path of an installed program.
func (a account) program(name string) string {
	a.Helper()

	for _, folder := range []string{"", "/usr/bin", "/usr/sbin"} {
		if path, err := exec.LookPath(filepath.Join(folder, name)); err == nil {
			return path
		}
	}

	a.Fatalf("%s is not installed: run `make patroni`, or install the packages patroni, etcd-server, haproxy and pgbouncer", name)

	return ""
}

// start starts a program that is killed when the test ends. Its output goes to a file in the folder of the account. If the test
// fails, the last lines of the file are logged.
func (a account) start(name, path string, arguments ...string) *exec.Cmd {
	a.Helper()

	log, err := os.OpenFile(filepath.Join(a.folder, name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		a.Fatal(err)
	}
	defer log.Close()

	command := exec.Command(path, arguments...)
	command.SysProcAttr, command.Dir, command.Stdout, command.Stderr = a.attributes, a.folder, log, log

	if err := command.Start(); err != nil {
		a.Fatal(err)
	}

	a.Cleanup(func() {
		kill(command)

		if content, err := os.ReadFile(log.Name()); err == nil && a.Failed() {
			a.Logf("log of %s:\n%s", name, tail(string(content)))
		}
	})

	return command
}

// kill kills a program and waits until it has ended. It does nothing if the program was killed before.
func kill(command *exec.Cmd) {
	if command.ProcessState == nil {
		_ = command.Process.Signal(syscall.SIGKILL)
		_ = command.Wait() // the error only says that the program was killed
	}
}

func tail(log string) string {
	const lines = 40

	all := strings.Split(strings.TrimSpace(log), "\n")

	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

// postmaster returns the process ID of the server that was last started in a data folder, or 0 if there is none.
func postmaster(data string) (int, error) {
	content, err := os.ReadFile(filepath.Join(data, "postmaster.pid"))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}

	if err != nil {
		return 0, err
	}

	first, _, complete := strings.Cut(string(content), "\n")
	if !complete {
		return 0, nil
	}

	id, err := strconv.Atoi(first)
	if err != nil {
		return 0, fmt.Errorf("reading the process ID of PostgreSQL: %w", err)
	}

	return id, nil
}

// postgresIDs returns the process IDs of a PostgreSQL server, the postmaster's first, or none if the server is not running. The
// IDs are needed because PostgreSQL's processes do not share a process group.
func postgresIDs(data string) ([]int, error) {
	parent, err := postmaster(data)
	if parent == 0 || err != nil {
		return nil, err
	}

	children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", parent, parent))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}

	ids := []int{parent}

	for field := range strings.FieldsSeq(string(children)) {
		if id, err := strconv.Atoi(field); err == nil {
			ids = append(ids, id)
		}
	}

	return ids, err
}
