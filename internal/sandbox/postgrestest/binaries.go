package postgrestest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
)

// binary finds a program of PostgreSQL on PATH or where Debian puts the newest version.
func binary(name string) (string, error) {
	if path, err := exec.LookPath(name); err == nil {
		return path, nil
	}

	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/" + name)
	if err != nil || len(found) == 0 {
		return "", errors.New(missing)
	}

	return found[len(found)-1], nil
}

// unprivileged returns how to start PostgreSQL, which refuses to run as root, and the user that it then runs as.
func unprivileged() (*syscall.SysProcAttr, int, error) {
	attributes := &syscall.SysProcAttr{}
	if os.Geteuid() != 0 {
		return attributes, -1, nil
	}

	account, err := user.Lookup("postgres")
	if err != nil {
		if account, err = user.Lookup("nobody"); err != nil {
			return nil, 0, fmt.Errorf("finding a user for PostgreSQL: %w", err)
		}
	}

	uid, err := strconv.ParseUint(account.Uid, 10, 32)
	if err != nil {
		return nil, 0, fmt.Errorf("reading the id of user %s: %w", account.Username, err)
	}

	gid, err := strconv.ParseUint(account.Gid, 10, 32)
	if err != nil {
		return nil, 0, fmt.Errorf("reading the group of user %s: %w", account.Username, err)
	}

	attributes.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}

	return attributes, int(uid), nil
}
